"""Miscalibration: how far confidence is from what is there, whatever the number of pictures and the prevalence.

Expected calibration error adds up distances that cannot be negative, so chance alone makes it larger where there are
few pictures, and a gap between groups follows their sizes. Squared distances have a cure: the square of a bin's error,
less the variance of that error, is on average the square of its true error, whatever chance adds. Added up over bins
it is 0 on average where every confidence is right, and may then fall below 0. Its root is in the unit of confidence.

A confidence that is right for all pictures together is wrong for every group that shows the concept more or less
often. So errors are taken at one prevalence: pictures that show the concept and pictures that do not are measured
apart, and each count for what their share is to be. The counts of both are then no part of chance.

The interval is Wilson's idea: how far chance spreads it is taken at the error in question, not at the one found.
Pure functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtri

from beholder.metrics.calibration import BINS, Array, Codes, Mask, equal_width_bins
from beholder.metrics.intervals import Reach

FEWEST_PEOPLE = 2
"""People who show the concept, and who do not: fewer have no variance."""
NO_REACH = Reach(np.nan, np.nan)


class Miscalibration(NamedTuple):
    """Mean squared distance between confidence and what is there, with how far its interval reaches."""

    value: float
    reach: Reach


class _Errors(NamedTuple):
    """Of every bin with a picture: its error as a share of all pictures, its share, and the errors' covariance."""

    error: npt.NDArray[Any]
    share: npt.NDArray[Any]
    covariance: npt.NDArray[Any]


def miscalibration(
    confidence: Array, present: Mask, people: Codes | None = None, *, prevalence: float, level: float = 0.95
) -> Miscalibration:
    """Of some pictures, if `prevalence` of them showed the concept: for groups to compare, that of all of them.

    `people` numbers whom each picture shows: what a person's pictures have in common is no evidence. NaN where fewer
    than two people show the concept, or fewer than two do not, although they have a share; no reach where chance would
    move nothing.

    >>> round(miscalibration(np.full(4, 0.9), np.array([True, True, False, False]), prevalence=0.5).value, 4)
    0.16
    """
    if not len(confidence):
        return Miscalibration(np.nan, NO_REACH)
    who = np.arange(len(confidence)) if people is None else np.unique(people, return_inverse=True)[1]
    errors = _errors(confidence, present, who, prevalence)
    if errors is None:
        return Miscalibration(np.nan, NO_REACH)
    squares = (errors.error**2 - np.diag(errors.covariance)) / errors.share
    value = float(squares.sum())
    return Miscalibration(value, _reach(errors, squares, value, level))


def _errors(confidence: Array, present: Mask, who: Codes, prevalence: float) -> _Errors | None:
    off, bins = np.asarray(confidence, dtype=np.float64) - present, equal_width_bins(confidence)
    many = int(who.max()) + 1
    error, share, moved = np.zeros(BINS), np.zeros(BINS), np.zeros((many, BINS))
    for part, weight in ((present, prevalence), (~present, 1 - prevalence)):
        n, shown = int(part.sum()), len(np.unique(who[part]))
        if not weight:
            continue
        if shown < FEWEST_PEOPLE:
            return None
        place = who[part] * BINS + bins[part]
        sums = np.bincount(place, weights=off[part], minlength=many * BINS).reshape(many, BINS)
        mean = sums.sum(axis=0) / n
        pictures = np.bincount(who[part], minlength=many)
        error += weight * mean
        share += weight * np.bincount(bins[part], minlength=BINS) / n
        moved += weight / n * np.sqrt(shown / (shown - 1)) * (sums - pictures[:, None] * mean)
    used = share > 0
    return _Errors(error[used], share[used], moved[:, used].T @ moved[:, used])


def _reach(errors: _Errors, squares: Array, value: float, level: float) -> Reach:
    """Where (value − error)² = z² · (chance alone + 4 · error · noise), solved for the error on either side."""
    z2 = float(ndtri((1 + level) / 2)) ** 2
    scaled = errors.covariance / np.sqrt(errors.share * errors.share[:, None])
    alone = 2 * float((scaled**2).sum())
    if not alone > 0:
        return NO_REACH
    off = np.sign(errors.error) * np.sqrt(np.maximum(squares, 0.0))
    off = off if off.any() else np.sqrt(errors.share)
    noise = max(float(off @ scaled @ off / (off @ off)), 0.0)
    shift, width = 2 * z2 * noise, np.sqrt(z2 * (4 * noise * (max(value, 0.0) + z2 * noise) + alone))
    return Reach(float(width - shift), float(width + shift))


class MatchedBins:
    """The same for any number of sets of these pictures, such as groups with shuffled labels: one sparse product.

    Every picture counts as a person of their own.
    """

    def __init__(self, confidence: Array, present: Mask, prevalence: float) -> None:
        off = np.asarray(confidence, dtype=np.float64) - present
        place = equal_width_bins(confidence) + BINS * ~present
        lines = np.concatenate([place, 2 * BINS + place, 4 * BINS + place])
        cells = np.concatenate([off, off**2, np.ones(len(off))]).astype(np.float32)
        columns = np.tile(np.arange(len(off)), 3)
        self._sums = sparse.csr_matrix((cells, (lines, columns)), shape=(6 * BINS, len(off)))
        self._weights = prevalence, 1 - prevalence

    def miscalibrations(self, members: Array) -> Array:
        """Of every set, `members[n_images, n_sets]` is 1 or 0; NaN where a set has too few pictures."""
        sums, squares, counts = (self._sums @ members).astype(np.float64).reshape(3, 2, BINS, -1)
        n = counts.sum(axis=1, keepdims=True)
        weights = np.array(self._weights)[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = sums / n
            variance = (squares / n - mean**2) / (n - 1)
            error, share = (weights * mean).sum(axis=0), (weights * counts / n).sum(axis=0)
            square = (error**2 - (weights**2 * variance).sum(axis=0)) / share
        value = np.where(share > 0, square, 0.0).sum(axis=0)
        return np.asarray(np.where((n >= FEWEST_PEOPLE).all(axis=(0, 1)), value, np.nan))
