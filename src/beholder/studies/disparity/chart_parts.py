"""Disparity's chart parts: bars and spread of gaps, reliability, scatter. Each is one view as wide as its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from beholder.chapter.chart_parts import Layers, Rows, chart, named_scale, order, percent_axis, points_axis, rule_at
from beholder.chapter.chart_style import GROUP_COLOURS, GROUP_SHAPES, QUIET, SERIES, series_colours
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
    kinds = [kind for kind in colours if kind in set(order(rows, "words"))]
    several = alt.Legend(columns=1 if len(kinds) > 2 else 2, symbolType="square") if len(kinds) > 1 else None
    hues = [colours[kind] for kind in kinds] if several else [SERIES[0]]
    scale = named_scale(kinds, hues)
    y = alt.Y("concept:N", title=None, sort=order(rows, "concept"))
    x = alt.X("value:Q", title=title, axis=points_axis())
    matched, published = (
        alt.Tooltip(f"{name}:Q", title=f"{kind}, points") for name, kind in (("value", "matched"), ("raw", "published"))
    )
    corrected = alt.Tooltip("p_value:Q", title="p", format=".2g")
    tooltip = ["concept:N", matched, "low:Q", "high:Q", published, corrected, "words:N", "n:Q"]
    base = chart(rows).encode(y=y)
    pale = alt.condition("datum.found", alt.value(1), alt.value(0.4))
    return alt.layer(
        base.mark_bar(height=11, aria=False).encode(
            x=x, color=alt.Color("words:N", scale=scale, legend=several), opacity=pale, tooltip=tooltip
        ),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5, color="currentColor", opacity=0.7, aria=False)
        .encode(x="low:Q", x2="high:Q"),
        base.mark_tick(color="currentColor", thickness=2, height=11, opacity=0.6).encode(x="raw:Q"),
        rule_at(0.0),
    ).properties(height=BAR * max(2, len(rows)))


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


def reliability_curve(rows: Rows, groups: list[str]) -> Layers:
    """The share that shows the concept against confidence: one line per group, dashed where a model is calibrated."""
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("confidence:Q", title="mean confidence of the bin", scale=scale, axis=percent_axis())
    y = alt.Y("value:Q", title="share that shows the concept", scale=scale, axis=percent_axis())
    colour = alt.Color(
        "group:N", scale=named_scale(groups, series_colours(groups)), legend=alt.Legend(columns=len(groups))
    )
    kinds = [GROUP_SHAPES.get(group, "circle") for group in groups] if set(groups) <= set(GROUP_COLOURS) else None
    shape = alt.Shape("group:N", scale=named_scale(groups, kinds) if kinds else alt.Scale(domain=groups))
    base = chart(rows)
    tooltip = ["group:N", *(alt.Tooltip(f"{f}:Q", format=".3f") for f in ("confidence", "value", "low", "high")), "n:Q"]
    return alt.layer(
        chart([{"confidence": 0, "value": 0}, {"confidence": 1, "value": 1}])
        .mark_line(color=QUIET, strokeDash=[4, 3], strokeWidth=1.5)
        .encode(x=x, y=y),
        base.mark_line(strokeWidth=2, aria=False).encode(x=x, y=y, color=colour),
        base.mark_rule(strokeWidth=1, opacity=0.6, aria=False).encode(x=x, y="low:Q", y2="high:Q", color=colour),
        base.mark_point(filled=True, size=50, opacity=1, aria=False).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tooltip
        ),
    ).properties(height=260)


def agreement_scatter(rows: Rows, here: str, there: str) -> Layers:
    """The gap on one data set against the gap on another, in the study's three colours; lines at five points."""
    kinds = [kind for kind in AGREEMENT_COLOURS if kind in set(order(rows, "colour"))]
    colour = alt.Color(
        "colour:N", scale=named_scale(kinds, [AGREEMENT_COLOURS[kind] for kind in kinds]), legend=alt.Legend(columns=3)
    )
    shape = alt.Shape("colour:N", scale=named_scale(kinds, [AGREEMENT_SHAPES[kind] for kind in kinds]))
    x = alt.X("here:Q", title=f"gap on {here}, points", axis=points_axis())
    y = alt.Y("there:Q", title=f"gap on {there}, points", axis=points_axis())
    lines = chart([{"at": -5.0}, {"at": 5.0}]).mark_rule(color=QUIET, strokeDash=[3, 3], strokeWidth=1)
    dots = chart(rows).mark_point(filled=True, size=60, opacity=0.9, aria=False)
    named = chart([row for row in rows if row["colour"] != "yellow"])
    return alt.layer(
        lines.encode(x=alt.X("at:Q")),
        lines.encode(y=alt.Y("at:Q")),
        dots.encode(x=x, y=y, color=colour, shape=shape, tooltip=["concept:N", "here:Q", "there:Q", "colour:N"]),
        named.mark_text(align="left", dx=6, fontSize=10, color="currentColor", aria=False).encode(
            x=x, y=y, text="concept:N"
        ),
    ).properties(height=320)


