"""Calibration: does a score of 0.8 mean that the concept is there in eight of ten such pictures?

Expected calibration error: pictures are put into bins of confidence, and in each bin mean confidence is set against
the share of pictures that show the concept; the distances are averaged, weighted by the pictures in the bin. 0 is
calibrated, 1 is always wrong with full confidence. It is never negative, so few pictures make it larger by chance.
Brier score: mean squared distance of confidence from 1 or 0; 0 is perfect, 0.25 is always saying 0.5.
Pure functions; the generator that cuts folds is passed in.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import isotonic_regression
from scipy.special import expit, ndtri

from beholder.core.errors import UsageError
from beholder.core.types import AnyArray, Floating, Integers, Mask
from beholder.metrics.intervals import Reach

BINS, FOLDS = 10, 5
STEPS = 50  # Newton steps of a logistic fit; it ends long before


class Calibration(NamedTuple):
    """One set of pictures, in each draw: error in equal-width bins, in bins of equal size, and the Brier score."""

    ece: Floating
    adaptive: Floating
    brier: Floating


class Reliability(NamedTuple):
    """One bin of a reliability diagram."""

    low: float
    high: float
    confidence: float  # mean confidence of its pictures
    shows: int
    n: int


def equal_width_bins(confidence: Floating, bins: int = BINS) -> Integers:
    """The bin of each confidence; a bin holds its upper edge, the first also 0."""
    codes = np.ceil(np.asarray(confidence, dtype=np.float64) * bins).astype(int) - 1
    return np.asarray(np.clip(codes, 0, bins - 1))


def adaptive_bins(confidence: Floating, bins: int = BINS) -> Integers:
    """Bins of as many pictures each; equal confidences stay together, so there may be fewer bins."""
    edges = np.unique(np.quantile(confidence, np.arange(1, bins) / bins))
    return np.asarray(np.searchsorted(edges, confidence, side="left"))


class Calibrated:
    """Pictures in their bins; any number of draws of weights are then one sparse product.

    `rows` says where these pictures stand among the `width` pictures that weights are given for; without it they are
    all of them, in order. The bins are those of the pictures as they are, in every draw.
    """

    def __init__(
        self, confidence: Floating, present: Mask, *, rows: Integers | None = None, width: int | None = None
    ) -> None:
        off = np.asarray(confidence, dtype=np.float64) - present
        rows = np.arange(len(off)) if rows is None else rows
        equal, even = equal_width_bins(confidence), adaptive_bins(confidence)
        self._adaptive = slice(BINS, BINS + int(even.max()) + 1)
        squares = np.full(len(off), self._adaptive.stop)
        lines = np.concatenate([equal, BINS + even, squares, squares + 1])
        cells = np.concatenate([off, off, off**2, np.ones(len(off))])
        shape = (self._adaptive.stop + 2, len(off) if width is None else width)
        self._sums = sparse.csr_matrix((cells, (lines, np.tile(rows, 4))), shape=shape)

    def errors(self, weights: Floating) -> Calibration:
        """All three in every draw, when picture i counts `weights[i, d]` times in draw d."""
        sums = self._sums @ weights
        with np.errstate(invalid="ignore"):
            ece, adaptive = (np.abs(sums[part]).sum(axis=0) / sums[-1] for part in (slice(BINS), self._adaptive))
            return Calibration(ece, adaptive, sums[-2] / sums[-1])


def reliability(confidence: Floating, present: Mask, bins: int = BINS) -> list[Reliability]:
    """The equal-width bins that hold a picture, from low to high confidence."""
    codes = equal_width_bins(confidence, bins)
    return [
        Reliability(code / bins, (code + 1) / bins, float(confidence[mine].mean()), int(present[mine].sum()), len(mine))
        for code in np.unique(codes).tolist()
        for mine in [np.flatnonzero(codes == code)]
    ]


# Scores read as probabilities


def platt(scores: Floating, present: Mask) -> Callable[[Floating], Floating]:
    """A logistic curve through the scores, with Platt's targets, which keep it finite where the classes lie apart."""
    centre, width = float(np.mean(scores)), float(np.std(scores)) or 1.0
    design = np.stack([(np.asarray(scores, dtype=np.float64) - centre) / width, np.ones(len(scores))], axis=1)
    hits = int(present.sum())
    target = np.where(present, (hits + 1) / (hits + 2), 1 / (len(present) - hits + 2))
    slope = np.zeros(2)
    for _ in range(STEPS):
        fitted = expit(design @ slope)
        curvature = (design * (fitted * (1 - fitted))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, design.T @ (fitted - target))
        slope -= step
        if np.abs(step).max() < 1e-10:
            break
    return lambda new: np.asarray(expit((new - centre) / width * slope[0] + slope[1]))


