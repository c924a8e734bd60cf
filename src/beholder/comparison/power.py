"""Power: how large a difference a design finds, simulated with the engine that will judge it.

Noise is drawn for the data's own people, groups and strata; a difference is planted in one column of a family, and the
share of worlds in which it is found tells the power. No formula: what holds here holds for the audit.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from beholder.comparison.family import Part, critical_value
from beholder.comparison.groups import Groups, People, Strata
from beholder.comparison.means import compare_groups, each_stratum
from beholder.core.types import Array, Mask

POWER = 0.8
WORLDS, SHUFFLES = 400, 499
WORK = 1e9  # products that one run of the engine may take: with more people and columns fewer shuffles and worlds do
MANY = 100  # people in the smallest group from whom on a difference does not change the null of its own column
WITHIN = 0.1  # share of a score's variance that differs between pictures of one person: assumed
STEPS = 14
Draw = Callable[[int, np.random.Generator], Array]
"""Noise of so many columns: `[n_images, n_columns]`, of standard deviation 1."""


class Scores(NamedTuple):
    """How a score is spread over the people of one group, in its own unit."""

    deviation: float = 1.0
    mean: float | None = None
    """Of a score between 0 and 1, whose spread becomes smaller near the ends; without it, the score has no ends."""

    def planted(self) -> Callable[[Array, Mask, float], Array]:
        """A function of noise, of which images are of the shifted group, and of how far it lies from the others."""
        if self.mean is None:
            return lambda noise, shifted, size: self.deviation * noise + size * shifted[:, None]
        wide = _latent_deviation(self.deviation, self.mean)

        def bounded(noise: Array, shifted: Mask, size: float) -> Array:
            above, below = (_latent_mean(level, wide) for level in self.levels(size))
            return np.asarray(expit(np.where(shifted, below, above)[:, None] + wide * noise))

        return bounded

    def levels(self, size: float) -> tuple[float, float]:
        """Two means between 0 and 1 that lie so far apart, about the mean as far as the ends allow."""
        mean = self.mean or 0.0
        above = min(max(mean + size / 2, size), 1.0)
        return above, above - size

    @property
    def most(self) -> float:
        """The largest difference that there can be."""
        return np.inf if self.mean is None else 1.0


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
LATENT = np.linspace(-40, 40, 1001)


@lru_cache(maxsize=64)
def _means(wide: float) -> Array:
    return np.asarray(expit(LATENT[:, None] + wide * NODES) @ WEIGHTS / WEIGHTS.sum())


def _latent_mean(mean: float, wide: float) -> float:
    return float(np.interp(mean, _means(wide), LATENT))


@lru_cache(maxsize=64)
def _latent_deviation(deviation: float, mean: float) -> float:
    def spread(wide: float) -> float:
        scores = expit(_latent_mean(mean, wide) + wide * NODES)
        return float(np.sqrt((scores - mean) ** 2 @ WEIGHTS / WEIGHTS.sum()))

    return smallest_found(lambda wide: float(spread(wide) >= deviation), 1.0, 20.0)


class Design(NamedTuple):
    """Groups that are compared within strata; the smallest group differs from all others."""

    groups: Groups
    strata: Strata | None = None
    columns: int = 1
    contrasts: Array | None = None  # all that is judged of one column; without them, every two groups
    scores: Scores = Scores()

    def weights(self) -> Array:
        return self.groups.pair_weights() if self.contrasts is None else self.contrasts

    def shuffles(self, columns: int) -> int:
        """As many as there is time for."""
        return int(np.clip(WORK // (len(self.groups.codes) * len(self.groups.names) * columns), 199, SHUFFLES))


def noise_of(people: People) -> Draw:
    """Normal noise; pictures of one person are alike but for a share of the variance."""

    def draw(columns: int, rng: np.random.Generator) -> Array:
        own = rng.standard_normal((people.count, columns))[people.codes]
        if not people.repeated:
            return np.asarray(own)
        return np.asarray(np.sqrt(1 - WITHIN) * own + np.sqrt(WITHIN) * rng.standard_normal(own.shape))

    return draw


def detectable(
    designs: Sequence[Design], people: People, rng: np.random.Generator, *, power: float = POWER
) -> list[float]:
    """For each design of one family: how far its smallest group must lie from the others to be found with this power.

    In the unit of its scores. NaN where no difference is found so often, or groups are too small.
    """
    draw, sizes = noise_of(people), [each.groups.sizes(people) for each in designs]
    able = [number for number, each in enumerate(sizes) if len(each) > 1 and min(each) > 1]
    bar, scales = _bar([designs[number] for number in able], people, rng, draw)
    found = [np.nan] * len(designs)
    for number, scale in zip(able, scales, strict=True):
        if np.isfinite(scale):
            found[number] = _detectable(designs[number], people, rng, draw, bar, scale, power)
    return found


def _bar(designs: Sequence[Design], people: People, rng: np.random.Generator, draw: Draw) -> tuple[float, list[float]]:
    """What a deviate must exceed in this family, and the scale of each design's null: means over a few worlds."""
    bars, scales = [], np.zeros(len(designs))
    repeats = 2 if max((len(each.groups.codes) for each in designs), default=0) > 1000 else 4
    for _ in range(repeats):
        of_design = [_parts(each, people, rng, draw) for each in designs]
        parts = [part for own in of_design for part in own if part.judgeable.any()]
        if not parts:
            return np.inf, [np.nan] * len(designs)
        count = min(len(part.largest) for part in parts)
        drawn = [rng.permutation(part.largest)[:count] for part in parts]
        bars.append(critical_value(np.sort(np.max(drawn, axis=0))))
        scales += [own[0].scale.mean() if own[0].judgeable.any() else np.nan for own in of_design]
    return float(np.mean(bars)), (scales / repeats).tolist()


