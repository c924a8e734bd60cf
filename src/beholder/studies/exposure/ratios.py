"""Women over men: captions per person, in each branch and over all branches.

A branch that captions name often may have many women: then women are named more over all people and yet less in every
branch. So the ratio over all branches compares women with men of their own branch. Branches are weighted by
women × men / people, as Mantel and Haenszel do. The crude ratio, over all people at once, stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import FEWEST, Comparison, Part, comparison_at, judge, levels_of, ratio_bounds
from beholder.comparison.family import Judged
from beholder.comparison.means import OPEN
from beholder.core.results import Row
from beholder.studies.exposure.compared import EVERYONE, Compared, as_ratio, women_and_men
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

RATIO, CAPTIONS = "exposure.ratio", "captions"
MEAN, TYPICAL = "mean", "typical"
CRUDE = {MEAN: "mean, crude", TYPICAL: "typical, crude"}
"""Concepts of the ratios over all people at once."""
Array = npt.NDArray[np.float64]


def ratio_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """The ratio of means and that of geometric means of 1 + captions, and the crude ones.

    The typical ratios of all subsets are one family, and decide. Those of the means have bounds of their own family and
    no verdict: a few famous people decide them.
    """
    compared, rng = women_and_men(people, options), options.rng()
    logs = judge([each.part(np.log1p(_counts(each)), rng, options) for each in compared])
    parts = [each.part(_counts(each), rng, options) for each in compared]
    for each, typical, part, mean in zip(compared, logs, parts, judge(parts), strict=True):
        rows = [*_rows(each, comparison_at(typical, (0, 0)), part, mean), *_crude_rows(each)]
        yield from (row._replace(subset=each.subset, note=join((row.note, each.note))) for row in rows)


def _counts(compared: Compared) -> Array:
    return compared.table[CAPTIONS].to_numpy().astype(np.float64)


def _rows(compared: Compared, typical: Comparison, part: Part, mean: Judged) -> Iterator[Row]:
    """The two ratios; that of the means is open-ended where captions name no man."""
    row = Row(RATIO, None, compared.table.height, "ratio", concept=MEAN)
    women, men = _means(compared)
    if not women[0] and not men[0]:
        yield row._replace(note="captions name nobody")
        return
    low = high = np.nan
    if min(compared.groups.sizes(compared.people)) >= FEWEST:
        values = np.column_stack([_counts(compared), np.log1p(_counts(compared))])
        levels = levels_of(values, compared.groups, compared.people, compared.strata)
        women, men = levels.first, levels.second
        low, high = (float(bound[0]) for bound in ratio_bounds(levels, mean, part))
    yield row._replace(value=_ratio(women[0], men[0]), low=low, high=high)
    yield as_ratio(typical.on(row)._replace(concept=TYPICAL, value=float(women[1] - men[1])))


def _crude_rows(compared: Compared) -> Iterator[Row]:
    """Over all people at once: nothing is tested, because these ratios also follow which branches are named often."""
    women, men = _means(compared)
    if compared.subset == EVERYONE and (women[0] or men[0]):
        row = Row(RATIO, _ratio(women[0], men[0]), compared.table.height, "ratio", concept=CRUDE[MEAN])
        yield from (row, row._replace(value=float(np.exp(women[1] - men[1])), concept=CRUDE[TYPICAL]))


def _means(compared: Compared) -> tuple[Array, Array]:
    """Of women and of men, captions and log(1 + captions), branches aside."""
    counts = (_counts(compared)[compared.groups.mask(group)] for group in (0, 1))
    women, men = (np.array([each.mean(), np.log1p(each).mean()]) for each in counts)
    return women, men


def _ratio(women: float, men: float) -> float:
    return float(women / men) if men else OPEN
