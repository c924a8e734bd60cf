"""Beholder audits how vision-language models see people.

    import beholder

    run = beholder.audit("openai/clip-vit-base-patch32", "apa", data="data")
    run.findings, run.results, run.charts, run.scores("apa")

What is listed here and in `beholder.ext` (for plug-ins) stays; everything else is private and may change at any time.
Names are loaded when first used, so that `import beholder` is instant and needs no extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beholder._audit import audit as audit
    from beholder._compare import compare as compare
    from beholder._measure import measure as measure
    from beholder._options import AuditOptions as AuditOptions
    from beholder._run import Run as Run
    from beholder._run import load_run as load_run
    from beholder._training import callback as callback
    from beholder.core.errors import BeholderError as BeholderError
    from beholder.datasets import load_dataset as load_dataset
    from beholder.datasets.dataset import Dataset as Dataset
    from beholder.models.load import load_model as load_model
    from beholder.prompts.prompt_set import PromptSet as PromptSet
    from beholder.report.comparison import Comparison as Comparison

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
__all__ = [*_HOME]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "__version__":
        return import_module("beholder.core.record").version()
    raise AttributeError(f"module 'beholder' has no attribute {name!r}")
