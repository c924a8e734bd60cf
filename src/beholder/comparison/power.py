"""Power: how large a difference a design finds, simulated with the engine that will judge it.

Noise is drawn for the data's own people, groups and strata; a difference is planted in one column of a family, and the
share of worlds in which it is found tells the power. No formula: what holds here holds for the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison.family import critical_value
from beholder.comparison.groups import Groups
from beholder.comparison.means import _estimates, _Fit, _shares, compare_groups, units_of
from beholder.comparison.people import People
from beholder.comparison.strata import Strata, no_strata

Array = npt.NDArray[np.float64]
POWER = 0.8
WORLDS, SHUFFLES, REPEATS = 600, 499, 3
WITHIN = 0.2
"""Share of a score's variance that differs between pictures of one person: assumed."""
STEPS = 24
Draw = Callable[[int, np.random.Generator], Array]
"""Noise of so many columns: `[n_images, n_columns]`, of standard deviation 1."""


class Design(NamedTuple):
    """Groups that are compared, within strata, and the contrast in which an effect is looked for."""

    groups: Groups
    strata: Strata | None = None
    contrast: int = 0
    """The place of the contrast among the pairs of groups."""
    columns: int = 1


def noise_of(people: People, within: float = WITHIN) -> Draw:
    """Normal noise; pictures of one person are alike but for a share of the variance."""

    def draw(columns: int, rng: np.random.Generator) -> Array:
        own = rng.standard_normal((people.count, columns))[people.codes]
        if not people.repeated:
            return np.asarray(own)
        return np.asarray(np.sqrt(1 - within) * own + np.sqrt(within) * rng.standard_normal(own.shape))

    return draw


def detectable(
    designs: Sequence[Design],
    people: People,
    rng: np.random.Generator,
    *,
    power: float = POWER,
    noise: Draw | None = None,
    most: float = np.inf,
) -> list[float]:
    """For each design of one family, the smallest difference that is found with this power, in noise's deviations.

    NaN where no difference up to `most` is found so often.
    """
    draw = noise or noise_of(people)
    bars, scales = _bars(designs, people, rng, draw)
    found = []
    for number, design in enumerate(designs):
        share = _share_found(design, people, rng, draw, bars, scales[number])
        found.append(_smallest(share, power, most))
    return found


def _bars(designs: Sequence[Design], people: People, rng: np.random.Generator, draw: Draw) -> tuple[float, list[float]]:
    """What a deviate must exceed in this family, and the scale of each design's contrast: means over a few worlds."""
    bars, scales = [], np.zeros(len(designs))
    for _ in range(REPEATS):
        parts = [
            compare_groups(draw(each.columns, rng), each.groups, people, rng, strata=each.strata, shuffles=SHUFFLES)
            for each in designs
        ]
        count = min(len(part.largest) for part in parts)
        bars.append(critical_value(np.sort(np.max([part.largest[:count] for part in parts], axis=0))))
        scales += [float(part.scale[each.contrast].mean()) for part, each in zip(parts, designs, strict=True)]
    return float(np.mean(bars)), (scales / REPEATS).tolist()


def _share_found(
    design: Design, people: People, rng: np.random.Generator, draw: Draw, bar: float, scale: float
) -> Callable[[float], float]:
    """How often a difference of this size is found; every world is a column, and the same noise serves all sizes."""
    contrasts = design.groups.pair_weights()[[design.contrast]]
    strata = no_strata(len(design.groups.codes)) if design.strata is None else design.strata
    images = draw(WORLDS, rng)
    units = units_of(images, design.groups, people, strata)
    fit = _Fit(units, len(design.groups.names))
    first = int(np.flatnonzero(contrasts[0] > 0)[0])
    shares = _shares(contrasts @ fit.weights, fit.member)

    def share(size: float) -> float:
        left = fit.residuals(units.values + size * (units.groups == first)[:, None])
        wide = fit.stretched(left)
        powers = (fit.member.T @ wide, fit.member.T @ wide**2, fit.member.T @ wide**3)
        made = _estimates(fit.weights @ left, powers, fit.size, contrasts, shares, fit.free)
        return float((made.deviates()[0] / scale > bar).mean())

    return share


def _smallest(share: Callable[[float], float], power: float, most: float) -> float:
    high = 0.05
    while share(high) < power:
        high *= 2
        if high > min(most, 1e6) * 2:
            return float("nan")
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) >= power else (middle, high)
    return high if high <= most else float("nan")


def people_needed(detected: float, wanted: float) -> float:
    """How many times as many people make a wanted difference detectable: errors shrink with the square root.

    >>> people_needed(0.2, 0.1)
    4.0
    """
    return (detected / wanted) ** 2
