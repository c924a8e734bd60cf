"""GRAS's scores and valence shares once more, from the authors' result files, in the plainest way."""

from __future__ import annotations

import polars as pl

from beholder.studies.gras.prompts import read_traits
from beholder.studies.gras.study import gras_results


def score(model: str) -> float:
    """Mean over attributes of the per cent of traits with p ≤ 0.05 in any wording."""
    tests = gras_results().filter(pl.col("attribute").is_not_null(), model=model, what="p_value")
    calls = tests.group_by("attribute", "trait").agg(called=(pl.col("value") <= 0.05).any())
    return float(100 * calls.group_by("attribute").agg(pl.col("called").mean())["called"].mean())


def valence_share(model: str, attribute: str, group: str, valence: str) -> float:
    """Per cent of the valence's traits whose group mean exceeds the mean of the groups in every wording."""
    means = gras_results().filter(model=model, attribute=attribute, what="group_mean")
    overall = means.group_by("trait", "template").agg(overall=pl.col("value").mean())
    own = means.filter(group=group).join(overall, on=["trait", "template"])
    above = own.group_by("trait").agg(above=(pl.col("value") > pl.col("overall") + 1e-13).all())
    traits = read_traits().filter(valence=valence).select("trait")
    return float(100 * traits.join(above, on="trait")["above"].mean())
