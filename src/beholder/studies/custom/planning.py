"""How small a gap of an own prompt can be found with these groups."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.comparison.groups import groups_of
from beholder.comparison.people import people_of
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
    """For every column with groups, the smallest gap of one prompt among ten that can be found."""
    table, people = dataset.table, people_of(dataset.table, options.person)
    columns = [each.name for each in columns_of(dataset) if each.role in ("groups", "numbers")]
    planned = [
        Planned("custom.gap", groups, SCORES, SOURCE, columns=PROMPTS, rests=True)
        for groups in groups_of(table, columns)
    ]
    yield from detectable_rows(planned, people, options)
