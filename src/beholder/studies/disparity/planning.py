"""The gap of average precision that can be found for a rare, a middling and a frequent concept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.core.errors import UsageError
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.power import ALPHA, detectable, times_as_many
from beholder.metrics.precision_gaps import shuffled
from beholder.studies.planning import PlanOptions, plan_rows

QUALITY, SHUFFLES, SEED = 1.5, 400, 8
"""How well the oracle separates images that show a concept from others; shuffles per number; seed."""


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The gap of average precision that the counts of a rare, a middling and a frequent concept can show."""
    if dataset.objects is None or "gender" not in dataset.table.columns:
        raise UsageError(
            f"{dataset.name} does not say what its images show and who is in them: disparity cannot be planned."
        )
    people = dataset.table.select("image_id", "gender").drop_nulls()
    sizes = people["gender"].value_counts().sort("gender")
    counts = (
        dataset.objects.join(people, on="image_id")
        .group_by("concept")
        .agg((pl.col("gender") == group).sum().alias(group) for group in sizes["gender"])
        .filter(pl.min_horizontal(sizes["gender"].to_list()) >= FEWEST)
        .sort(pl.min_horizontal(sizes["gender"].to_list()), "concept")
    )
    for index in sorted({0, counts.height // 2, counts.height - 1} if counts.height else set()):
        row = counts.row(index, named=True)
        shown = [row[group] for group in sizes["gender"]]
        gap = _detectable_precision(sizes["count"].to_list(), shown, ALPHA / counts.height, options.power)
        described = ", ".join(f"{n} of {group}" for n, group in zip(shown, sizes["gender"], strict=True))
        note = f"{described}: at matched prevalence; corrected over {counts.height} concepts"
        note += "; assumes scores as good as the oracle's"
        plan = Row("plan.detectable", gap, sum(sizes["count"]), "average precision", subset="disparity.ap_gap_matched")
        plan = plan._replace(concept=row["concept"], note=note)
        needed = plan.n * times_as_many(gap, options.effect) if options.effect else None
        yield from plan_rows(plan, needed, options)


def _detectable_precision(sizes: list[int], shown: list[int], alpha: float, power: float) -> float:
    """From the spread of the gap with shuffled labels, in a world with these counts."""
    rng = np.random.default_rng(SEED)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shows = np.concatenate([np.arange(size) < count for size, count in zip(sizes, shown, strict=True)])
    scores = rng.standard_normal(len(groups)) + QUALITY * shows
    own, rest = shuffled(scores[:, None], shows[:, None], groups, rng, SHUFFLES)
    return detectable(float(np.nanstd(own.matched[0, 0] - rest.matched[0, 0])), alpha=alpha, power=power)
