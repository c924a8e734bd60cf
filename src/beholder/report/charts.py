"""Charts: the results as pictures, interactive in the page and static for a paper.

Every chart is one view whose width follows its container, so that it fits a phone. Intervals are always drawn;
landmarks (chance, 1) and published neighbours stand beside the values, never in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from beholder.report import words
from beholder.report.chart_style import (
    GROUP_SHAPES,
    LEVEL_COLOURS,
    PAPER_INK,
    PAPER_WIDTH,
    QUIET,
    config,
    legend_columns,
    series_colours,
)
from beholder.report.numbers import Result, chance, excludes, percent, span
from beholder.report.standing import standings
from beholder.report.tables import IDENTITY, level_of, rows_of

Rows = list[Result]
Layers = alt.LayerChart | alt.FacetChart
"""What altair says layers may become; ours are never facetted."""
LANE = 15
"""Height of one lane in pixels."""


class Figure(NamedTuple):
    """A chart with a title that says what is seen, and how to read it."""

    name: str
    title: str
    caption: str
    chart: Layers
    topic: str
    wide: bool = False

    def spec(self, *, ink: str, width: int | str) -> dict[str, Any]:
        """The chart as Vega-Lite."""
        sized = self.chart.properties(width=width, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        return {**sized.to_dict(), "config": config(ink)}

    def paper(self) -> dict[str, Any]:
        """The same with its title inside, for a file."""
        return {**self.spec(ink=PAPER_INK, width=PAPER_WIDTH), "title": self.title, "background": "white"}


def figures(results: pl.DataFrame) -> list[Figure]:
    """Every figure of one benchmark's results."""
    makers = (association_figures, ratio_figures, occupation_figures, identity_figures, custom_figures)
    return [figure for make in makers for figure in make(results)]


# Association


def association_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Three levels by branch, a chart a model."""
    rows = [row for row in rows_of(results, "association") if row["benchmark"] != "custom"]
    for number, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        mine = [row for row in rows if row["model"] == model and row["value"] is not None]
        if mine:
            yield Figure(
                f"association-{number + 1}",
                _sentence(_whose(rows, model), f"belief on the right {association_title(mine)}"),
                "Mean share of belief on the right prompt. Whiskers: 95 % intervals. Dashes: chance.",
                _bars(mine),
                "association",
                wide=len({row["model"] for row in rows}) == 1,
            )


def association_title(rows: Rows) -> str:
    """What the bars show."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in words.LEVELS}
    return ", ".join(f"{level} {span(values)}" for level, values in ranges.items() if values)


def _bars(rows: Rows) -> Layers:
    data = [{**_plain(row), "chance": chance(row)} for row in rows]
    x = alt.X("subset:N", title=None, sort=_order(rows, "subset"), axis=alt.Axis(labelAngle=0))
    levels = [level for level in words.LEVELS if any(row["concept"] == level for row in rows)]
    offset = alt.XOffset("concept:N", sort=levels)
    colour = alt.Color(
        "concept:N",
        sort=levels,
        scale=alt.Scale(domain=levels, range=[LEVEL_COLOURS[level] for level in levels]),
        legend=alt.Legend(columns=len(levels)),
    )
    y = alt.Y("value:Q", title="belief on the right prompt", scale=alt.Scale(domain=[0, 1]), axis=_percent_axis())
    base = _chart(data).encode(x=x, xOffset=offset)
    return alt.layer(
        base.mark_bar(cornerRadiusEnd=2).encode(y=y, color=colour, tooltip=_tooltip("subset", "concept")),
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, color="currentColor").encode(
            y="low:Q", y2="high:Q"
        ),
        base.transform_filter("isValid(datum.chance)").mark_tick(thickness=2, color=QUIET, bandSize=14).encode(
            y="chance:Q"
        ),
    ).properties(height=240)  # fmt: skip


# Gender ratio


