"""Intervals of the right kind: studentised or accelerated where the percentiles of the draws cover too seldom.

All are made of one thing, an `Estimate`: a number with its standard error, and both again in every draw of a
`Resampler`. Errors are by cluster (a person with all their pictures). `scale` is where the number is nearest to
normal: ratios on the logarithm, probabilities on the log-odds. Which metric takes which kind is decided by
`beholder calibrate` and recorded in docs/calibration.md.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from beholder.core.types import AnyArray, Array, Integers

CELLS = 1 << 22  # weights held at once: draws come in parts, so memory does not grow with images × draws
KEPT = 1 << 26  # weights kept for the next number, a byte each where there are several parts; drawing them anew is slow
FEWEST = 5  # people below whom no interval is given: two or three of them say how they differ and nothing more


class Interval(NamedTuple):
    """Bounds of a 95 % interval; NaN where there is too little to say."""

    low: float
    high: float


class Resampler:
    """Draws of people, shared by every number that is computed from the same images.

    With `strata`, a number for each image, every stratum is drawn from apart: how many people it has is a property
    of the data set, not of chance.
    """

    def __init__(
        self, clusters: AnyArray, rng: np.random.Generator, draws: int = 2000, *, strata: Integers | None = None
    ) -> None:
        names, self.cluster_of = np.unique(clusters, return_inverse=True)  # what is drawn together has one number
        self.n_clusters, self.draws = len(names), draws
        self._sizes = [self.n_clusters]
        if strata is not None:
            pairs = np.stack([strata, self.cluster_of], axis=1)
            apart, self.cluster_of = np.unique(pairs, axis=0, return_inverse=True)
            self._sizes = np.bincount(apart[:, 0])[np.unique(apart[:, 0])].tolist()
            self.n_clusters = len(apart)
        self._seed = int(rng.integers(2**63))
        self._kept: list[AnyArray] = []

    def weights(self) -> Iterator[Array]:
        """How often each image counts in each draw, `[part of the draws, n_images]`, part after part."""
        if self._kept:
            yield from (part.astype(np.float64, copy=False) for part in self._kept)
            return
        rng, kept = np.random.default_rng(self._seed), []
        size = max(1, CELLS // max(1, len(self.cluster_of)))
        even = [np.full(members, 1 / max(1, members)) for members in self._sizes]
        kind = np.float64 if size >= self.draws else np.uint8  # nobody is drawn 256 times (one in 256 factorial)
        for start in range(0, self.draws, size):
            many = min(size, self.draws - start)
            counts = np.concatenate([rng.multinomial(len(each), each, size=many) for each in even], axis=1)
            part = counts.astype(kind)[:, self.cluster_of]
            if self.draws * len(self.cluster_of) <= KEPT:
                kept.append(part)
            yield part.astype(np.float64, copy=False)
        self._kept = kept

    def means(self, values: Array) -> Array:
        """The mean of each column of `values` in each draw, `[draws, n_columns]`; NaN cells count for nothing."""
        values = values.reshape(len(self.cluster_of), -1)
        there = ~np.isnan(values)
        known = np.where(there, values, 0.0)
        parts = []
        for weights in self.weights():
            with np.errstate(invalid="ignore"):
                parts.append((weights @ known) / (weights @ there.astype(np.float64)))
        return np.concatenate(parts)


def percentile_interval(draws: AnyArray, level: float = 0.95) -> Interval:
    """The middle `level` of the draws; draws that came out undefined are left aside."""
    defined = draws[np.isfinite(draws)]
    if defined.size < draws.size / 2 or not defined.size:
        return Interval(np.nan, np.nan)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def centred_interval(draws: AnyArray, value: float, level: float = 0.95) -> Interval:
    """The spread of the draws laid around `value`, for numbers whose draws are off it on average."""
    # A draw shows some pictures twice, and a precision or a distance from 0 comes out larger for that; how far draws
    # lie apart is unmoved by it.
    low, high = percentile_interval(draws, level)
    off = value - float(np.mean(draws[np.isfinite(draws)])) if np.isfinite(low) else np.nan
    return Interval(low + off, high + off)


def exact_proportion_interval(hits: float, n: float, level: float = 0.95) -> Interval:
    """Clopper–Pearson bounds of a share: honest where all or none succeeded and resampling shows no spread."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Interval(low, high)


