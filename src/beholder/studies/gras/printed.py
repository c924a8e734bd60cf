"""The printed numbers of GRAS: scores, the one cell of its valence table that deviates, result files, and checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from beholder.studies.printed import CELL, Cell, Printed, Source

METRICS = {  # what the result files hold, by our metric; a p-value is named after its statistic
    "statistic": "gras.welch",
    "p_value": "gras.welch.p_value",
    "template_anova_p": "gras.template_anova.p_value",
    "template_friedman_p": "gras.template_friedman.p_value",
}
OUR_COLUMNS = {"attribute": "subset", "trait": "concept", "value": "printed"}


@cache
def gras_results() -> pl.DataFrame:
    """The authors' 20 wide files as one tidy table: `model, attribute, trait, template, what, group, value`."""
    table = pl.read_parquet(Path(__file__).with_name("result_files.parquet").read_bytes())
    return table.with_columns(pl.col(name).cast(pl.String) for name in table.columns if name != "value")


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


def _impossible(row: Cell) -> str | None:
    if row["source"] != "gras_valence":
        return None
    return "the authors' own group means give 14; every other cell of the printed table follows from them"


PAPER = "GRAS, ask me again differently (2025)"
SATURATED = "All five lie within two points of the top, where nearly every trait is significant: they hardly differ."
SCORES = "GRAS Bias Score and its complement (the earlier abstract's share of unbiased traits), 5 models"
RESULTS = "92,000 group means, statistics and p-values, 5 models"
SOURCES = (
    Source("gras_scores", f"{PAPER}, text and abstract", SCORES, (SATURATED,)),
    Source("gras_valence", f"{PAPER}, valence table", "the one cell that deviates; the others are not at hand"),
    Source("gras_results", f"{PAPER}, result files", RESULTS, on_request=True),
)
PRINTED = Printed(Path(__file__).with_name("printed.csv"), SOURCES, more=result_cells, impossible=_impossible)
