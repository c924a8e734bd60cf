"""How small a gap of an own prompt can be found with these groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.datasets.survey import columns_of
from beholder.metrics.power import ALPHA, detectable_gap, times_as_many
from beholder.studies.custom.groups import groups_of, people_of
from beholder.studies.planning import PlanOptions, describe_groups, plan_rows

PROMPTS = 10
DEVIATION = 0.25
"""Standard deviation between images of a prompt's share of belief: assumed."""


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every column with groups, the smallest gap of one prompt among ten that can be found."""
    table = dataset.table
    columns = [each.name for each in columns_of(dataset) if each.role in ("groups", "numbers")]
    compared = [each.large(people_of(table), np.ones(table.height, bool)) for each in groups_of(table, columns)]
    compared = [each for each in compared if len(each.names) > 1]
    for groups in compared:
        sizes = sorted(np.bincount(groups.codes[groups.codes >= 0]).tolist())
        tests = PROMPTS * len(compared)
        gap = detectable_gap(sizes, DEVIATION, alpha=ALPHA / tests, power=options.power)
        note = (
            f"{describe_groups(sizes)}: one of {PROMPTS} prompts, one group against all others; "
            f"corrected for all prompts and {len(compared)} attributes; images as if each showed someone else; "
            f"spread of a prompt's share of belief assumed to be {DEVIATION:g}"
        )
        row = Row("plan.detectable", gap, sum(sizes), "probability", subset="custom.gap", concept=groups.attribute)
        needed = sum(sizes) * times_as_many(gap, options.effect) if options.effect else None
        yield from plan_rows(row._replace(note=note), needed, options)