NONE = Interval(np.nan, np.nan)
ROUNDING = 1e-13
"""Share of the squares below which a spread is that of binary fractions: values are then alike, and say nothing."""


class Estimate(NamedTuple):
    """A number with its standard error, as it stands and in every draw."""

    value: float
    error: float
    draws: Array
    errors: Array


class Scale(NamedTuple):
    """A change of unit with its slope and its way back."""

    to: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    back: Callable[[Any], Any]


SCALES = {
    "plain": Scale(lambda x: x, lambda x: np.ones_like(x), lambda y: y),
    "log": Scale(np.log, lambda x: 1 / x, np.exp),
    "logit": Scale(logit, lambda x: 1 / (x * (1 - x)), expit),
}


def mean_estimate(values: Array, resampler: Resampler) -> Estimate:
    """A mean over pictures, whose error is that of its clusters; NaN cells count for nothing."""
    there = ~np.isnan(values)
    known, cluster = np.where(there, values, 0.0), resampler.cluster_of
    sums, sizes = (np.bincount(cluster, weights=each)[cluster] for each in (known, there.astype(np.float64)))
    # Over a cluster Σ x S = S², Σ x N = S N and Σ N = N², so image weights give the clusters' squares.
    columns = np.stack([known, there, known * sums, known * sizes, there * sizes], axis=1)
    drawn = np.concatenate([weights @ columns for weights in resampler.weights()])
    value, error = _mean_and_error(columns.sum(axis=0)[None], resampler.n_clusters)
    draws, errors = _mean_and_error(drawn, resampler.n_clusters)
    return Estimate(float(value[0]), float(error[0]), draws, errors)


def _mean_and_error(totals: Array, clusters: int) -> tuple[Array, Array]:
    """From Σ S, Σ N, Σ S², Σ S N, Σ N² over clusters: the mean and its standard error."""
    s, n, ss, sn, nn = totals.T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = s / n
        spread = ss - 2 * mean * sn + mean**2 * nn
        spread = np.where(spread > ROUNDING * ss, spread, 0.0)
        return mean, np.sqrt(spread * clusters / max(1, clusters - 1)) / n


def ratio_estimate(top: Estimate, bottom: Estimate) -> Estimate:
    """One mean over another, of groups that were drawn apart."""
    with np.errstate(divide="ignore", invalid="ignore"):
        over, under = (np.float64(top.value), np.float64(bottom.value))  # unlike Python's, they may be divided by 0
        value, draws = over / under, top.draws / bottom.draws
        error = value * np.hypot(top.error / over, bottom.error / under)
        errors = draws * np.hypot(top.errors / top.draws, bottom.errors / bottom.draws)
    return Estimate(float(value), float(error), draws, errors)


def mean_interval(values: Array, resampler: Resampler) -> Interval:
    """Interval of a mean over pictures; NaN where fewer than five people, or too little spread, let it be said."""
    # Probabilities are studentised on the log-odds: percentiles of the draws cover a mean of 0.04 over 100 people in 90
    # of 100 cases, these in 94. Shares of yes and no have Wilson's interval, the exact one where all or none say yes.
    known = values[~np.isnan(values)]
    if min(known.size, resampler.n_clusters) < FEWEST:
        return NONE
    lowest, highest, yes_or_no = known.min(), known.max(), set(np.unique(known)) <= {0.0, 1.0}
    if yes_or_no and lowest == highest:  # ten pictures of one person are one person's yes
        clusters = len(np.unique(resampler.cluster_of[~np.isnan(values)]))
        return exact_proportion_interval(clusters * int(lowest), clusters)
    if yes_or_no and resampler.n_clusters == values.size:
        return wilson_interval(int(known.sum()), known.size)
    estimate = mean_estimate(values, resampler)
    if yes_or_no:
        return clustered_wilson_interval(estimate.value, estimate.error, known.size, resampler.n_clusters)
    if lowest < 0 or highest > 1:
        return studentised_interval(estimate)
    low, high = studentised_interval(estimate, scale="logit")
    # How many people the mean rests on: fewer where some of them have more pictures than others.
    sizes = np.bincount(resampler.cluster_of[~np.isnan(values)])
    people = float(sizes.sum() ** 2 / (sizes**2).sum())
    # Nothing between 0 and 1 spreads wider around its mean than yes and no. Where a few of hundreds carry the mean,
    # draws without them have next to no error of their own, and the studentised bound runs away.
    least, most = exact_proportion_interval(estimate.value * people, people)
    return Interval(max(low, least), min(high, most)) if np.isfinite(low) else NONE