def model_strips(rows: Rows, title: str, colours: Mapping[str, str]) -> Layers:
    """A strip of stacked dots for every model, one per concept; a diamond for the mean, if a row has no concept."""
    kinds = [kind for kind in colours if kind in set(order(rows, "words"))]
    models = order(rows, "model")
    legend = alt.Legend(columns=1 if len(kinds) > 2 else 2) if len(kinds) > 1 else None
    scale = named_scale(kinds, [colours[kind] for kind in kinds] if legend else [SERIES[0]])
    x = alt.X("value:Q", title=title, axis=points_axis())
    y = alt.Y("model:N", title=None, sort=models)
    dots = (
        chart([row for row in rows if row["concept"] is not None])
        .mark_circle(size=34, aria=False)
        .encode(
            x=x,
            y=y,
            yOffset=alt.YOffset("level:Q", scale=alt.Scale(domain=[1.1, -0.1])),
            color=alt.Color("words:N", scale=scale, legend=legend),
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


def model_means(rows: Rows, groups: list[str]) -> Layers:
    """The mean of every model and group, with its interval."""
    y = alt.Y("model:N", title=None, sort=order(rows, "model"))
    offset = alt.YOffset("group:N", scale=alt.Scale(domain=groups))
    colour = alt.Color(
        "group:N", scale=named_scale(groups, series_colours(groups)), legend=alt.Legend(columns=len(groups))
    )
    x = alt.X("value:Q", title="mean average precision", scale=alt.Scale(zero=True), axis=percent_axis())
    base = chart(rows).encode(y=y, yOffset=offset, color=colour)
    numbers = [alt.Tooltip(f"{field}:Q", format=".3f") for field in ("value", "low", "high")]
    return alt.layer(
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1, aria=False).encode(
            x=x, tooltip=["model:N", "group:N", *numbers, alt.Tooltip("n:Q", title="concepts")]
        ),
    ).properties(height=MEANS_OF_MODEL * len(order(rows, "model")))


def agreement_bars(rows: Rows) -> Layers:
    """How many concepts are green, yellow and red for every model, side by side in one bar."""
    kinds = [kind for kind in AGREEMENT_COLOURS if kind in set(order(rows, "colour"))]
    colour = alt.Color(
        "colour:N", scale=named_scale(kinds, [AGREEMENT_COLOURS[kind] for kind in kinds]), legend=alt.Legend(columns=3)
    )
    base = chart(rows).encode(y=alt.Y("model:N", title=None, sort=order(rows, "model")))
    x = alt.X("start:Q", title="concepts", axis=points_axis())
    bars = base.mark_bar(height=18, aria=False).encode(
        x=x, x2="end:Q", color=colour, tooltip=["model:N", "colour:N", alt.Tooltip("value:Q", title="concepts")]
    )
    texts = base.transform_filter("datum.value > 0").transform_calculate(middle="(datum.start + datum.end) / 2")
    return alt.layer(
        bars, texts.mark_text(color="white", fontWeight="bold", aria=False).encode(x="middle:Q", text="value:Q")
    ).properties(height=MEANS_OF_MODEL * len(order(rows, "model")))
