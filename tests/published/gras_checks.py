"""GRAS's scores and valence shares once more, from the authors' result files, in the plainest way."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.studies.gras.prompts import read_traits
from beholder.studies.gras.study import gras_results
from beholder.studies.printed import Check


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


SENTENCES: tuple[tuple[int, str, str, str, tuple[str, ...]], ...] = (
    (60, "Men", "negative", "gender", ("Male",)),
    (88, "Middle Eastern faces", "negative", "race", ("Middle Eastern",)),
    (80, "MST 8 to 10", "negative", "skin_tone", ("8", "9", "10")),
    (66, "MST 5", "positive", "skin_tone", ("5",)),
    (44, "Women", "positive", "gender", ("Female",)),
)
"""The abstract's thresholds; of whom they are said is read off the authors' files, for its text is not at hand."""
INFERRED = "Only the threshold is at hand: whom the sentence is about is the group whose shares it bounds. "
BY_CHANCE = "Shuffled labels give about 30 %, since the wordings of a trait agree with each other."


def sentences() -> Iterator[Check]:
    """Every valence sentence of the abstract: which models keep it, by the authors' own group means."""
    models = sorted(gras_results()["model"].unique())
    for threshold, who, valence, attribute, groups in SENTENCES:
        shares = {model: min(valence_share(model, attribute, group, valence) for group in groups) for model in models}
        off = tuple(f"{model}: {share:.0f} %" for model, share in shares.items() if share < threshold)
        least = ", the least of the three" if len(groups) > 1 else ""
        listed = ", ".join(f"{model} {share:.0f} %" for model, share in shares.items())
        inferred = "" if who == "Women" else INFERRED
        finding = f"By the authors' own group means{least}: {listed}. {inferred}{BY_CHANCE}"
        rule = f"{who} have {threshold} % or more of {valence} traits above the mean"
        yield Check("gras", "abstract", rule, len(models) - len(off), len(models), finding, off)