def clustered_wilson_interval(share: float, error: float, n: int, people: int) -> Interval:
    """Of a share of yes and no, several pictures a person (Korn and Graubard's effective n in Wilson's bounds)."""
    # The share counts as one of as many independent answers as its error over people speaks for, and of fewer where few
    # people tell that error. With 10 to 30 people, studentised draws cover in 70 of 100 cases, these in 93 to 98.
    fewer = float(stdtrit(n - 1, 0.975) / stdtrit(people - 1, 0.975)) ** 2
    worth = fewer * (min(n, share * (1 - share) / error**2) if error > 0 else n)
    return wilson_interval(share * worth, worth)


def wilson_interval(hits: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share: on average it covers as often as it says, with few or many hits."""
    z = float(ndtri((1 + level) / 2))
    centre, half = hits + z**2 / 2, z * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return Interval(float((centre - half) / (n + z**2)), float((centre + half) / (n + z**2)))


def log_odds_interval(value: float, error: float, freedom: float, level: float = 0.95) -> Interval:
    """Student's interval of a number between 0 and 1, on the log-odds; NaN without an error, at 0 and at 1."""
    # `freedom` is how much the error itself is worth, in degrees of freedom.
    if not 0 < value < 1 or not error > 0 or not freedom > 0:
        return NONE
    margin = float(stdtrit(freedom, (1 + level) / 2)) * error / (value * (1 - value))
    centre = float(logit(value))
    return Interval(float(expit(centre - margin)), float(expit(centre + margin)))


def clustered_share_interval(hits: AnyArray, people: AnyArray) -> Interval:
    """Of a share of yes and no, of which several may be of one person: exact where each is of another."""
    # Else Student's on the log-odds over people; none where fewer than five, or where all or none say yes.
    codes = np.unique(people, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if (sizes == 1).all():
        return exact_proportion_interval(int(hits.sum()), len(hits))
    share, many = float(np.mean(hits)), len(sizes)
    off = np.bincount(codes, weights=hits) - share * sizes
    error = float(np.sqrt((off**2).sum() * many / max(1, many - 1))) / len(hits)
    return log_odds_interval(share, error, many - 1) if many >= FEWEST else NONE


class Reach(NamedTuple):
    """How far an interval reaches below and above its value: it need not be the same."""

    below: float
    above: float


def _studentised(estimate: Estimate, scale: str) -> tuple[float, float, Array] | None:
    """Value and error on the scale, and the t of every draw that has one."""
    change = SCALES[scale]
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = change.to(np.float64(estimate.value))
        error = estimate.error * change.slope(np.float64(estimate.value))
        t = (change.to(estimate.draws) - centre) / (estimate.errors * change.slope(estimate.draws))
    defined = t[np.isfinite(t)]
    if defined.size < t.size / 2 or not defined.size or not np.isfinite([centre, error]).all():
        return None
    return float(centre), float(error), defined


def studentised_interval(estimate: Estimate, level: float = 0.95, *, scale: str = "plain") -> Interval:
    """Bounds from the draws' own t: each draw's distance in its own standard error. Follows skew to second order."""
    studentised = _studentised(estimate, scale)
    if studentised is None:
        return NONE
    centre, error, t = studentised
    low, high = np.quantile(t, [(1 - level) / 2, (1 + level) / 2])
    return Interval(*(float(SCALES[scale].back(centre - end * error)) for end in (high, low)))


class Tails(NamedTuple):
    """One-sided p-values against a landmark; NaN where the draws say nothing."""

    above: float  # of "no higher than the landmark": small where the number is shown to lie above it
    below: float


def studentised_tails(estimate: Estimate, landmark: float, *, scale: str = "plain") -> Tails:
    """How often the draws' t lies as far out as the landmark's, on either side; never 0."""
    studentised = _studentised(estimate, scale)
    if studentised is None or studentised[1] == 0:
        return Tails(np.nan, np.nan)
    centre, error, t = studentised
    away = (centre - float(SCALES[scale].to(np.float64(landmark)))) / error
    share = 1 / (1 + t.size)
    return Tails(*((1 + beyond.sum()) * share for beyond in (t >= away, t <= away)))
