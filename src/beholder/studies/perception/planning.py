"""Which difference between groups' judgements can be found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.power import ALPHA, detectable_gap, times_as_many
from beholder.studies.perception.scores import groupings
from beholder.studies.planning import PlanOptions, describe_groups, plan_rows

DIMENSIONS = 8


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    for groups in groupings(dataset.table):
        sizes = sorted(int(n) for n in np.bincount(groups.codes[groups.codes >= 0]) if n > 1)
        if len(sizes) < 2:
            continue
        pairs = len(sizes) * (len(sizes) - 1) // 2
        gap = detectable_gap(sizes[:2], 1.0, alpha=ALPHA / (pairs * DIMENSIONS), power=options.power)
        note = (
            f"{describe_groups(sizes)}: the two smallest, in standard deviations of Δ between images; "
            f"Benjamini–Hochberg over {pairs} pairs × {DIMENSIONS} dimensions; images as if each showed someone else"
        )
        row = Row("plan.detectable", gap, sum(sizes), "standard deviations", subset="perception.gap", note=note)
        row = row._replace(concept=groups.attribute)
        needed = sum(sizes) * times_as_many(gap, options.effect) if options.effect else None
        yield from plan_rows(row, needed, options)
