"""Parts of charts: dots and lanes, each as one view whose width follows its container."""

from __future__ import annotations

from typing import Any

import altair as alt

from beholder.chapter.chart_style import GROUP_SHAPES, QUIET, legend_columns, series_colours
from beholder.chapter.numbers import Result, chance, plural

Rows = list[Result]
Layers = alt.LayerChart | alt.FacetChart
"""What altair says layers may become; ours are never facetted."""
LANE = 15
"""Height of one lane in pixels."""
EVERYONE = "everyone"


def dots(rows: Rows, title: str = "share of belief") -> Layers:
    """Concepts down, groups as coloured shapes with their intervals."""
    best = {row["concept"]: max(r["value"] for r in rows if r["concept"] == row["concept"]) for row in rows}
    concepts = sorted(best, key=lambda concept: -best[concept])
    groups = order(rows, "group")
    known = set(groups) <= set(GROUP_SHAPES)
    named = {group: plural(group) for group in groups}
    if len(set(named.values())) < len(groups):  # a data set may have both "woman" and "women"
        named = {group: group for group in groups}
    data = [{**plain(row), "group": named.get(row["group"], EVERYONE)} for row in rows]
    names = list(named.values())
    legend = alt.Legend(columns=legend_columns(names))
    colours = alt.Scale(domain=names, range=series_colours(groups))
    colour = alt.Color("group:N", sort=names, scale=colours, legend=legend)
    shapes = [GROUP_SHAPES[group] for group in groups] if known else ["circle"] * len(groups)
    shape = alt.Shape("group:N", sort=names, scale=alt.Scale(domain=names, range=shapes), legend=legend)
    base = chart(data).encode(
        y=alt.Y("concept:N", title=None, sort=concepts), yOffset=alt.YOffset("group:N", sort=names)
    )
    x = alt.X("value:Q", title=title, scale=alt.Scale(domainMin=0), axis=percent_axis())
    return alt.layer(
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x=x, color=colour, shape=shape, tooltip=tooltip("concept", "group")
        ),
    ).properties(height=LANE * len(concepts) * max(1.6, len(groups) + 0.4))


# Lanes: places down, in each a lane a model and one for the published

PUBLISHED_LANE = "published"


def lanes(rows: Rows, others: Rows, x: alt.X) -> list[alt.Chart]:
    """Values with intervals, and neighbours as small marks."""
    models, places = order(rows, "model"), order(rows, "subset")
    lanes = [*models, *([PUBLISHED_LANE] if others else [])]
    y = alt.Y("subset:N", title=None, sort=places)
    offset = alt.YOffset("model:N", scale=alt.Scale(domain=lanes))
    legend = alt.Legend(columns=legend_columns(models)) if len(models) > 1 else None
    colour = alt.Color("model:N", scale=alt.Scale(domain=models, range=series_colours(models)), legend=legend)
    base = chart([plain(row) for row in rows]).encode(y=y, yOffset=offset)
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x="low:Q", x2="high:Q", color=colour)
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, color=colour, tooltip=tooltip("model", "subset")
    )
    if not others:
        return [whiskers, dots]
    small = chart([{**other, "lane": PUBLISHED_LANE} for other in others]).mark_tick(
        color=QUIET, thickness=1.5, height=9
    )
    neighbours = small.encode(
        x="value:Q", y=y, yOffset=alt.YOffset("lane:N", scale=alt.Scale(domain=lanes)), tooltip=["model:N", "value:Q"]
    )
    return [neighbours, whiskers, dots]


def height(rows: Rows, others: Rows) -> float:
    """Room for every lane and a gap between places; at least enough to read."""
    return LANE * len(order(rows, "subset")) * max(1.8, len(order(rows, "model")) + bool(others) + 0.5)


def chance_ticks(rows: Rows) -> Any:
    values = [{"subset": row["subset"], "model": row["model"], "chance": chance(row)} for row in rows if chance(row)]
    ticks = chart(values).mark_tick(color=QUIET, thickness=2)
    return ticks.encode(x="chance:Q", y=alt.Y("subset:N", sort=order(rows, "subset")))


def rule_at(value: float) -> Any:
    """A vertical line at a landmark."""
    rule = chart([{"landmark": value}]).mark_rule(color=QUIET, strokeWidth=1.5)
    return rule.encode(x="landmark:Q")


def points_axis() -> alt.Axis:
    """An axis of plain numbers with few ticks."""
    return alt.Axis(tickCount=5, format="~r")


def named_scale(names: list[str], values: list[str]) -> alt.Scale:
    """A colour or a shape for each name."""
    return alt.Scale(domain=names, range=values)


# Small things


def chart(values: list[dict[str, Any]]) -> alt.Chart:
    """A chart of these values."""
    data = alt.Data(values=values)  # type: ignore[no-untyped-call]  # altair leaves this class untyped
    return alt.Chart(data)


def plain(row: Result) -> dict[str, Any]:
    """What a chart needs of a row."""
    return {key: row[key] for key in ("model", "subset", "group", "concept", "value", "low", "high", "n")}


def tooltip(*fields: str) -> list[alt.Tooltip]:
    """These fields, then the value with its interval and n."""
    numbers = [alt.Tooltip(f"{field}:Q", format=".4f") for field in ("value", "low", "high")]
    return [*(alt.Tooltip(f"{field}:N") for field in fields), *numbers, alt.Tooltip("n:Q")]


def percent_axis() -> alt.Axis:
    return alt.Axis(labelExpr="format(datum.value * 100, '~r') + ' %'", tickCount=5)


def order(rows: Rows, key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows if row[key] is not None))


def by_width(narrow: float, wide: float) -> alt.ExprRef:
    """A number for a phone, and one for wider pages."""
    return alt.ExprRef(f"width < 400 ? {narrow} : {wide}")


def value_of(row: Result) -> float:
    return float(row["value"])