def _parts(design: Design, people: People, rng: np.random.Generator, draw: Draw) -> list[Part]:
    """What a design adds to its family: all contrasts, and those within each stratum."""
    groups, strata, shuffles = design.groups, design.strata, design.shuffles(design.columns)
    nobody = np.zeros(len(groups.codes), dtype=bool)
    values = design.scores.planted()(draw(design.columns, rng), nobody, 0.0)
    whole = compare_groups(values, groups, people, rng, strata=strata, contrasts=design.weights(), shuffles=shuffles)
    inner = {} if strata is None else each_stratum(values, groups, people, strata, rng, shuffles=shuffles)
    return [whole, *inner.values()]


def _detectable(
    design: Design, people: People, rng: np.random.Generator, draw: Draw, bar: float, scale: float, power: float
) -> float:
    """Every world is a column, and the same noise serves all sizes."""
    groups, scores = design.groups, design.scores
    few, smallest = min(groups.sizes(people)), int(np.argmin(groups.sizes(people)))
    contrasts = design.weights()
    contrasts = contrasts[contrasts[:, smallest] != 0]
    worlds = int(np.clip(WORK // (SHUFFLES * len(groups.codes) * len(groups.names)), 200, WORLDS))
    noise, shifted, planted = draw(worlds, rng), groups.codes == smallest, scores.planted()
    power += float(np.sqrt(power * (1 - power) / worlds))  # the promise is kept although the worlds are few

    def compared(size: float, shuffles: int) -> Part:
        values, own = planted(noise, shifted, size), {"strata": design.strata, "contrasts": contrasts}
        return compare_groups(values, groups, people, rng, shuffles=shuffles, **own)

    def size_found(scale: Array | float) -> float:
        def share(size: float) -> float:
            return float((compared(size, 1).deviate / scale > bar).any(axis=0).mean())

        return smallest_found(share, power, scores.most, start=scores.deviation / 20)

    size = size_found(scale)
    if few >= MANY or not np.isfinite(size):
        return size
    # A difference between small groups makes the null of its own column wider.
    return size_found(compared(size, design.shuffles(worlds)).scale.mean(axis=1, keepdims=True))


def smallest_found(
    share: Callable[[float], float], power: float = POWER, most: float = np.inf, *, start: float = 0.05
) -> float:
    """The smallest size of which a large enough share is found; NaN where none up to `most` is."""
    low, high = 0.0, min(start, most)
    while share(high) < power:
        if high >= most or high > start * 1e6:
            return float("nan")
        low, high = high, min(2 * high, most)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) >= power else (middle, high)
    return high


def people_needed(detected: float, wanted: float) -> float:
    """How many times as many people make a wanted difference detectable: errors shrink with the square root."""
    return (detected / wanted) ** 2
