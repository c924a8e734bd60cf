"""Findings across models: what goes with more parameters and with more training pairs."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, valued, verdict_of_rows
from beholder.chapter.numbers import MINUS, Result, has_interval, row_p_value, signed
from beholder.chapter.phrases import listed
from beholder.comparison import DIFFERENCE
from beholder.studies.public_figures.queries import found

WHAT = {
    "identity_given_image": "belief on the right name, given an image",
    "identity_given_name": "belief on the right image, given a name",
}
BY = {"scale_parameters": "parameters", "scale_pairs": "training pairs (at equal parameters)"}
NO_SAMPLE = "Models are no random sample, and those of one series are alike, so this need not be an effect of size."


def scale_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Every slope that was found, in one finding."""
    rows = [row for metric in BY for row in valued(part, metric)]
    if not rows:
        return
    there = sorted((row for row in rows if found(row)), key=lambda row: row["p_value"])
    models = max(row["n"] for row in rows)
    if there:
        first = there[0]
        headline = f"Over up to {models} models, more {axis(first)} go with {_change(first)}"
        sentence = f"For ten times the {_slopes(there)}. {_rest(len(rows) - len(there))}{NO_SAMPLE}"
        more = [row for row in rows if row is not first]
        yield finding(first, "scale", headline, sentence, verdict=DIFFERENCE, effect=1.0, more=more)
    else:
        least = min(rows, key=lambda row: 1.0 if row["p_value"] is None else row["p_value"])
        headline = f"Over up to {models} models, no effect of size or training data was found"
        sentence = (
            f"{len(rows)} slopes were tested. The clearest, for ten times the {_slopes([least])}. "
            f"The intervals, which hold for all of them at once, tell what is still possible. {NO_SAMPLE}"
        )
        more = [row for row in rows if row is not least]
        yield finding(least, "scale", headline, sentence, verdict=verdict_of_rows(rows), more=more)


def axis(row: Result) -> str:
    """What grows along the axis."""
    return "parameters" if row["metric"].endswith("scale_parameters") else "training pairs"


def what(row: Result) -> str:
    """What was measured."""
    if row["concept"] == "bias_ratio":
        return f"distance of the bias ratio from 1 for {row['subset']}"
    return WHAT.get(row["concept"], f"belief on the right {row['subset']}")


def _change(row: Result) -> str:
    if row["concept"] == "bias_ratio":
        return f"a bias ratio {'farther from' if row['value'] > 0 else 'nearer to'} 1 for {row['subset']}"
    return f"{'more' if row['value'] > 0 else 'less'} {what(row)}"


def _slopes(rows: list[Result]) -> str:
    return listed([f"{BY[row['metric'].partition('.')[2]]}: {slope(row)} in {what(row)}" for row in rows[:4]])


def slope(row: Result) -> str:
    """The slope with its interval, p and number of models."""
    interval = f"95 % interval {size(row, row['low'])} to {size(row, row['high'])}; " if has_interval(row) else ""
    tested = f"p = {row_p_value(row)}; ".replace("= <", "<").replace("= ≤", "≤") if row["p_value"] is not None else ""
    unit = "" if row["concept"] == "bias_ratio" else " points"
    return f"{size(row, row['value'])}{unit} ({interval}{tested}{row['n']} models)"


def size(row: Result, value: float) -> str:
    """A slope in points, or for b in e-folds of its distance from 1."""
    if row["concept"] != "bias_ratio":
        return signed(value)
    text = f"{value:+.2f}".replace("-", MINUS)
    return text.lstrip("+" + MINUS) if float(f"{value:.2f}") == 0 else text


def _rest(number: int) -> str:
    return (
        f"{number} other slopes were not found. " if number > 1 else "One other slope was not found. " if number else ""
    )
