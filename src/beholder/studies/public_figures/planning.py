"""Planning: which ratio b can be distinguished from 1, given the women and men of each pool and its branches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beholder.comparison import Groups, people_of, strata_of
from beholder.comparison.power import Design, Scores, detectable, people_needed
from beholder.core.errors import UsageError
from beholder.core.results import PLAIN, Row
from beholder.datasets.dataset import Dataset
from beholder.studies.public_figures.levels import Pools, women_and_men
from beholder.studies.public_figures.phrases import PLAYERS, correct_occupation
from beholder.studies.rows import NORMAL, SEED, PlanOptions, of_run, plan_rows

MEAN, DEVIATION = 0.6, 0.34
"""Of belief in the right occupation, between people: assumed."""


class Belief(Scores):
    """Belief in the right occupation: the larger group has the mean, the smaller one less."""

    def levels(self, size: float) -> tuple[float, float]:
        """The means of both groups."""
        mean = self.mean or 0.0
        return mean, mean - size

    @property
    def most(self) -> float:
        """Nobody gets less than nothing."""
        return self.mean or 0.0


def ratio_plan(prefix: str, pools: Pools, dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The smallest detectable effect of every pool, and with `--effect` how many people it takes."""
    if options.effect is not None and not 0 < options.effect < 1:
        raise UsageError("For a ratio, --effect is 1 − b: a number between 0 and 1.")
    table, people = dataset.table, people_of(dataset.table, options.person)
    designs, sources = {}, {}
    for name, branches in pools.items():
        inside = table["branch"].is_in(branches).fill_null(False).to_numpy()
        everyone = women_and_men(table)
        groups = everyone._replace(codes=np.where(inside, everyone.codes, -1))
        if groups.mask(0).any() and groups.mask(1).any():
            scores, sources[name] = _belief(name, groups, options)
            strata = strata_of(table, groups, ("branch",), people)
            columns = len(set(PLAYERS.values())) if name == "actors" else 1  # the published words, and either word
            designs[name] = Design(groups, strata, columns, scores=scores)
    sizes = detectable(list(designs.values()), people, np.random.default_rng(SEED), power=options.power)
    for (pool, design), size in zip(designs.items(), sizes, strict=True):
        women, men = design.groups.sizes(people)
        less = size / (design.scores.mean or 1.0)
        answer = f"b below {1 - less:.2f}" if np.isfinite(less) else "no b is low enough"
        note = f"{women} women, {men} men: {answer}; {len(designs)} pools are one family; {sources[pool]}"
        row = Row(
            "plan.detectable", less, int((design.groups.codes >= 0).sum()), "1 − b", subset=f"{prefix}.bias_ratio"
        )
        row = row._replace(concept=pool, note=note)
        known = options.effect is not None and np.isfinite(less)
        yield from plan_rows(row, row.n * people_needed(less, options.effect or 1.0) if known else None, options)


def _belief(pool: str, groups: Groups, options: PlanOptions) -> tuple[Belief, str]:
    """From men's belief in an earlier run, and the width of its interval; else as assumed."""
    right = correct_occupation(pool, "man")
    rows = of_run(options, "occupation_probability", subset=pool, group="man", concept=right)
    if rows is None or not (rows := rows.filter(PLAIN).drop_nulls(["value", "low", "high"])).height:
        return Belief(DEVIATION, MEAN), f"belief assumed to have the mean {MEAN:g} and the deviation {DEVIATION:g}"
    row = rows.row(0, named=True)
    deviation = (row["high"] - row["low"]) / (2 * NORMAL) * np.sqrt(row["n"])
    mean = float(np.clip(row["value"], 0.01, 0.99))
    return Belief(min(float(deviation), 0.95 * np.sqrt(mean * (1 - mean))), mean), "mean and spread from the run"
