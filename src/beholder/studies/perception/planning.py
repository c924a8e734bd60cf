"""Which difference between groups' judgements can be found."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.comparison import people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.studies.perception.scores import GROUPED, groupings
from beholder.studies.rows import Planned, PlanOptions, detectable_rows

DIMENSIONS = 8
SOURCE = "in standard deviations of Δ between people"


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """All attributes, crossed groups and dimensions are one family, as in the audit."""
    people = people_of(dataset.table, options.person)
    planned = [
        Planned(
            "perception.gap",
            groups,
            Scores(),
            SOURCE,
            "standard deviations",
            strata_of(dataset.table, groups, GROUPED, people),
            DIMENSIONS,
            "dimensions",
        )
        for groups in groupings(dataset.table)
        if len(groups.names) > 1
    ]
    yield from detectable_rows(planned, people, options)
