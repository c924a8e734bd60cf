"""Disparity's chart parts: bars and spread of gaps, reliability, scatter. Each is one view as wide as its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from beholder.chapter.chart_style import GROUP_SHAPES, QUIET, SERIES
from beholder.chapter.charts import (
    Axis,
    Layers,
    Rows,
    bars,
    chart,
    curves,
    order,
    points_axis,
    rule_at,
    scatter,
    series,
)
from beholder.studies.disparity.queries import AGREES, OPPOSES, UNKNOWN

WORD_COLOURS = {AGREES: "#4c86c0", OPPOSES: "#c8553d", UNKNOWN: QUIET}
AGREEMENT_COLOURS = {"green": "#2f9e44", "yellow": "#d9a514", "red": "#c92a2a"}
AGREEMENT_SHAPES = {"green": "circle", "yellow": "diamond", "red": "cross"}
BAR, STRIP = 20, 150
"""Pixels per bar, with the space to the next; height of the strip of all gaps."""
STRIP_OF_MODEL, MEANS_OF_MODEL = 90, 44
"""Height of a model's strip, and of its means."""


def gap_bars(rows: Rows, title: str, colours: Mapping[str, str] = WORD_COLOURS) -> Layers:
    """One bar per concept for its matched gap, with whiskers; a tick for the published gap; pale if none found.

    `colours` are those of what `words` says, in the order of the legend.
    """
    several = len(order(rows, "words")) > 1
    marks = series(rows, "words", colours if several else None, alone=False, symbolType="square", columns=2)
    tips: list[str | alt.Tooltip] = [
        *("concept:N", alt.Tooltip("value:Q", title="matched, points"), "low:Q", "high:Q"),
        alt.Tooltip("raw:Q", title="published, points"),
        *(alt.Tooltip("p_value:Q", title="p", format=".2g"), "words:N", "n:Q"),
    ]
    return bars(rows, Axis(title), down="concept", marks=marks, tick="raw", landmark=0.0, tips=tips)


def stacked(rows: list[dict[str, Any]], height: int) -> list[dict[str, Any]]:
    """Dots that would overlap are stacked: `level` from 0 up to 1."""
    values = [row["value"] for row in rows]
    width = max((max(values) - min(values)) / 40, 1e-9)
    counts: dict[int, int] = {}
    levels = []
    for value in values:
        bin_ = int((value - min(values)) / width)
        counts[bin_] = counts.get(bin_, -1) + 1
        levels.append(counts[bin_])
    top = max(height, max(levels) + 1)
    return [{**row, "level": round(level / top, 3)} for row, level in zip(rows, levels, strict=True)]


def gap_strip(rows: Rows, mean: dict[str, Any], title: str) -> Layers:
    """All gaps as stacked dots; above them the difference of the means with its interval."""
    x = alt.X("value:Q", title=title, axis=points_axis())
    found = alt.condition("datum.found", alt.value(0.95), alt.value(0.35))
    dots = (
        chart(rows)
        .mark_circle(size=42, color=SERIES[0], aria=False)
        .encode(
            x=x,
            y=alt.Y("level:Q", axis=None, scale=alt.Scale(domain=[0, 1.15])),
            opacity=found,
            tooltip=["concept:N", alt.Tooltip("value:Q", title="matched, points"), "p_value:Q"],
        )
    )
    top = chart([{**mean, "level": 1.06}]).encode(y="level:Q")
    return alt.layer(
        dots,
        top.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2, color=SERIES[1])
        .encode(x="low:Q", x2="high:Q"),
        top.mark_point(shape="diamond", filled=True, size=110, color=SERIES[1], opacity=1).encode(x="value:Q"),
        rule_at(0.0),
    ).properties(height=STRIP)


def reliability_curve(rows: Rows) -> Layers:
    """The share that shows the concept against confidence: one line per group, dashed where a model is calibrated."""
    whole = {"domain": [0, 1]}
    x = Axis("mean confidence of the bin", percent=True, scale=whole).x("confidence")
    y = Axis("share that shows the concept", percent=True, scale=whole)
    shapes = {group: GROUP_SHAPES.get(group, "circle") for group in order(rows, "group")}
    marks = series(rows, "group", shapes=shapes)
    return curves(rows, x, y, marks=marks, diagonal=True, tips=["group", "confidence"])


def agreement_scatter(rows: Rows, here: str, there: str) -> Layers:
    """The gap on one data set against the gap on another, in the study's three colours; lines at five points."""
    x, y = Axis(f"gap on {here}, points").x("here"), Axis(f"gap on {there}, points").y("there")
    dashed: dict[str, Any] = {"color": QUIET, "strokeDash": [3, 3], "strokeWidth": 1}
    lines = chart([{"at": -5.0}, {"at": 5.0}]).mark_rule(**dashed)
    named = chart([row for row in rows if row["colour"] != "yellow"])
    text = named.mark_text(align="left", dx=6, fontSize=10, color="currentColor", aria=False)
    return scatter(
        rows,
        x,
        y,
        marks=series(rows, "colour", AGREEMENT_COLOURS, AGREEMENT_SHAPES),
        tips=["concept:N", "here:Q", "there:Q", "colour:N"],
        also=[lines.encode(x="at:Q"), lines.encode(y="at:Q"), text.encode(x=x, y=y, text="concept:N")],
        height=320,
    )


def model_strips(rows: Rows, title: str, colours: Mapping[str, str]) -> Layers:
    """A strip of stacked dots for every model, one per concept; a diamond for the mean, if a row has no concept."""
    models, several = order(rows, "model"), len(order(rows, "words")) > 1
    marks = series(rows, "words", colours if several else None, alone=False, columns=2)
    x = alt.X("value:Q", title=title, axis=points_axis())
    y = alt.Y("model:N", title=None, sort=models)
    dots = (
        chart([row for row in rows if row["concept"] is not None])
        .mark_circle(size=34, aria=False)
        .encode(
            x=x,
            y=y,
            yOffset=alt.YOffset("level:Q", scale=alt.Scale(domain=[1.1, -0.1])),
            color=marks.colour,
            opacity=alt.condition("datum.found", alt.value(0.95), alt.value(0.4)),
            tooltip=["model:N", "concept:N", alt.Tooltip("value:Q", title="points"), "words:N"],
        )
    )
    means = chart([row for row in rows if row["concept"] is None]).encode(y=y)
    whisker = means.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, color="currentColor")
    return alt.layer(
        dots,
        whisker.encode(x=alt.X("low:Q"), x2="high:Q"),
        means.mark_point(shape="diamond", filled=True, size=90, color="currentColor", opacity=1).encode(x=x),
        rule_at(0.0),
    ).properties(height=STRIP_OF_MODEL * len(models))


def agreement_bars(rows: Rows) -> Layers:
    """How many concepts are green, yellow and red for every model, side by side in one bar."""
    colour = series(rows, "colour", AGREEMENT_COLOURS).colour
    base = chart(rows).encode(y=alt.Y("model:N", title=None, sort=order(rows, "model")))
    x = alt.X("start:Q", title="concepts", axis=points_axis())
    bars = base.mark_bar(height=18, aria=False).encode(
        x=x, x2="end:Q", color=colour, tooltip=["model:N", "colour:N", alt.Tooltip("value:Q", title="concepts")]
    )
    texts = base.transform_filter("datum.value > 0").transform_calculate(middle="(datum.start + datum.end) / 2")
    return alt.layer(
        bars, texts.mark_text(color="white", fontWeight="bold", aria=False).encode(x="middle:Q", text="value:Q")
    ).properties(height=MEANS_OF_MODEL * len(order(rows, "model")))
