"""Parts of GRAS's charts: forest, heat map, bars, curve and scatter, each one view as wide as its container.

The heat map's colours fade into the page at 0, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import json
import math
from typing import Any

import altair as alt

from beholder.chapter.chart_style import ABOVE, BELOW, QUIET, SERIES
from beholder.chapter.charts import (
    Layers,
    Rows,
    by_width,
    chart,
    named_scale,
    order,
    percent_axis,
    points_axis,
    rule_at,
)
from beholder.chapter.numbers import Result
from beholder.studies.gras.prompts import VALENCES

VALENCE_COLOURS = {"positive": "#4c86c0", "negative": "#b45a9c", "unrated": QUIET}
VALENCE_SHAPES = {"positive": "circle", "negative": "diamond", "unrated": "square"}
ROW, TWO_LINES, BAR, GAP = 12, 32, 13, 24
"""Pixels of a trait in the heat map, of an intersection with its name, of a bar, of a gap."""
SIGNS = {"positive": "+", "negative": "−", "unrated": ""}
LINE = "\n"
SHORT_PAIR = 24
"""Names of two groups with more letters than these stand on two lines."""
WORDING_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
PALE = 0.35
"""Opacity of what was not found."""
FAVOUR = SERIES[0]
HEADING = " traits:"
"""Ends the headings among the traits."""


def gap_bars(rows: Rows) -> Layers:
    """Bars to the side on which the higher group stands, under a heading for each attribute; hollow: none found.

    The value stands at the end of the bar, who is higher on its other side.
    """
    names = [row.get("heading") or f"{row['concept']} {SIGNS.get(row['valence'], '')}".strip() for row in rows]
    headings = [{**row, "row": place} for place, row in enumerate(rows) if "heading" in row]
    bars = [{**row, "row": place} for place, row in enumerate(rows) if "heading" not in row]
    most = 1.35 * max(abs(bar[key]) for bar in bars for key in ("value", "low", "high") if bar[key] is not None) or 1.0
    bold = {"condition": {"test": f"indexof({[row['row'] for row in headings]}, datum.value) >= 0", "value": 700}}
    axis = alt.Axis(
        labelExpr=f"{json.dumps(names)}[datum.value]",
        labelFontWeight={**bold, "value": 400},
        labelLimit=by_width(100, 180),
        ticks=False,
        domain=False,
    )
    y = alt.Y("row:O", title=None, scale=alt.Scale(domain=list(range(len(rows)))), axis=axis)
    title = "points of P(Yes)"
    x = alt.X("value:Q", title=title, scale=alt.Scale(domain=[-most, most], nice=False), axis=_unsigned_axis())
    base = chart(bars).encode(y=y)
    colour, fill = (
        channel("valence:N", scale=_scale(bars, VALENCE_COLOURS), legend=None) for channel in (alt.Stroke, alt.Fill)
    )
    tooltip = [alt.Tooltip("concept:N", title="trait"), "pair:N", alt.Tooltip("points:N"), "low:Q", "high:Q"]
    tooltip += [alt.Tooltip("p_value:Q", title="corrected p", format=".2g"), "n:Q"]
    found = alt.condition("datum.found", alt.value(1), alt.value(0))
    layers = [
        base.mark_bar(height=11, strokeWidth=1.5, aria=False).encode(
            x=x, stroke=colour, fill=fill, fillOpacity=found, tooltip=tooltip
        ),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5, color="currentColor", opacity=0.7, aria=False)
        .encode(x="low:Q", x2="high:Q"),
    ]
    layers += _bar_labels(bars, headings, y)
    return alt.layer(*layers, rule_at(0.0)).properties(height=GAP * len(rows))


def _bar_labels(bars: Rows, headings: Rows, y: alt.Y) -> list[Any]:
    """At the end of each bar its value, on its other side who is higher, and in the headings what a side means."""
    text: dict[str, Any] = {"color": "currentColor", "aria": False, "fontSize": 10}
    aligns: dict[bool, Any] = {True: "left", False: "right"}
    layers = []
    for right in (True, False):
        side = [bar for bar in bars if (bar["value"] >= 0) == right]
        outer, inner = ("high", "low") if right else ("low", "high")
        for key, end, rightwards in (("points", outer, right), ("who", inner, not right)):
            beside = [
                {"row": bar["row"], "text": bar[key], "at": _end(bar, end, rightwards=rightwards)} for bar in side
            ]
            mark = chart(beside).mark_text(
                align=aligns[rightwards], dx=4 if rightwards else -4, lineBreak=LINE, lineHeight=10, **text
            )
            layers.append(mark.encode(x="at:Q", y=y, text="text:N"))
        arrows = chart([{"row": row["row"], "text": row.get("above" if right else "below", "")} for row in headings])
        layers.append(
            arrows.mark_text(align=aligns[right], dx=6 if right else -6, **text).encode(
                x=alt.datum(0), y=y, text="text:N"
            )
        )
    return layers


def _end(bar: Result, end: str, *, rightwards: bool) -> float:
    """Where a label beside a bar begins: beyond the bar, its interval and 0."""
    ends = [0.0, bar["value"], *([] if bar[end] is None else [bar[end]])]
    return float(max(ends) if rightwards else min(ends))


def _unsigned_axis() -> alt.Axis:
    """Sizes to either side of 0."""
    return alt.Axis(tickCount=5, labelExpr="format(abs(datum.value), '~r')")


def favour_forest(rows: Rows) -> Layers:
    """Intersections down, their names above the marks so that long ones fit a phone; hollow: none found."""
    groups = order(rows, "group")
    low = min(0.0, *(row[key] for row in rows for key in ("low", "alone", "value") if row.get(key) is not None))
    x = alt.X("value:Q", title="points off the mean", scale=alt.Scale(domainMin=low, nice=False), axis=points_axis())
    base = chart(rows).encode(y=alt.Y("group:N", title=None, sort=groups, axis=None))
    found = alt.condition("datum.found", alt.value(1), alt.value(0))
    tooltip = ["group:N", alt.Tooltip("value:Q", title="points"), "low:Q", "high:Q", "n:Q"]
    return alt.layer(
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2, opacity=0.55, color=FAVOUR, aria=False)
        .encode(x="low:Q", x2="high:Q"),
        base.mark_point(size=60, opacity=1, strokeWidth=2, stroke=FAVOUR, fill=FAVOUR, aria=False).encode(
            x=x, fillOpacity=found, tooltip=tooltip
        ),
        base.transform_filter("isValid(datum.alone)")
        .mark_tick(thickness=2, size=10, color="currentColor", opacity=0.8, aria=False)
        .encode(x="alone:Q"),
        base.mark_text(align="left", dx=4, dy=-12, fontSize=11, color="currentColor", aria=False).encode(
            text="group:N", x=alt.datum(low)
        ),
        rule_at(0.0),
    ).properties(height=TWO_LINES * len(groups))


def heat_map(cells: Rows, groups: list[str], traits: dict[str, list[str]]) -> Layers:
    """Groups across, traits down under a heading for their valence; colour is points off the mean."""
    rows = [name for kind, names in traits.items() for name in (f"{kind}{HEADING}", *names)]
    most = max((abs(cell["points"]) for cell in cells), default=1.0) or 1.0
    pale = alt.condition("datum.found", alt.value(1), alt.value(PALE))
    near = most / 1e6  # either side keeps its hue and fades towards 0
    colours = [f"rgba({hue}, {alpha})" for hue, alpha in ((BELOW, 1), (BELOW, 0.03), (ABOVE, 0.03), (ABOVE, 1))]
    scale = alt.Scale(domain=[-most, -near, near, most], range=colours)
    signed = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r')"
    legend = alt.Legend(gradientLength=160, gradientThickness=8, labelExpr=signed, values=_legend_values(most))
    heading = {
        "condition": {"test": f"slice(datum.label, -{len(HEADING)}) === '{HEADING}'", "value": 700},
        "value": 400,
    }
    axis = alt.Axis(labelFontSize=10, labelLimit=95, ticks=False, domain=False, labelFontWeight=heading)
    turned = max(map(len, groups), default=0) > 4
    across = alt.Axis(labelAngle=-90 if turned else 0, orient="top", ticks=False, domain=False, labelLimit=120)
    squares = (
        chart(cells)
        .mark_rect(aria=False)
        .encode(
            x=alt.X("group:N", title=None, sort=groups, axis=across),
            y=alt.Y("trait:N", title=None, sort=rows, scale=alt.Scale(domain=rows), axis=axis),
            color=alt.Color("points:Q", scale=scale, legend=legend),
            opacity=pale,
            tooltip=["trait:N", "group:N", alt.Tooltip("points:Q", title="points off the mean")],
        )
    )
    return alt.layer(squares).properties(height=ROW * len(rows))


def _legend_values(most: float) -> list[float]:
    """Zero and one round number on either side, within the scale.

    >>> _legend_values(4.97), _legend_values(0.31)
    ([-2.0, 0.0, 2.0], [-0.2, 0.0, 0.2])
    """
    unit = 10.0 ** math.floor(math.log10(most))
    end = max(step * unit for step in (1, 2, 5) if step * unit <= most)
    return [-end, 0.0, end]


def valence_bars(rows: Rows) -> Layers:
    """Groups down, a bar for positive and one for negative traits, with a tick at what shuffled labels give."""
    groups, kinds = order(rows, "group"), _kinds(rows)
    legend = alt.Legend(columns=2, symbolType="square")
    chance = alt.Tooltip("landmark:Q", title="shuffled labels", format=".1f")
    base = chart(rows).encode(y=alt.Y("group:N", title=None, sort=groups), yOffset=alt.YOffset("valence:N", sort=kinds))
    x = alt.X("value:Q", title="per cent of traits", scale=alt.Scale(domain=[0, 100]), axis=points_axis())
    bars = base.mark_bar(cornerRadiusEnd=2, aria=False).encode(
        x=x,
        color=alt.Color("valence:N", scale=_scale(rows, VALENCE_COLOURS), legend=legend),
        opacity=alt.condition("datum.found", alt.value(1), alt.value(PALE)),
        tooltip=[
            "group:N",
            "valence:N",
            alt.Tooltip("value:Q", title="per cent"),
            chance,
            alt.Tooltip("n:Q", title="traits"),
        ],
    )
    ticks = base.transform_filter("isValid(datum.landmark)").mark_tick(
        thickness=2, color="currentColor", aria=False, opacity=0.8, size=0.8 * BAR
    )
    return alt.layer(bars, ticks.encode(x="landmark:Q")).properties(height=BAR * len(groups) * (len(kinds) + 0.5))


def range_strip(rows: Rows) -> Layers:
    """Traits across, the farthest first; how far P(Yes) moves with the wording, with a line at 1."""
    traits = order(rows, "trait")
    named = alt.Axis(labelAngle=-90, labelFontSize=9) if len(traits) <= 40 else None
    base = chart(rows).encode(x=alt.X("trait:N", title="traits", sort=traits, axis=named))
    y = alt.Y("value:Q", title="points of P(Yes)", scale=alt.Scale(domainMin=0), axis=points_axis())
    tooltip = ["trait:N", alt.Tooltip("value:Q", title="points")]
    return alt.layer(
        base.mark_point(filled=True, size=24, opacity=1, color=FAVOUR, aria=False).encode(y=y, tooltip=tooltip),
        chart([{"line": 1}]).mark_rule(color=QUIET, strokeWidth=1.5, strokeDash=[4, 3]).encode(y="line:Q"),
    ).properties(height=240)


def tone_curve(rows: Rows) -> Layers:
    """P(Yes) over the skin tones, a line and a band a valence."""
    colour = alt.Color("valence:N", scale=_scale(rows, VALENCE_COLOURS), legend=alt.Legend(columns=2))
    shape = alt.Shape("valence:N", scale=_scale(rows, VALENCE_SHAPES))
    base = chart(rows).encode(x=alt.X("tone:O", title="Monk skin tone", axis=alt.Axis(labelAngle=0)))
    scale = alt.Scale(zero=False)
    y = alt.Y("value:Q", title="mean P(Yes)", scale=scale, axis=percent_axis())
    numbers = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")]
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.18, aria=False)
    return alt.layer(
        band.encode(y=alt.Y("low:Q", scale=scale, title="mean P(Yes)"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2, aria=False).encode(y=y, color=colour),
        base.mark_point(filled=True, size=55, opacity=1, aria=False).encode(
            y=y, color=colour, shape=shape, tooltip=["tone:O", "valence:N", *numbers, "n:Q"]
        ),
    ).properties(height=260)


def wording_scatter(rows: Rows) -> Layers:
    """A trait's gap in each wording against their mean, with the line on which all agree."""
    templates = order(rows, "wording")
    colours = [SERIES[k % len(SERIES)] for k in range(len(templates))]
    colour = alt.Color("wording:N", scale=named_scale(templates, colours), legend=alt.Legend(columns=5))
    shapes = [WORDING_SHAPES[k % len(WORDING_SHAPES)] for k in range(len(templates))]
    shape = alt.Shape("wording:N", scale=named_scale(templates, shapes))
    most = max((row["mean"] for row in rows), default=1.0)
    x = alt.X("mean:Q", title="mean gap of the trait, in points", scale=alt.Scale(domainMin=0), axis=points_axis())
    y = alt.Y("gap:Q", title="gap in one wording, in points", axis=points_axis())
    line = chart([{"mean": 0, "gap": 0}, {"mean": most, "gap": most}])
    return alt.layer(
        line.mark_line(color=QUIET, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y),
        chart([{"gap": 0}]).mark_rule(color=QUIET, strokeWidth=1).encode(y="gap:Q"),
        chart(rows)
        .mark_point(filled=True, size=24, opacity=0.75, aria=False)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=["trait:N", "wording:N", "gap:Q", "mean:Q"]),
    ).properties(height=280)


def _kinds(rows: Rows) -> list[str]:
    """The valences that occur, in their order."""
    present = set(order(rows, "valence"))
    return [kind for kind in (*VALENCES, "unrated") if kind in present]


def _scale(rows: Rows, values: dict[str, str]) -> alt.Scale:
    """The colour or the shape of each valence that occurs."""
    return named_scale(_kinds(rows), [values[kind] for kind in _kinds(rows)])
