"""The printed numbers of GRAS: scores, the one cell of its valence table that deviates, result files, and checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from beholder.studies.gras.result_files import gras_results, models, score, valence_share
from beholder.studies.printed import CELL, Cell, Check, Printed, Source

METRICS = {
    "statistic": "gras.welch",
    "p_value": "gras.welch.p_value",
    "template_anova_p": "gras.template_anova.p_value",
    "template_friedman_p": "gras.template_friedman.p_value",
}
"""What the result files hold, by our metric; a p-value is named after its statistic."""
OUR_COLUMNS = {"attribute": "subset", "trait": "concept", "value": "printed"}


def result_cells() -> pl.DataFrame:
    """The 92,000 group means, statistics and p-values of the result files."""
    metric = pl.col("what").replace_strict(METRICS, default=pl.concat_str(pl.lit("gras."), pl.col("what")))
    attribute = pl.col("attribute").fill_null("wordings").str.replace("_", " ")
    cells = gras_results().with_columns(
        source=pl.lit("gras_results"),
        place=pl.concat_str(pl.lit("result file, "), attribute),
        dataset=pl.lit("gras"),
        metric=metric,
        against=pl.lit(None, CELL["against"]),
        step=pl.col("value").abs().clip(lower_bound=1e-300) * 1e-12,
        unit=pl.lit(None, CELL["unit"]),
    )
    return cells.rename(OUR_COLUMNS).select(list(CELL))


def _derived(cells: pl.DataFrame) -> pl.DataFrame:
    """Scores, their complements and the valence cell, all from the result files."""
    note = "from the authors' 2,000 p-values of this model"
    rows = [
        {"model": model, "dataset": "gras", "metric": f"gras.{name}", "value": value, "n": 100, "note": note}
        for model in models()
        for name, value in (("bias_score", score(model)), ("fairness_score", 100 - score(model)))
    ]
    valence = cells.filter(source="gras_valence").to_dicts()
    rows += [
        {
            **{name: row[name] for name in ("model", "dataset", "metric", "subset", "group", "concept")},
            "value": valence_share(row["model"], row["subset"], row["group"], row["concept"]),
            "n": 50,
            "note": "from the authors' own group means",
        }
        for row in valence
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _impossible(row: Cell) -> str | None:
    if row["source"] != "gras_valence":
        return None
    return "the authors' own group means give 14; every other cell of the printed table follows from them"


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


def _group_means() -> Check:
    """Groups are of equal size, so that their mean is the overall mean."""
    keys = ["model", "attribute", "trait", "template"]
    cells = gras_results()
    means = cells.filter(what="group_mean").group_by(keys).agg(mean=pl.col("value").mean())
    both = cells.filter(what="overall_mean").join(means, on=keys, nulls_equal=True)
    obey = int(((both["value"] - both["mean"]).abs() < 1e-9).sum())
    rule = "Overall means are the means of the groups, which are of equal size"
    return Check("gras", "result files", rule, obey, both.height, f"{obey:,} of {both.height:,} overall means are.")


PAPER = "GRAS, ask me again differently (2025)"
SATURATED = (
    "All five lie within two points of the top, where nearly every trait is significant: the score hardly tells them "
    "apart."
)
SCORES = "GRAS Bias Score and its complement (the earlier abstract's share of unbiased traits), 5 models"
RESULTS = "92,000 group means, statistics and p-values, 5 models"
SOURCES = (
    Source("gras_scores", f"{PAPER}, text and abstract", SCORES, (SATURATED,)),
    Source("gras_valence", f"{PAPER}, valence table", "the one cell that deviates; the others are not at hand"),
    Source("gras_results", f"{PAPER}, result files", RESULTS, on_request=True),
)
PRINTED = Printed(
    Path(__file__).with_name("printed.csv"),
    SOURCES,
    more=result_cells,
    derived=_derived,
    checks=gras_checks,
    impossible=_impossible,
)
