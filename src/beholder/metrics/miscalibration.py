"""Miscalibration: how far confidence is from what is there, whatever the number of pictures.

Expected calibration error adds up distances that cannot be negative, so chance alone makes it larger where there are
few pictures, and a gap between groups follows their sizes. Squared distances have a cure: in a bin of confidence the
product of two different pictures' errors is, on average, the square of the bin's true error, whatever chance adds to
each of them. Averaged over all pairs of a bin, and over bins by their pictures, it is 0 on average where every
confidence is right, and may then fall below 0. Its root is in the unit of confidence.
The interval is Wilson's idea: how far chance spreads it is taken at the error in question, not at the one found.
Pure functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from beholder.metrics.calibration import BINS, Array, Codes, Mask, equal_width_bins
from beholder.metrics.intervals import Reach

FEWEST_IN_A_BIN = 2
"""People below whom a bin tells nothing: there is no pair."""


class Miscalibration(NamedTuple):
    """Mean squared distance between confidence and what is there, with how far its 95 % interval reaches."""

    value: float
    reach: Reach


class _Bins(NamedTuple):
    """Of every bin that has a pair: its share of the pictures, its squared error, and what chance adds to that."""

    share: npt.NDArray[Any]
    square: npt.NDArray[Any]
    noise: npt.NDArray[Any]
    pairs: npt.NDArray[Any]
    """Share of all pairs of pictures that show two people."""


def miscalibration(confidence: Array, present: Mask, people: Codes | None = None) -> Miscalibration:
    """Of some pictures; `people` numbers whom each shows, for pictures of one person make no pair.

    NaN where no bin holds two people; no reach where chance would move nothing.

    >>> round(miscalibration(np.full(4, 0.9), np.array([True, True, False, False])).value, 4)
    0.0767
    """
    bins = _bins(confidence, present, np.arange(len(confidence)) if people is None else people)
    if not bins.share.size:
        return Miscalibration(np.nan, Reach(np.nan, np.nan))
    value = float((bins.share * bins.square).sum())
    return Miscalibration(value, _reach(bins, value))


def _bins(confidence: Array, present: Mask, people: Codes) -> _Bins:
    """Sums over people, not over pictures: what a person's pictures have in common is no evidence."""
    off = np.asarray(confidence, dtype=np.float64) - present
    who, person = np.unique(people, return_inverse=True)
    place = equal_width_bins(confidence) * len(who) + person
    sums, sizes = (np.bincount(place, weights=w, minlength=BINS * len(who)) for w in (off, np.ones(len(off))))
    sums, sizes = sums.reshape(BINS, -1), sizes.reshape(BINS, -1)
    n, total = sizes.sum(axis=1), sums.sum(axis=1)
    known = (sizes > 0).sum(axis=1) >= FEWEST_IN_A_BIN
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = 1 - (sizes**2).sum(axis=1) / n**2
        square = (total**2 - (sums**2).sum(axis=1)) / n**2 / pairs
        noise = np.maximum((total / n) ** 2 - square, 0.0)
    return _Bins(*(each[known] for each in (n / max(1.0, n.sum()), square, noise, pairs)))


def _reach(bins: _Bins, value: float) -> Reach:
    """Where (value − error)² = z² · (chance alone + 4 · error · noise), solved for the error on either side."""
    z2 = float(ndtri(0.975)) ** 2
    alone = 2 * ((bins.share * bins.noise) ** 2 / bins.pairs).sum()
    weight = bins.share * np.maximum(bins.square, 0.0)
    if not weight.sum() > 0:
        weight = bins.share
    noise = float((weight * bins.share * bins.noise).sum() / weight.sum())
    if not alone > 0:
        return Reach(np.nan, np.nan)
    shift, width = 2 * z2 * noise, np.sqrt(z2 * (4 * noise * (max(value, 0.0) + z2 * noise) + alone))
    return Reach(float(width - shift), float(width + shift))