def ratio_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Forest plot of b, all models and pools in one view, published neighbours in a lane of their own."""
    rows = [row for row in rows_of(results, "bias_ratio") if row["value"]]
    if not rows:
        return
    others = _others(results, "bias_ratio")
    bounds = [bound for row in (*rows, *others) for key in ("value", "low", "high") if (bound := row.get(key))]
    domain = [max(0.01, min(0.5, 0.95 * min(bounds))), min(100.0, max(2.0, 1.05 * max(bounds)))]
    x = alt.X(
        "value:Q",
        title="women ÷ men (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, clamp=True, nice=False),
        axis=alt.Axis(values=[tick for tick in RATIO_TICKS if domain[0] <= tick <= domain[1]], format="~g"),
    )
    yield Figure(
        "women-over-men",
        ratio_title(rows),
        "Probability of the right occupation, women over men, with 95 % intervals. Line: 1, alike; left of it women "
        "get less."
        + (" Small marks: published models." if others else ""),
        alt.layer(*_lanes(rows, others, x), _rule_at(1.0)).properties(height=_height(rows, others)),
        "gender",
        wide=True,
    )


RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 5, 10, 20, 50, 100]


def ratio_title(rows: Rows) -> str:
    """What the forest shows."""
    away = [row for row in rows if excludes(row, 1.0)]
    if not away:
        return "Women over men: no interval excludes 1"
    if len({row["model"] for row in rows}) > 1:
        return f"Women over men: {len(away)} of {len(rows)} intervals exclude 1"
    return f"Women over men: the interval excludes 1 for {words.listed([row['subset'] for row in away])}"


# Identity


def identity_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Both directions, all models and branches in one view each."""
    for what, given, sought in zip(IDENTITY, ("an image", "a name"), ("name", "image"), strict=True):
        rows = [row for row in rows_of(results, what) if row["value"] is not None]
        if not rows:
            continue
        others = _others(results, what)
        x = alt.X(
            "value:Q", title=f"belief on the right {sought}", scale=alt.Scale(domain=[0, 1]), axis=_percent_axis()
        )
        yield Figure(
            what.replace("_", "-"),
            f"Given {given}: {span([row['value'] for row in rows])} on the right {sought}",
            "With 95 % intervals. Dashes: chance." + (" Small marks: published models." if others else ""),
            alt.layer(*_lanes(rows, others, x), _chance_ticks(rows)).properties(height=_height(rows, others)),
            "identity",
        )


# Occupations, and own prompts: dots of several groups


def occupation_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """What women and men are called, a chart a model and pool."""
    rows = [row for row in rows_of(results, "occupation_probability") if row["value"] is not None]
    for number, (model, pool) in enumerate(dict.fromkeys((row["model"], row["subset"]) for row in rows)):
        mine = [row for row in rows if (row["model"], row["subset"]) == (model, pool)]
        yield Figure(
            f"occupations-{number + 1}-{pool}",
            _sentence(_whose(rows, model), f"{pool}, {gap_title(mine)}"),
            "Mean share of belief on each occupation, with 95 % intervals.",
            _dots(mine),
            "gender",
        )


