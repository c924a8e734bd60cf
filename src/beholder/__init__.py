"""Beholder audits how vision-language models see people.

    import beholder

    run = beholder.audit("openai/clip-vit-base-patch32", "apa", data="data")
    run.findings, run.results, run.charts, run.scores("apa")

What is listed here and in `beholder.ext` (for plug-ins) stays; everything else is private and may change at any time.
Names are loaded when first used, so that `import beholder` is instant and needs no extra.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beholder._audit import audit
    from beholder._compare import compare
    from beholder._measure import measure
    from beholder._options import AuditOptions
    from beholder._run import Run, load_run
    from beholder._training import callback
    from beholder.core.errors import BeholderError
    from beholder.datasets import load_dataset
    from beholder.datasets.dataset import Dataset
    from beholder.models.load import load_model
    from beholder.prompts.prompt_set import PromptSet
    from beholder.report.comparison import Comparison

_HOME = {
    "AuditOptions": "beholder._options",
    "BeholderError": "beholder.core.errors",
    "Comparison": "beholder.report.comparison",
    "Dataset": "beholder.datasets.dataset",
    "PromptSet": "beholder.prompts.prompt_set",
    "Run": "beholder._run",
    "audit": "beholder._audit",
    "callback": "beholder._training",
    "compare": "beholder._compare",
    "load_dataset": "beholder.datasets",
    "load_model": "beholder.models.load",
    "load_run": "beholder._run",
    "measure": "beholder._measure",
}
__all__ = [
    "AuditOptions",
    "BeholderError",
    "Comparison",
    "Dataset",
    "PromptSet",
    "Run",
    "audit",
    "callback",
    "compare",
    "load_dataset",
    "load_model",
    "load_run",
    "measure",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "__version__":
        try:
            return metadata.version("beholder")
        except metadata.PackageNotFoundError:  # a plain copy of the files, on a machine that only calibrates
            return "unknown"
    raise AttributeError(f"module 'beholder' has no attribute {name!r}")
