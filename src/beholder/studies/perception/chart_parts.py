"""Parts of Perception's charts: dots, boxes, curves with bands, ellipses, densities and maps; each fits any width.

A click on the legend highlights one group and fades the others.
"""

from __future__ import annotations

import json
from typing import Any

import altair as alt

from beholder.chapter.chart_parts import Layers, Rows, chart, named_scale, order, points_axis, rule_at
from beholder.chapter.chart_style import ABOVE, BELOW, QUIET, SERIES, legend_columns
from beholder.studies.perception.design import REST

LANE, BOX, MAP = 13, 26, 270
"""Pixels of a lane of dots, of a box, of a map."""
PROTECTED, OTHER = "#d9822b", "#4c86c0"
KINDS = {"protected": PROTECTED, "not protected": OTHER}
FAINT = 0.12
GRADIENT: dict[str, Any] = {"gradientLength": 160, "gradientThickness": 8}


def group_dots(rows: Rows, title: str) -> Layers:
    """Dimensions down, a lane for each group, with intervals; 0 is the mean of everyone."""
    names = order(rows, "group")
    colour, shown, picked = _legend(names)
    y = _down(rows, "dimension", labelLimit=140)
    base = chart(rows).encode(y=y, yOffset=alt.YOffset("group:N", sort=names), opacity=shown)
    x = alt.X("value:Q", title=title, axis=points_axis())
    tooltip = ["dimension:N", "group:N", *_numbers(), "n:Q"]
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    dots = base.mark_point(filled=True, size=42, aria=False).encode(x=x, color=colour, tooltip=tooltip)
    return alt.layer(
        rule_at(0.0), whiskers.encode(x="low:Q", x2="high:Q", color=colour), dots.add_params(picked)
    ).properties(height=LANE * len(order(rows, "dimension")) * (len(names) + 0.8))


def boxes(rows: Rows, title: str) -> Layers:
    """Attributes down, the largest median first; box: middle half, line: 5 to 95 %."""
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    scale = named_scale(kinds, [KINDS[kind] for kind in kinds])
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(columns=2))
    x = alt.X("low:Q", title=title, axis=points_axis(), scale=alt.Scale(domainMin=0))
    base = chart(rows).encode(y=alt.Y("attribute:N", title=None, sort=order(rows, "attribute")), color=colour)
    tooltip = ["attribute:N", "kind:N", *_numbers("lower", "value", "upper"), "n:Q"]
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, aria=False).encode(x=x, x2="high:Q"),
        base.mark_bar(height=14, opacity=0.55, aria=False).encode(x="lower:Q", x2="upper:Q", tooltip=tooltip),
        base.mark_tick(thickness=3, height=18, aria=False).encode(x="value:Q"),
    ).properties(height=BOX * len(rows))


