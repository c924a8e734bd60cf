"""How small a gap of a trait can be found with these people, groups and strata."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from beholder.comparison import group_by, people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.studies.gras.groups import ATTRIBUTES, WITHIN
from beholder.studies.planning import Planned, PlanOptions, detectable_rows, of_run

TRAITS = 100
ANSWERS = Scores(0.2, mean=0.5)
"""Of a trait's P(Yes), the mean over its wordings, between people: assumed."""


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every attribute, the smallest gap of one trait that can be found, all attributes as one family."""
    table, people, planned = dataset.table, people_of(dataset.table, options.person), []
    for attribute in ATTRIBUTES:
        if attribute in table.columns and table[attribute].drop_nulls().n_unique() > 1:
            groups = group_by(table, (attribute,))
            strata = strata_of(table, groups.large(people), WITHIN, people)
            scores, source, traits = _answers(attribute, options)
            own = Planned("gras.largest_gap", groups, scores, source, strata=strata, columns=traits, what="traits")
            planned.append(own)
    yield from detectable_rows(planned, people, options)


def _answers(attribute: str, options: PlanOptions) -> tuple[Scores, str, int]:
    """The spread of a trait's P(Yes), its source and the number of traits: the median of an earlier run, or assumed."""
    rows = of_run(options, "trait_mean", subset=attribute)
    if rows is None or not rows.height:
        source = f"spread of a trait's P(Yes) assumed to be {ANSWERS.deviation:g}, and its mean {ANSWERS.mean:g}"
        return ANSWERS, source, TRAITS
    n = rows["n"].to_numpy().astype(np.float64)
    spreads = (rows["high"] - rows["low"]).to_numpy() / 2 / special.stdtrit(n - 1, 0.975) * np.sqrt(n)
    scores = Scores(float(np.nanmedian(spreads)), float(np.clip(rows["value"].to_numpy().mean(), 0.01, 0.99)))
    return scores, "spread of a trait's P(Yes) from the run", rows.height
