"""Image association: are the pictures of X nearer to those of A than to those of B, more so than the pictures of Y are?

The test of iEAT (Steed and Caliskan 2021), which needs no words. Pure functions: vectors in, numbers out.
"""

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import DataError
from beholder.core.types import Array

MOST_DRAWN = 10_000  # arrangements up to which all are taken; of more, so many (the pictures at hand among them)
TIE = 1e-9  # relative differences below this are rounding


class ImageAssociation(NamedTuple):
    """An effect size with its one-sided p."""

    effect: float
    """Mean over X less mean over Y of the nearness to A rather than B, in standard deviations of X and Y together."""
    p_value: float  # how often pictures dealt out anew into X and Y give as much; it holds for this test alone
    arrangements: int  # how many were looked at
    exact: bool  # whether these are all there are


def image_association(
    x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, *, seed: int = 0
) -> ImageAssociation:
    """The test on image vectors, one row each and of any length; cosines are taken here.

    >>> x, y = [[1.0, 0.1], [1.0, 0.2]], [[0.1, 1.0], [0.2, 1.0]]
    >>> image_association(x, y, a=[[1.0, 0.0]], b=[[0.0, 1.0]]).arrangements
    6
    """
    sets = {name: _unit(name, given) for name, given in zip("xyab", (x, y, a, b), strict=True)}
    if len(widths := {vectors.shape[1] for vectors in sets.values()}) > 1:
        raise DataError(f"x, y, a and b must be vectors of one model: they are {sorted(widths)} numbers long.")
    first, second = (nearness(sets[name] @ sets["a"].T, sets[name] @ sets["b"].T) for name in "xy")
    return association_of(first, second, seed=seed)


def nearness(to_a: Array, to_b: Array) -> Array:
    """Each picture's mean cosine with A less that with B, of `[n_pictures, n_attributes]`."""
    return np.asarray(to_a.mean(axis=1) - to_b.mean(axis=1))


def association_of(x: Array, y: Array, *, seed: int = 0) -> ImageAssociation:
    """The test on each picture's nearness to A rather than B."""
    both, size = np.concatenate([x, y]), len(x)
    spread = float(both.std(ddof=1)) if len(both) > 1 else 0.0
    alike = spread <= TIE * float(np.abs(both).max(initial=0.0))
    effect = float("nan") if alike else float(x.mean() - y.mean()) / spread
    least = float(x.sum()) - TIE * float(np.abs(both).sum())  # the sum over X says as much as the difference of means
    count = comb(len(both), size)
    if count <= MOST_DRAWN:
        dealt = np.array(list(combinations(range(len(both)), size)))
    else:
        dealt = np.random.default_rng(seed).random((MOST_DRAWN, len(both))).argsort(axis=1)[:, :size]
        dealt[0] = np.arange(size)
    p_value = float((both[dealt].sum(axis=1) >= least).mean())
    return ImageAssociation(effect, p_value, len(dealt), exact=count <= MOST_DRAWN)


def _unit(name: str, given: npt.ArrayLike) -> Array:
    """Vectors of length 1; an error that names the set."""
    try:
        vectors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        vectors = np.empty(0)
    if vectors.ndim != 2 or not vectors.size:
        raise DataError(f"{name} must be a table of numbers with a row for each picture.")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise DataError(f"{name}: row {bad[0]} is no direction: its numbers are all 0, NaN or infinite.")
    return np.asarray(vectors / lengths)
