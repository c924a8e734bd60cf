"""How small a gap of an own prompt can be found with these groups."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison import groups_of, people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.datasets.survey import columns_of
from beholder.studies.planning import Planned, PlanOptions, detectable_rows

PROMPTS = 10
SCORES = Scores(0.25, mean=0.5)
"""Of a prompt's share of belief, between people: assumed."""
SOURCE = f"spread of a prompt's share of belief assumed to be {SCORES.deviation:g}, and its mean {SCORES.mean:g}"


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every column with groups, the smallest gap of one prompt among ten that can be found.

    Labels that are spread unequally over the groups are what an audit should compare within, so it is planned so.
    """
    people = people_of(dataset.table, options.person)
    kinds = {each.name: each.role for each in columns_of(dataset) if each.name != people.column}
    columns = [name for name, role in kinds.items() if role in ("groups", "numbers")]
    every = groups_of(dataset.table, columns)
    labels = pl.DataFrame({each.attribute: each.labels() for each in every})
    planned = []
    for groups in every:
        uneven = [each.column for each in groups.large(people).balance(labels, people, labels.columns)]
        strata = strata_of(labels, groups.large(people), uneven, people)
        planned.append(Planned("custom.gap", groups, SCORES, SOURCE, strata=strata, columns=PROMPTS, rests=True))
    yield from detectable_rows(planned, people, options)
