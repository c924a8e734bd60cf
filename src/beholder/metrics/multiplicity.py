"""Multiplicity: p-values that stay honest when many questions are asked at once.

Pure functions along the last axis; NaN (no test) stays NaN and counts for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
ALPHA = 0.05
"""A corrected p-value up to this is called."""


def benjamini_hochberg(p_values: npt.NDArray[Any]) -> Array:
    """Adjusted p-values: calling those ≤ q significant keeps the expected share of false calls at q.

    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.5]))
    array([0.03, 0.03, 0.5 ])
    """
    return np.apply_along_axis(_step_up, -1, np.asarray(p_values, dtype=np.float64))


def holm(p_values: npt.NDArray[Any]) -> Array:
    """Adjusted p-values: calling those ≤ α significant keeps the chance of any false call at α.

    >>> holm(np.array([0.01, 0.02, 0.5]))
    array([0.03, 0.04, 0.5 ])
    """
    return np.apply_along_axis(_step_down, -1, np.asarray(p_values, dtype=np.float64))


def simes(p_values: npt.NDArray[Any]) -> Array:
    """One p-value for "at least one of these holds", valid for positively dependent tests such as wordings.

    >>> float(simes(np.array([0.01, 0.5, 0.9, 0.9, 0.9])))
    0.05
    """
    ordered = np.sort(np.asarray(p_values, dtype=np.float64), axis=-1)  # NaN sort to the end
    known = (~np.isnan(ordered)).sum(axis=-1, keepdims=True)
    ranks = np.arange(1, ordered.shape[-1] + 1)
    scaled = np.where(np.isnan(ordered), np.inf, ordered * known / ranks)
    best = scaled.min(axis=-1)
    return np.where(np.isinf(best), np.nan, best)


def _step_up(p_values: Array) -> Array:
    order = np.argsort(p_values)[: int((~np.isnan(p_values)).sum())]
    ranks = np.arange(1, len(order) + 1)
    adjusted = np.full_like(p_values, np.nan)
    scaled = p_values[order] * len(order) / ranks
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted


def _step_down(p_values: Array) -> Array:
    order = np.argsort(p_values)[: int((~np.isnan(p_values)).sum())]
    remaining = np.arange(len(order), 0, -1)
    adjusted = np.full_like(p_values, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * remaining), 1.0)
    return adjusted
