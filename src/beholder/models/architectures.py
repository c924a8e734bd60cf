"""The architectures of transformers as Beholder meets them: exact, refused or not built, what they share and need.

The facts are in `architectures.csv`, which `python tools/family_sweep.py` writes: each architecture was built tiny and
scored by Beholder and by its own forward pass. Nothing here imports torch.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

KINDS = {
    "zero-shot-image-classification": "contrastive",
    "two towers beside that pipeline": "contrastive",
    "image-text matching": "matching",
    "image-text-to-text": "generative",
    "zero-shot-object-detection": "detection",
    "segmentation by text": "segmentation",
}
"""The kind of model that each task of the sweep is about."""


class Architecture(NamedTuple):
    """One architecture and what came of it."""

    task: str
    model_type: str
    architecture: str
    state: str
    """`exact`: as its own forward pass, to 0.0001; `refused`; `not built`: no tiny model, so nothing is known."""
    shared: str
    """What is computed once for many prompts or pictures; empty where nothing is."""
    extra: str
    """What it needs beside `beholder[torch]`."""
    why: str
    difference: str = ""
    """The largest difference to its own forward pass, where the sweep kept it."""

    @property
    def kind(self) -> str:
        """The kind of model."""
        return KINDS[self.task]


@cache
def architectures() -> tuple[Architecture, ...]:
    """Every architecture, by task and model type."""
    text = (files("beholder.models") / "architectures.csv").read_text(encoding="utf-8")
    return tuple(Architecture(**row) for row in csv.DictReader(text.splitlines()))
