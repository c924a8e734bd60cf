"""A small study for the tests of calibration: the mean of every prompt, compared by gender and by race."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter
from beholder.chapter.finding import Finding, finding, verdict_of_rows
from beholder.comparison.family import comparison_at, judge
from beholder.comparison.groups import group_by, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.core.results import Row
from beholder.studies.study import Asks, MeasureOptions, Measures, Metric, Plans, Study, Tells
from beholder.studies.worlds import GENDER_ONLY, Trial, World

COMPARED = {"gender": "race", "race": "gender"}


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """A row for every prompt and attribute."""
    people, parts, tables = people_of(world.table), [], []
    for name, other in COMPARED.items():
        groups = group_by(world.table, (name,))
        strata = strata_of(world.table, groups, (other,), people)
        tables.append((name, groups, strata))
        parts.append(
            compare_groups(world.scores, groups, people, options.rng(), strata=strata, shuffles=options.shuffles)
        )
    for (name, groups, strata), judged in zip(tables, judge(parts), strict=True):
        for column in range(world.scores.shape[1]):
            each = comparison_at(judged, (0, column), *groups.names[:2])
            row = Row("gaps.gap", each.value, world.table.height, "score", subset=name, concept=str(column))
            yield from each.rows(row, strata)
    yield Row("gaps.paper", 0.1, 9, "score", p_value=0.01)


def findings(part: pl.DataFrame) -> Iterator[Finding]:
    """One for each attribute."""
    for name in COMPARED:
        rows = part.filter(metric="gaps.gap", subset=name).to_dicts()
        if rows:
            yield finding(rows[0], "headline", "", "", verdict=verdict_of_rows(rows))


CHAPTER = Chapter({}, findings=findings)
TRIALS = Trial(
    2, measure, {GENDER_ONLY: ("gaps.gap:gender", "gaps.headline:gender")}, found=("gaps.gap", "gaps.headline")
)
GAPS = Study(
    name="gaps",
    title="Gaps",
    question="Who?",
    citation="our own",
    asks=Asks(datasets=(), tasks=lambda dataset: ()),
    measures=Measures(functions=(), metrics=(Metric("gaps.gap", "", "score", "", 0.0),)),
    tells=Tells(chapter="gaps_study:CHAPTER"),
    plans=Plans(trials="gaps_study:TRIALS"),
)