def gap_title(rows: Rows) -> str:
    """Where two groups lie farthest apart, of the places where their intervals do not meet."""
    by_concept = {row["concept"]: [r for r in rows if r["concept"] == row["concept"]] for row in rows}
    gaps = {
        concept: (min(mine, key=_value), max(mine, key=_value)) for concept, mine in by_concept.items() if len(mine) > 1
    }
    apart = {c: pair for c, pair in gaps.items() if (pair[0]["high"] or 1) < (pair[1]["low"] or 0)}
    if not apart:
        return "the intervals overlap everywhere" if gaps else "one group only"
    concept, (least, most) = max(apart.items(), key=lambda item: item[1][1]["value"] - item[1][0]["value"])
    said = " and ".join(f"{_group(row)} {percent(row['value'])}" for row in (most, least))
    return f"widest gap at “{concept}”, {said}"


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Own prompts by group, a chart a model, level and attribute."""
    rows = [row for row in rows_of(results, "probability") if row["benchmark"] == "custom" and row["value"] is not None]
    keys = dict.fromkeys((row["model"], level_of(row), row["subset"]) for row in rows)
    attributes = {subset for _, _, subset in keys if subset}
    for number, (model, level, subset) in enumerate(key for key in keys if key[2] or not attributes):
        mine = [row for row in rows if (row["model"], level_of(row), row["subset"]) == (model, level, subset)]
        seen = gap_title(mine) if subset else f"most to “{max(mine, key=_value)['concept']}”"
        yield Figure(
            f"prompts-{number + 1}",
            _sentence(_whose(rows, model), f"{level or 'prompts'}{f' by {subset}' if subset else ''}, {seen}"),
            "Mean share of belief among the prompts of the level, with 95 % intervals.",
            _dots(mine),
            "prompts",
        )


def _dots(rows: Rows) -> Layers:
    """Concepts down, groups as coloured shapes with their intervals."""
    best = {row["concept"]: max(r["value"] for r in rows if r["concept"] == row["concept"]) for row in rows}
    concepts = sorted(best, key=lambda concept: -best[concept])
    groups = _order(rows, "group")
    known = set(groups) <= set(GROUP_SHAPES)
    data = [{**_plain(row), "group": _group(row)} for row in rows]
    names = [words.GROUPS.get(group, group) for group in groups]
    legend = alt.Legend(columns=legend_columns(names))
    colours = alt.Scale(domain=names, range=series_colours(groups))
    colour = alt.Color("group:N", sort=names, scale=colours, legend=legend)
    shapes = [GROUP_SHAPES[group] for group in groups] if known else ["circle"] * len(groups)
    shape = alt.Shape("group:N", sort=names, scale=alt.Scale(domain=names, range=shapes), legend=legend)
    base = _chart(data).encode(
        y=alt.Y("concept:N", title=None, sort=concepts), yOffset=alt.YOffset("group:N", sort=names)
    )
    x = alt.X("value:Q", title="share of belief", scale=alt.Scale(domainMin=0), axis=_percent_axis())
    return alt.layer(
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, opacity=0.55).encode(
            x="low:Q", x2="high:Q", color=colour
        ),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x=x, color=colour, shape=shape, tooltip=_tooltip("concept", "group")
        ),
    ).properties(height=LANE * len(concepts) * max(1.6, len(groups) + 0.4))  # fmt: skip


# Lanes: places down, in each a lane a model and one for the published

PUBLISHED_LANE = "published"


def _lanes(rows: Rows, others: Rows, x: alt.X) -> list[alt.Chart]:
    """Values with intervals, and neighbours as small marks."""
    models, places = _order(rows, "model"), _order(rows, "subset")
    lanes = [*models, *([PUBLISHED_LANE] if others else [])]
    y = alt.Y("subset:N", title=None, sort=places)
    offset = alt.YOffset("model:N", scale=alt.Scale(domain=lanes))
    legend = alt.Legend(columns=legend_columns(models)) if len(models) > 1 else None
    colour = alt.Color("model:N", scale=alt.Scale(domain=models, range=series_colours(models)), legend=legend)
    base = _chart([_plain(row) for row in rows]).encode(y=y, yOffset=offset)
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, opacity=0.6).encode(
        x="low:Q", x2="high:Q", color=colour
    )  # fmt: skip
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, color=colour, tooltip=_tooltip("model", "subset")
    )
    if not others:
        return [whiskers, dots]
    small = _chart([{**other, "lane": PUBLISHED_LANE} for other in others]).mark_tick(
        color=QUIET, thickness=1.5, height=9, opacity=0.8
    )
    neighbours = small.encode(
        x="value:Q", y=y, yOffset=alt.YOffset("lane:N", scale=alt.Scale(domain=lanes)), tooltip=["model:N", "value:Q"]
    )
    return [neighbours, whiskers, dots]


def _height(rows: Rows, others: Rows) -> float:
    """Room for every lane and a gap between places; at least enough to read."""
    return LANE * len(_order(rows, "subset")) * max(1.8, len(_order(rows, "model")) + bool(others) + 0.5)


def _others(results: pl.DataFrame, what: str) -> Rows:
    """Published neighbours by subset, each once."""
    found = {s.row["subset"]: s.others for s in standings(results) if s.what == what}
    return [
        {"subset": subset, "model": model, "value": value}
        for subset, others in found.items()
        for model, value in others.iter_rows()
    ]


def _chance_ticks(rows: Rows) -> Any:
    values = [{"subset": row["subset"], "model": row["model"], "chance": chance(row)} for row in rows if chance(row)]
    ticks = _chart(values).mark_tick(color=QUIET, thickness=2)
    return ticks.encode(x="chance:Q", y=alt.Y("subset:N", sort=_order(rows, "subset")))


def _rule_at(value: float) -> Any:
    rule = _chart([{"landmark": value}]).mark_rule(color=QUIET, strokeWidth=1.5)
    return rule.encode(x="landmark:Q")


# Small things


def _chart(values: list[dict[str, Any]]) -> alt.Chart:
    data = alt.Data(values=values)  # type: ignore[no-untyped-call]  # altair leaves this class untyped
    return alt.Chart(data)


def _plain(row: Result) -> dict[str, Any]:
    """What a mark needs of a row."""
    return {key: row[key] for key in ("model", "subset", "group", "concept", "value", "low", "high", "n")}


def _tooltip(*fields: str) -> list[alt.Tooltip]:
    numbers = [alt.Tooltip(f"{field}:Q", format=".4f") for field in ("value", "low", "high")]
    return [*(alt.Tooltip(f"{field}:N") for field in fields), *numbers, alt.Tooltip("n:Q")]


def _percent_axis() -> alt.Axis:
    return alt.Axis(labelExpr="format(datum.value * 100, '~r') + ' %'", tickCount=5)


def _order(rows: Rows, key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows if row[key] is not None))


def _whose(rows: Rows, model: str) -> str:
    """The model's name where there are several."""
    return f"{model}: " if len(_order(rows, "model")) > 1 else ""


def _sentence(whose: str, seen: str) -> str:
    """A title: what is seen, with a capital where it begins the line."""
    return f"{whose}{seen}" if whose else seen[:1].upper() + seen[1:]


def _value(row: Result) -> float:
    return float(row["value"])


def _group(row: Result) -> str:
    return words.GROUPS.get(row["group"] or "", row["group"] or "everyone")