def curves(points: Rows, fitted: Rows, x_title: str, y_title: str) -> Layers:
    """Means at every level, and second-degree curves with their bands."""
    colour, shown, picked = _legend(order(points, "group"))
    x, scale = _free(alt.X, "level:Q", x_title), alt.Scale(zero=False)
    fade = alt.condition(picked, alt.value(0.16), alt.value(0.0))
    line = chart(fitted).encode(x=x, color=colour)
    band = line.transform_filter("isValid(datum.low)").mark_area(aria=False)
    dots = chart(points).mark_point(filled=True, size=26, aria=False).encode(x=x, color=colour, opacity=shown)
    y, tooltip = alt.Y("value:Q", title=y_title, scale=scale), ["group:N", "level:Q", *_numbers(), "n:Q"]
    return alt.layer(
        band.encode(y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q", opacity=fade),
        line.mark_line(strokeWidth=2, aria=False).encode(y=alt.Y("value:Q", scale=scale), opacity=shown),
        dots.encode(y=y, tooltip=tooltip).add_params(picked),
    ).properties(height=220)


def plain_curves(rows: Rows, x_title: str, y_title: str) -> Layers:
    """A line for each dimension over the levels of one attribute."""
    colour, shown, picked = _legend(order(rows, "group"))
    x, y = _free(alt.X, "level:Q", x_title), _free(alt.Y, "value:Q", y_title)
    base = chart(rows).encode(x=x, y=y, color=colour, opacity=shown)
    tooltip = [alt.Tooltip("group:N", title="dimension"), "level:Q", *_numbers(), "n:Q"]
    dots = base.mark_point(filled=True, size=30, aria=False).encode(tooltip=tooltip)
    return alt.layer(base.mark_line(strokeWidth=2, aria=False), dots.add_params(picked)).properties(height=240)


def ellipses(points: Rows, rings: Rows, unit: str) -> Layers:
    """Negative against positive ends of the scales: a point for each age, an ellipse of 2 σ for each group."""
    colour, shown, picked = _legend(order(points, "group"))
    x = _free(alt.X, "positive:Q", f"positive ends, {unit}")
    y = _free(alt.Y, "negative:Q", f"negative ends, {unit}")
    lines = chart(rings).mark_line(strokeWidth=1.5, aria=False).encode(order="step:Q")
    dots = chart(points).mark_point(filled=True, size=40, aria=False)
    dots = dots.encode(tooltip=["group:N", "age:Q", "positive:Q", "negative:Q", "n:Q"]).add_params(picked)
    layers = [part.encode(x=x, y=y, color=colour, opacity=shown) for part in (lines, dots)]
    return alt.layer(*layers).properties(height=320)


def densities(rows: Rows, title: str) -> Layers:
    """Smoothed densities, a line for each group."""
    colour, shown, picked = _legend(order(rows, "group"), symbolType="stroke", symbolStrokeWidth=3)
    x = alt.X("score:Q", title=title, scale=alt.Scale(zero=False, nice=False), axis=points_axis())
    y = alt.Y("value:Q", title=None, axis=None)
    lines = chart(rows).mark_line(strokeWidth=2, aria=False)
    lines = lines.encode(x=x, y=y, color=colour, opacity=shown, tooltip=["group:N"])
    return alt.layer(lines.add_params(picked)).properties(height=180)


def stacked(rows: Rows) -> Layers:
    """Dimensions down, the spread of each split over the attributes."""
    names = order(rows, "attribute")
    colours = [QUIET if name == REST else SERIES[k % len(SERIES)] for k, name in enumerate(names)]
    x = alt.X("value:Q", title="per cent of the spread", stack=True, axis=points_axis())
    legend = alt.Legend(columns=2)
    colour = alt.Color("attribute:N", sort=names, scale=named_scale(names, colours), legend=legend)
    tooltip = ["dimension:N", "attribute:N", alt.Tooltip("value:Q", format=".1f")]
    y = _down(rows, "dimension", labelLimit=140)
    bars = chart(rows).mark_bar(aria=False).encode(y=y, x=x, color=colour, order="order:Q", tooltip=tooltip)
    return alt.layer(bars).properties(height=24 * len(order(rows, "dimension")))


def effect_map(rows: Rows, title: str) -> Layers:
    """Contrasts down, dimensions across; the colour is the effect, faint where it is not shown."""
    most = max((abs(row["value"]) for row in rows), default=1.0) or 1.0
    colour = alt.Color("value:Q", scale=_diverging(most), legend=alt.Legend(title=title, **GRADIENT))
    across = alt.Axis(orient="top", labelAngle=-60, ticks=False, domain=False, labelLimit=140)
    x = alt.X("dimension:N", title=None, sort=order(rows, "dimension"), axis=across)
    base = chart(rows).encode(x=x, y=_down(rows, "contrast", ticks=False, domain=False, labelLimit=170))
    tooltip = ["contrast:N", "dimension:N", *_numbers(), alt.Tooltip("p_value:Q", title="corrected p", format=".2g")]
    pale = alt.condition("datum.shown", alt.value(1), alt.value(0.3))
    text = base.transform_filter("datum.shown").mark_text(fontSize=10, color="currentColor", aria=False)
    return alt.layer(
        base.mark_rect(aria=False).encode(color=colour, opacity=pale, tooltip=tooltip),
        text.encode(text=alt.Text("value:Q", format="+.2f")),
    ).properties(height=22 * len(order(rows, "contrast")))


def brightness_map(rows: Rows, first: str, second: str) -> Layers:
    """Squares of the picture; colour says who is brighter there."""
    # A name is quoted for Vega's expression language, whatever it holds.
    names = f"datum.value > 0 ? {json.dumps(first)} : datum.value < 0 ? {json.dumps(second)} : 'even'"
    legend = alt.Legend(title=None, values=[-1, 0, 1], labelExpr=names, **GRADIENT)
    squares = chart(rows).mark_rect(aria=False)
    squares = squares.encode(
        x=alt.X("across:O", axis=None),
        y=alt.Y("down:O", axis=None),
        color=alt.Color("value:Q", scale=_diverging(1), legend=legend),
        tooltip=[alt.Tooltip("value:Q", format="+.2f")],
    )
    return alt.layer(squares).properties(height=MAP)


# Small things


def _legend(names: list[str], **symbol: Any) -> tuple[alt.Color, Any, Any]:
    """A colour for each group, and a legend whose click highlights one of them."""
    picked = alt.selection_point(fields=["group"], bind="legend")
    scale = named_scale(names, [SERIES[k % len(SERIES)] for k in range(len(names))])
    legend = alt.Legend(columns=legend_columns(names), **symbol)
    colour = alt.Color("group:N", sort=names, scale=scale, legend=legend)
    return colour, alt.condition(picked, alt.value(0.95), alt.value(FAINT)), picked


def _free(channel: Any, field: str, title: str) -> Any:
    """An axis of numbers that need not begin at 0."""
    return channel(field, title=title, scale=alt.Scale(zero=False), axis=points_axis())


def _down(rows: Rows, name: str, **axis: Any) -> alt.Y:
    """Names from top to bottom, in the order of the rows."""
    return alt.Y(f"{name}:N", title=None, sort=order(rows, name), axis=alt.Axis(**axis))


def _numbers(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in names or ("value", "low", "high")]


def _diverging(most: float) -> alt.Scale:
    """Colours from below to above, faint near 0."""
    colours = [f"rgba({hue}, {alpha})" for hue, alpha in ((BELOW, 1), (BELOW, 0.03), (ABOVE, 0.03), (ABOVE, 1))]
    return alt.Scale(domain=[-most, -most / 1e6, most / 1e6, most], range=colours)
