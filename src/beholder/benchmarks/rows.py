"""Rows that every benchmark makes: a mean with its interval and its n."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from beholder.metrics.association import half_precision_mean
from beholder.metrics.bootstrap import Resampler, mean_interval
from beholder.results import Row

PROBABILITY = "probability"


def mean_row(
    metric: str, values: npt.NDArray[np.float64], resampler: Resampler, *, half: bool = False
) -> Row:
    """A mean of probabilities; null, with the reason, when there is nothing to take it of.

    `half` takes it in float16, as APA's released scripts do.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return Row(metric, None, 0, PROBABILITY, note="no image to measure")
    value = half_precision_mean(known) if half else float(known.mean())
    low, high = mean_interval(values, resampler)
    return Row(metric, value, known.size, PROBABILITY, low=low, high=high)


def join(notes: Sequence[str | None]) -> str | None:
    """Several notes as one; None when there is none."""
    return "; ".join(note for note in notes if note) or None
