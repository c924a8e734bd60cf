"""Moments of labelled groups, for tests."""

from __future__ import annotations

import numpy as np

from beholder.metrics.group_tests import Columns, Moments
from beholder.metrics.intervals import Reach


def group_moments(values: np.ndarray, labels: np.ndarray, groups: list[str]) -> Moments:
    """Moments of every group in every column; labels that are none of the groups count for nothing."""
    place = {group: code for code, group in enumerate(groups)}
    return Columns(values).moments(np.array([place.get(label, -1) for label in labels.tolist()], dtype=int), groups)


def difference_reach(first: Reach, second: Reach) -> Reach:
    """Of a difference of two numbers that were measured apart, from the reaches of both (Zou and Donner's)."""
    return Reach(float(np.hypot(first.below, second.above)), float(np.hypot(first.above, second.below)))
