"""How small a gap of a trait can be found with these groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.power import ALPHA, detectable_gap, prompts_needed, times_as_many
from beholder.studies.gras.groups import ATTRIBUTES
from beholder.studies.planning import PlanOptions, describe_groups, group_sizes, of_run, plan_rows

TRAITS = 100
ANSWER_DEVIATION = 0.25
"""Standard deviation of P(Yes) between images in one wording, in the oracle's world of traits."""
WORDING_INTERPLAY = 0.02
"""How far a gap moves from one wording to another: assumed to be two points."""


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every attribute, the smallest gap that can be found, and the images and wordings that a given gap needs."""
    for attribute in ATTRIBUTES:
        if attribute not in dataset.table.columns:
            continue
        sizes = group_sizes(dataset.table, attribute)
        if len(sizes) < 2:
            continue
        deviation, source = _answer_deviation(attribute, options)
        gap = detectable_gap(sizes, deviation, alpha=ALPHA / TRAITS, power=options.power)
        groups = f"{describe_groups(sizes)}: one of {TRAITS} traits, one group against all others"
        note = f"{groups}; Benjamini–Hochberg over traits; {source}"
        row = Row("plan.detectable", gap, sum(sizes), "probability", subset="gras.largest_gap", concept=attribute)
        row = row._replace(note=note)
        needed = sum(sizes) * times_as_many(gap, options.effect) if options.effect else None
        yield from plan_rows(row, needed, options)
        yield from _prompt_rows(row, sizes, deviation, options)


def _answer_deviation(attribute: str, options: PlanOptions) -> tuple[float, str]:
    """The spread of P(Yes) and its source: the median over traits in an earlier run, or an assumption.

    In a run it follows from the intervals of the group means.
    """
    rows = of_run(options, "group_mean", subset=attribute)
    if rows is None or not rows.height:
        return ANSWER_DEVIATION, f"cautious: spread of P(Yes) in one wording assumed to be {ANSWER_DEVIATION:g}"
    width, n = (rows["high"] - rows["low"]).to_numpy(), rows["n"].to_numpy()
    spreads = width / 2 / special.stdtrit(n - 1.0, 0.975) * np.sqrt(n)
    return float(np.nanmedian(spreads)), "cautious: spread of P(Yes) in one wording from the run"


def _prompt_rows(row: Row, sizes: list[int], deviation: float, options: PlanOptions) -> Iterator[Row]:
    """How many wordings it takes for the gap to hold for wordings that were not asked."""
    if options.effect is None:
        return
    error = deviation * np.sqrt(2 / sizes[0])
    needed = prompts_needed(options.effect, float(error), WORDING_INTERPLAY, alpha=ALPHA / TRAITS, power=options.power)
    known = np.isfinite(needed)
    note = f"wordings for a gap of {options.effect:g} that holds beyond the wordings asked; assumed: it moves by "
    note += f"{WORDING_INTERPLAY:g} from one wording to another"
    note += "" if known else "; no number of wordings makes up for too few images"
    value = max(2.0, float(np.ceil(needed))) if known else None
    yield row._replace(metric="plan.prompts_needed", value=value, unit="wordings", note=note)
