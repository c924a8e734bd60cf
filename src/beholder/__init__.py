"""Beholder audits how vision-language models see people.

    import beholder

    print(list(beholder.STUDIES))  # the studies, by name
    run = beholder.audit("openai/clip-vit-base-patch32", "apa", data="data")
    run.findings, run.results, run.charts, run.scores("apa")

Names are loaded when first used, so that `import beholder` is instant and needs no extra.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beholder.audit import audit, audit_models
    from beholder.compare import compare
    from beholder.core.errors import BeholderError
    from beholder.datasets import DATASETS, open_dataset
    from beholder.datasets.dataset import Dataset
    from beholder.measure import measure_scores
    from beholder.models.load import load_model
    from beholder.models.scorer import Scorer
    from beholder.models.spec import ModelSpec
    from beholder.options import AuditOptions
    from beholder.prompts.prompt_set import PromptSet, read_prompts
    from beholder.run import Run, load_run
    from beholder.scores.score_matrix import ScoreMatrix
    from beholder.studies import STUDIES
    from beholder.studies.study import MeasureOptions, Study
    from beholder.training import callback

__all__ = [
    "DATASETS",
    "STUDIES",
    "AuditOptions",
    "BeholderError",
    "Dataset",
    "MeasureOptions",
    "ModelSpec",
    "PromptSet",
    "Run",
    "ScoreMatrix",
    "Scorer",
    "Study",
    "audit",
    "audit_models",
    "callback",
    "compare",
    "load_model",
    "load_run",
    "measure_scores",
    "open_dataset",
    "read_prompts",
]

_HOME = {
    "beholder.audit": ("audit", "audit_models"),
    "beholder.options": ("AuditOptions",),
    "beholder.compare": ("compare",),
    "beholder.studies": ("STUDIES",),
    "beholder.studies.study": ("MeasureOptions", "Study"),
    "beholder.datasets": ("DATASETS", "open_dataset"),
    "beholder.datasets.dataset": ("Dataset",),
    "beholder.core.errors": ("BeholderError",),
    "beholder.measure": ("measure_scores",),
    "beholder.models.load": ("load_model",),
    "beholder.models.scorer": ("Scorer",),
    "beholder.models.spec": ("ModelSpec",),
    "beholder.prompts.prompt_set": ("PromptSet", "read_prompts"),
    "beholder.run": ("Run", "load_run"),
    "beholder.scores.score_matrix": ("ScoreMatrix",),
    "beholder.training": ("callback",),
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    if name == "__version__":
        try:
            return metadata.version("beholder")
        except metadata.PackageNotFoundError:  # a plain copy of the files, on a machine that only calibrates
            return "unknown"
    raise AttributeError(f"module 'beholder' has no attribute {name!r}")
