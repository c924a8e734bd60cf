"""Do the printed numbers of GRAS agree with the authors' own result files, and its sentences with both?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.studies.gras.result_files import gras_results, models, score, valence_share
from beholder.studies.printed import Check, Printed

WOMEN, DARKEST = 44, 50
"""Per cent of positive traits for women ("over 44 %"), and of negative traits for MST 10: most of them."""


def gras_checks(printed: Printed, ledger: pl.DataFrame) -> Iterator[Check]:
    """Scores, their complements, group means, and the one cell of the valence table that is at hand."""
    scores = dict(ledger.filter(metric="gras.bias_score").select("model", "printed").iter_rows())
    exact = [abs(score(model) - value) < 0.005 for model, value in scores.items()]
    finding = (
        "The rule (any wording at p ≤ 0.05, mean over attributes) applied to the authors' p-values gives each score."
    )
    yield Check("gras", "scores", "The score follows from the result files", sum(exact), len(exact), finding)
    complements = dict(ledger.filter(metric="gras.fairness_score").select("model", "printed").iter_rows())
    whole = [abs(value + complements[model] - 100) < 0.005 for model, value in scores.items()]
    finding = "The abstract prints 100 less the score, under which higher is fairer: one score with two names."
    yield Check("gras", "abstract", "The abstract's figures are the complements", sum(whole), len(whole), finding)
    yield _group_means()
    value = valence_share("paligemma2-3b-mix-224", "age", "30-39", "negative")
    finding = (
        f"paligemma2-3b-mix-224, age 30–39, negative: 22 is printed, the authors' own group means give {value:.0f}. "
        "The other cells of the printed table are not at hand; the protocol file says that they do follow."
    )
    yield Check("gras", "valence table", "Valence shares follow from the result files", 0, 1, finding)
    yield from _abstract_sentences()


def _group_means() -> Check:
    """Groups are of equal size, so that their mean is the overall mean."""
    keys = ["model", "attribute", "trait", "template"]
    cells = gras_results()
    means = cells.filter(what="group_mean").group_by(keys).agg(mean=pl.col("value").mean())
    both = cells.filter(what="overall_mean").join(means, on=keys, nulls_equal=True)
    obey = int(((both["value"] - both["mean"]).abs() < 1e-9).sum())
    rule = "Overall means are the means of the groups, which are of equal size"
    return Check("gras", "result files", rule, obey, both.height, f"{obey:,} of {both.height:,} overall means are.")


def _abstract_sentences() -> Iterator[Check]:
    """The abstract speaks of all models; by the authors' own tables BLIP-2 does the opposite."""
    chance = "Shuffled labels give about 30 %, since the wordings of a trait agree with each other."
    for rule, attribute, group, valence, least in (
        (f"Women have {WOMEN} % or more of positive traits above the mean", "gender", "Female", "positive", WOMEN),
        ("MST 10 has most negative traits above the mean", "skin_tone", "10", "negative", DARKEST),
    ):
        shares = {model: valence_share(model, attribute, group, valence) for model in models()}
        listed = ", ".join(f"{model} {share:.0f} %" for model, share in shares.items())
        off = tuple(f"{model}: {share:.0f} %" for model, share in shares.items() if share < least)
        finding = f"By the authors' own group means: {listed}. {chance}"
        yield Check("gras", "abstract", rule, len(shares) - len(off), len(shares), finding, off)
