"""ScoreMatrix: the cells of one (images × prompts) sheet, with both tables attached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import BeholderError
from beholder.datasets.dataset import Dataset

Cells = npt.NDArray[np.floating[Any]]

LOGIT_CHANNELS = ("logit_true", "match_logit", "score")
"""Channels that are a logit as they stand; a cosine becomes one through the checkpoint's own scale."""


@dataclass(frozen=True)
class ScoreMatrix:
    """`values[i, j, k]`: image i, prompt j, channel k; NaN where there is no score."""

    task: str
    images: pl.DataFrame
    prompts: pl.DataFrame
    channels: tuple[str, ...]
    values: Cells
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The model's settings, for its logit scale."""
    dataset: Dataset | None = None
    """Where the images come from, for what is known of them beside their table."""

    def __post_init__(self) -> None:
        expected = (self.images.height, self.prompts.height, len(self.channels))
        if self.values.shape != expected:
            raise BeholderError(
                f"{self.task}: the scores have shape {self.values.shape}, the tables ask for {expected}."
            )

    def channel(self, name: str) -> Cells:
        """One channel's cells `[n_images, n_prompts]`."""
        return np.asarray(self.values[:, :, self.channels.index(name)])

    @property
    def has_logits(self) -> bool:
        """Whether prompts can compete in a softmax; a detector's presence cannot."""
        return "cosine" in self.channels or any(name in self.channels for name in LOGIT_CHANNELS)

    @property
    def logits(self) -> npt.NDArray[np.float64]:
        """What goes into a softmax over prompts: the model's own logits."""
        if "cosine" in self.channels:
            scale, bias = self.settings.get("logit_scale", 1.0), self.settings.get("logit_bias", 0.0)
            return np.asarray(self.channel("cosine").astype(np.float64) * scale + bias)
        for name in LOGIT_CHANNELS:
            if name in self.channels:
                return self.channel(name).astype(np.float64)
        raise BeholderError(
            f"{self.task} needs a logit, and the model gives only {', '.join(self.channels)}.\n"
            f"A benchmark of this kind takes models with one of: cosine, {', '.join(LOGIT_CHANNELS)}."
        )

    def columns(self, keep: npt.NDArray[Any]) -> ScoreMatrix:
        """The prompts that `keep` (a mask or indices) selects."""
        indices = np.flatnonzero(keep) if keep.dtype == bool else keep
        return replace(self, prompts=self.prompts[indices.tolist()], values=self.values[:, indices])

    def rows(self, keep: npt.NDArray[Any]) -> ScoreMatrix:
        """The images that `keep` (a mask or indices) selects."""
        indices = np.flatnonzero(keep) if keep.dtype == bool else keep
        return replace(self, images=self.images[indices.tolist()], values=self.values[indices])

    def complete_rows(self) -> ScoreMatrix:
        """The images that have a score for every prompt: a softmax over some of the prompts is another quantity."""
        return self.rows(np.asarray(~np.isnan(self.values).any(axis=(1, 2))))

    def level(self, name: str) -> ScoreMatrix:
        """The prompts of one level."""
        return self.columns((self.prompts["level"] == name).to_numpy())
