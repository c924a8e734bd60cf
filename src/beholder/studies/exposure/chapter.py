"""The chapter on captions: who is named, which words occur, and whether a model knows the people that are named."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter, Question, rows_of
from beholder.chapter.charts import Axis, Figure, Rows, dots, forest
from beholder.chapter.numbers import listed, percent
from beholder.studies.exposure.findings import exposure_findings
from beholder.studies.exposure.tables import exposure_tables, found, typical_ratios


def exposure_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """One chart for each question that was measured."""
    ratios = [row for row in typical_ratios(results) if row["value"]]
    never = [row for row in rows_of(results, "never") if row["value"] is not None]
    known = [row for row in rows_of(results, "identity_correlation") if row["value"] is not None]
    if ratios:
        yield _ratio_figure(ratios)
    if never:
        yield _never_figure(never)
    if known:
        yield _correlation_figure(known)


def _ratio_figure(rows: Rows) -> Figure:
    bounds = [bound for row in rows for key in ("value", "low", "high") if (bound := row[key])]
    domain = [min(0.5, 0.95 * min(bounds)), max(2.0, 1.05 * max(bounds))]
    scale = {"type": "log", "domain": domain, "nice": False}
    x = Axis("women ÷ men (logarithmic)", scale=scale, labels={"format": "~g"})
    away = sum(map(found, rows))
    return Figure(
        "captions-women-over-men",
        f"Captions per person, women over men: a difference was found in {away or 'none'} of {len(rows)} ratios",
        "Geometric means of 1 + captions, with 95 % intervals that hold for all of them together; over all branches "
        "women are compared with men of their own branch. The line at 1 means alike; to the left of it women are named "
        "less.",
        forest(rows, x, landmark=1.0),
        "named",
    )


def _never_figure(rows: Rows) -> Figure:
    """Branches down, women and men as coloured shapes."""
    most = max(rows, key=lambda row: float(row["value"]))
    return Figure(
        "never-named",
        f"Never named: up to {percent(most['value'])} ({most['subset']})",
        "Share of people whom no caption names, with 95 % intervals.",
        dots([{**row, "concept": row["subset"]} for row in rows], title="share of people"),
        "named",
    )


def _correlation_figure(rows: Rows) -> Figure:
    x = Axis("Spearman's correlation", scale={"domain": [-1, 1]})
    away = sum(map(found, rows))
    return Figure(
        "named-and-known",
        f"Captions and known names: a link was found in {away or 'none'} of {len(rows)} correlations",
        "With 95 % intervals that hold for all of them together, within branch and gender. To the right of the line: "
        "the model knows people better whom more captions name.",
        forest(rows, x, landmark=0.0),
        "known",
        wide=True,
    )


# The chapter on captions

TOPICS = {"named": "Who is named", "words": "Which words occur", "known": "Named and known"}
QUESTIONS = {
    "named": Question("Are women named as often as men?", "named"),
    "words": Question("How often do captions say “actress” and “actor”?", "words"),
    "known": Question("Does a model know the people best that captions name most?", "known"),
    "gap": Question("Does a model know women and men equally well by name?", "known"),
}


def page_title(names: list[str]) -> str:
    """The captions come first, then the models that are compared with them."""
    title = f"Who is named in {names[0]}"
    return f"{title}, compared with what {listed(names[1:])} knows" if names[1:] else title


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=exposure_findings,
    tables=exposure_tables,
    figures=exposure_figures,
    page_title=page_title,
)