def isotonic(scores: Floating, present: Mask) -> Callable[[Floating], Floating]:
    """The rising steps that fit best; between two scores the line between their steps."""
    levels, place = np.unique(scores, return_inverse=True)
    sizes = np.bincount(place)
    fitted = isotonic_regression(np.bincount(place, weights=present) / sizes, weights=sizes).x
    return lambda new: np.interp(new, levels, fitted)


READINGS: dict[str, Callable[[Floating, Mask], Callable[[Floating], Floating]]] = {"platt": platt, "isotonic": isotonic}


def cross_fitted(scores: Floating, present: Mask, reading: str, rng: np.random.Generator) -> Floating | None:
    """Each score read as a probability by a curve fitted to the other folds; None with too few pictures for that."""
    # Folds are cut among the pictures that show the concept and among the others, without regard to groups: the reading
    # is one for all, and what it gets wrong for a group is the model's doing.
    if reading not in READINGS:
        raise UsageError(f"No reading is called '{reading}'. There are: {', '.join(READINGS)}.")
    if min(int(present.sum()), int((~present).sum())) < FOLDS:
        return None
    fold = np.empty(len(scores), dtype=int)
    for part in (present, ~present):
        fold[part] = rng.permutation(np.arange(int(part.sum())) % FOLDS)
    read = np.empty(len(scores))
    for number in range(FOLDS):
        held = fold == number
        read[held] = READINGS[reading](scores[~held], present[~held])(scores[held])
    return read


FEWEST_PEOPLE = 2  # people who show the concept, and who do not: fewer have no variance
NO_REACH = Reach(np.nan, np.nan)


class Miscalibration(NamedTuple):
    """Mean squared distance between confidence and what is there, with how far its interval reaches."""

    value: float
    reach: Reach


class _Errors(NamedTuple):
    """Of every bin with a picture: its error as a share of all pictures, its share, and the errors' covariance."""

    error: AnyArray
    share: AnyArray
    covariance: AnyArray


def miscalibration(
    confidence: Floating, present: Mask, people: Integers | None = None, *, prevalence: float, level: float = 0.95
) -> Miscalibration:
    """Of some pictures, if `prevalence` of them showed the concept: for groups to compare, that of all of them.

    `people` numbers whom each picture shows: what a person's pictures have in common is no evidence. NaN where fewer
    than two people show the concept, or fewer than two do not, although they have a share; no reach where chance would
    move nothing.
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


def _errors(confidence: Floating, present: Mask, who: Integers, prevalence: float) -> _Errors | None:
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


def _reach(errors: _Errors, squares: Floating, value: float, level: float) -> Reach:
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
    """The same for any number of sets of these pictures, such as groups with shuffled labels: one sparse product."""

    # Every picture counts as a person of their own.

    def __init__(self, confidence: Floating, present: Mask, prevalence: float) -> None:
        off = np.asarray(confidence, dtype=np.float64) - present
        place = equal_width_bins(confidence) + BINS * ~present
        lines = np.concatenate([place, 2 * BINS + place, 4 * BINS + place])
        cells = np.concatenate([off, off**2, np.ones(len(off))]).astype(np.float32)
        columns = np.tile(np.arange(len(off)), 3)
        self._sums = sparse.csr_matrix((cells, (lines, columns)), shape=(6 * BINS, len(off)))
        self._weights = prevalence, 1 - prevalence

    def miscalibrations(self, members: Floating) -> Floating:
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
