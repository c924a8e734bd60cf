"""Moments of labelled groups, for tests."""

from __future__ import annotations

import numpy as np

from beholder.metrics.average_precision import Ranking
from beholder.metrics.calibration import Calibrated, Calibration
from beholder.metrics.group_tests import Columns, Moments
from beholder.metrics.intervals import Reach


def group_moments(values: np.ndarray, labels: np.ndarray, groups: list[str]) -> Moments:
    """Moments of every group in every column; labels that are none of the groups count for nothing."""
    place = {group: code for code, group in enumerate(groups)}
    return Columns(values).moments(np.array([place.get(label, -1) for label in labels.tolist()], dtype=int), groups)


def difference_reach(first: Reach, second: Reach) -> Reach:
    """Of a difference of two numbers that were measured apart, from the reaches of both (Zou and Donner's)."""
    return Reach(float(np.hypot(first.below, second.above)), float(np.hypot(first.above, second.below)))


def average_precision(
    scores: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None, *, prevalence: float | None = None
) -> float:
    """Of one ranking; NaN where no picture with a score shows the concept. Pictures without a score are left out."""
    known = ~np.isnan(scores)
    if not np.asarray(present, dtype=bool)[known].any():
        return float("nan")
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    ranking = Ranking(scores[known], np.asarray(present, dtype=bool)[known])
    return float(ranking.counts(weights[known][:, None]).average_precision(prevalence)[0])


def calibration(confidence: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None) -> Calibration:
    """All three errors of some pictures, as they are or in every draw."""
    return Calibrated(confidence, present).errors(np.ones((len(confidence), 1)) if weights is None else weights)
