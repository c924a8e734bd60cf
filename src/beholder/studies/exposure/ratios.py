"""Women over men: captions per person, in each branch and over all branches.

A branch that captions name often may have many women: then women are named more over all people and yet less in every
branch. So the ratio over all branches compares women with men of their own branch. Branches are weighted by
women × men / people, as Mantel and Haenszel do. The crude ratio, over all people at once, stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, Resampler
from beholder.metrics.intervals import (
    Estimate,
    difference_estimate,
    mean_estimate,
    ratio_estimate,
    studentised_interval,
    studentised_tails,
)
from beholder.metrics.multiplicity import holm, shuffles_for
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

RATIO, EVERYONE, CAPTIONS = "exposure.ratio", "all branches", "captions"
MEAN, TYPICAL = "mean", "typical"
CRUDE = {MEAN: "mean, crude", TYPICAL: "typical, crude"}
"""Concepts of the ratios over all people at once."""
MOST_TESTS = 10
"""Both tails of five branches: draws enough for a corrected p-value to be called."""
People = dict[str, list[pl.DataFrame]]
"""Women and men, branch by branch."""


def ratio_rows(people: pl.DataFrame, subset: str, options: MeasureOptions) -> Iterator[Row]:
    """The ratio of means and that of geometric means of 1 + captions; for `EVERYONE` also the crude ones."""
    cells = people.partition_by("branch", "gender", as_dict=True)
    least = FEWEST if subset == EVERYONE else 1
    branches = people["branch"].unique(maintain_order=True).to_list()
    used = [each for each in branches if all(len(cells.get((each, group), ())) >= least for group in GROUPS)]
    if used:
        left = [branch for branch in branches if branch not in used]
        note = f"without {', '.join(left)}: fewer than {FEWEST} women or men" if left else None
        for row in _rows({group: [cells[branch, group] for branch in used] for group in GROUPS}, options):
            yield row._replace(subset=subset, note=join((row.note, note)))
    if subset == EVERYONE and set(GROUPS) <= set(people["gender"]):
        for row in _rows({group: [people.filter(gender=group)] for group in GROUPS}, options):
            concept = CRUDE[row.concept or MEAN]
            yield row._replace(subset=subset, concept=concept, p_value=None, p_at_most=None)


def _rows(people: People, options: MeasureOptions) -> Iterator[Row]:
    """The two ratios; p is that of the typical one, about which findings are made."""
    counts = [pl.concat(people[group])[CAPTIONS].to_numpy() for group in GROUPS]
    row = Row(RATIO, None, sum(map(len, counts)), "ratio", concept=MEAN)
    if not all(each.any() for each in counts):
        yield row._replace(note="captions name no woman or no man")
        return
    rng, draws = options.rng(), max(options.draws, shuffles_for(MOST_TESTS))
    resamplers = {group: [_resampler(part, rng, draws) for part in people[group]] for group in GROUPS}
    sizes = [np.array([len(part) for part in people[group]], np.float64) for group in GROUPS]
    weights = sizes[0] * sizes[1] / (sizes[0] + sizes[1])

    def over_branches(change: Callable[[Any], Any]) -> list[Estimate]:
        return [
            _weighted(
                [
                    mean_estimate(change(part[CAPTIONS].to_numpy().astype(np.float64)), resampler)
                    for part, resampler in zip(people[group], resamplers[group], strict=True)
                ],
                weights / weights.sum(),
            )
            for group in GROUPS
        ]

    few, means, logs = too_few(*counts), ratio_estimate(*over_branches(np.asarray)), over_branches(np.log1p)
    yield bounded(row._replace(value=means.value), studentised_interval(means, scale="log"), few)
    typical = difference_estimate(*logs)
    bounds = Interval(*np.exp(studentised_interval(typical)).tolist())
    row = bounded(row._replace(concept=TYPICAL, value=float(np.exp(typical.value))), bounds, few)
    if row.low is not None:
        p_value = studentised_tails(typical, 0.0).two_sided
        row = row._replace(p_value=p_value, p_at_most=p_value <= 2 / (1 + draws) or None)
    yield row


def _resampler(people: pl.DataFrame, rng: np.random.Generator, draws: int) -> Resampler:
    """Draws of people; how many a branch has is fixed."""
    return Resampler(np.arange(people.height), rng, draws, strata=people["branch"].rank("dense").to_numpy())


def _weighted(estimates: Sequence[Estimate], weights: npt.NDArray[np.float64]) -> Estimate:
    """A weighted sum of means that were drawn apart."""
    value, error, draws, errors = (
        np.stack([np.asarray(part) for part in parts], axis=-1) for parts in list(zip(*estimates, strict=True))[:4]
    )
    moved = np.concatenate([weight * each.influence for weight, each in zip(weights, estimates, strict=True)])
    return Estimate(
        float(value @ weights),
        float(np.sqrt(error**2 @ weights**2)),
        draws @ weights,
        np.sqrt(errors**2 @ weights**2),
        moved,
    )


def corrected(rows: Sequence[Row]) -> list[Row]:
    """The rows with the p-values of the branches corrected for their number (Holm's); that of all branches stays."""
    places = [i for i, row in enumerate(rows) if row.metric == RATIO and row.concept == TYPICAL]
    places = [i for i in places if rows[i].subset != EVERYONE and rows[i].p_value is not None]
    adjusted, changed = holm(np.array([rows[i].p_value for i in places])), list(rows)
    for i, p_value in zip(places, adjusted.tolist(), strict=True):
        changed[i] = rows[i]._replace(p_value=p_value)
    return changed


def too_few(*groups: npt.NDArray[Any], result: str = "interval") -> str | None:
    """Why these counts cannot be resampled: there are few people, or few of them are named."""
    if min(map(len, groups)) < FEWEST:
        return f"fewer than {FEWEST} people: no {result}"
    if min(map(np.count_nonzero, groups)) < FEWEST:
        return f"captions name fewer than {FEWEST} people: no {result}"
    return None


def bounded(row: Row, bounds: Interval, few: str | None) -> Row:
    """The row with its interval, or with the reason why it has none."""
    if few or not np.isfinite(bounds).all():
        return row._replace(note=join((row.note, few or "too little spread: no interval")))
    return row._replace(low=bounds.low, high=bounds.high)
