"""Planning: which ratio b can be distinguished from 1, given the numbers of women and men."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from beholder.core.errors import UsageError
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.power import ALPHA, detectable, detectable_ratio, times_as_many
from beholder.studies.planning import NORMAL, PlanOptions, of_run, plan_rows

BELIEF_VARIATION = 0.57
"""Standard deviation of belief over its mean in the oracle's world of public figures (mean 0.6)."""


def ratio_plan(
    prefix: str, pooled: Mapping[str, tuple[str, ...]], dataset: Dataset, options: PlanOptions
) -> Iterator[Row]:
    """The smallest detectable effect of every pool, and with `--effect` how many people it takes."""
    pools = {
        name: images
        for name, branches in pooled.items()
        if (images := dataset.table.filter(pl.col("branch").is_in(branches))).height
    }
    counted = {name: _women_and_men(images) for name, images in pools.items()}
    counted = {name: sizes for name, sizes in counted.items() if min(sizes) > 1}
    for pool, sizes in counted.items():
        variation, origin = _belief_variation(pool, sizes, options)
        ratio = detectable_ratio(sizes, variation, alpha=ALPHA / len(counted), power=options.power)
        answer = f"b below {ratio:.2f}" if ratio else "no b is low enough"
        note = f"{sizes[0]} women, {sizes[1]} men: {answer}; Holm over {len(counted)} pools; {origin}"
        row = Row(
            "plan.detectable",
            1 - ratio if ratio else None,
            sum(sizes),
            "1 − b",
            subset=f"{prefix}.bias_ratio",
            concept=pool,
            note=note,
        )
        needed = None
        if options.effect:
            wanted = {"alpha": ALPHA / len(counted), "power": options.power}
            needed = sum(sizes) * _times_for_ratio(1 - options.effect, sizes, variation, **wanted)
        yield from plan_rows(row, needed, options)


def _times_for_ratio(ratio: float, sizes: tuple[int, int], variation: float, *, alpha: float, power: float) -> float:
    """How many times as many people make this ratio detectable."""
    if not 0 < ratio < 1:
        raise UsageError("For a ratio, --effect is 1 − b: a number between 0 and 1.")
    error = variation * np.sqrt(1 / (ratio**2 * sizes[0]) + 1 / sizes[1])
    return times_as_many(detectable(float(error), alpha=alpha, power=power), float(-np.log(ratio)))


def _women_and_men(images: pl.DataFrame) -> tuple[int, int]:
    return tuple(int((images["gender"] == group).sum()) for group in ("woman", "man"))  # type: ignore[return-value]


def _belief_variation(pool: str, sizes: tuple[int, int], options: PlanOptions) -> tuple[float, str]:
    """From the width of an earlier run's interval on the log scale, else the oracle's value."""
    rows = of_run(options, "bias_ratio", subset=pool)
    if rows is None or not rows.height or rows["low"][0] is None:
        return BELIEF_VARIATION, f"spread of belief assumed: {BELIEF_VARIATION:g} of its mean"
    row = rows.row(0, named=True)
    error = np.log(row["high"] / row["low"]) / (2 * NORMAL)
    return float(error / np.sqrt(1 / sizes[0] + 1 / sizes[1])), "spread from the run"
