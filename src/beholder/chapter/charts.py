"""Charts: a figure, and the forms of which rooms declare theirs: forest, bars, heatmap, curves, scatter.

Each form takes rows and the names of their fields and makes one view whose width follows its container. Rows may say
`found` (what was not found is pale or hollow), `low` and `high` (drawn as an interval where they are there) and `n`.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from beholder.chapter import chart_style
from beholder.chapter.chart_style import ABOVE, BELOW, PAPER_INK, PAPER_WIDTH, QUIET, Spec
from beholder.chapter.finding import Finding, by_model
from beholder.chapter.numbers import Result, plural

Rows = list[Result]
Layers = alt.LayerChart | alt.FacetChart  # what altair says layers may become; ours are never facetted
LANE, BAR = 15, 11  # height of one lane and of one bar in pixels
PAPER_TITLE, PAPER_LABELS = 60, 320  # characters of a line of a title, pixels of a label, in a file
PALE = 0.35  # opacity of what was not found
INK = "currentColor"
EVERYONE = "everyone"
PUBLISHED_LANE = "published"
NUMBERS = ("value", "low", "high")


class Figure(NamedTuple):
    """A chart with a title that says what is seen, and how to read it."""

    name: str
    title: str
    caption: str
    chart: Layers
    topic: str
    wide: bool = False
    answers: tuple[str, ...] = ()  # the kind of finding whose headline is the title, and names in its first row
    model: str = ""  # the model that it is about, where a run has several

    def spec(self, *, ink: str, width: int | str) -> Spec:
        sized = self.chart.properties(width=width, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        # Every mark was checked when it was made; checking the whole again takes longer than drawing it.
        said = f"{self.title}. {self.caption}"  # for who hears the page
        return {**sized.to_dict(validate=False), "config": chart_style.config(ink), "description": said}

    def paper(self, *, title: bool = True) -> Spec:
        """The same for a file, its title inside if wanted, with room for labels and for fonts wider than ours."""
        room = {"left": 24, "right": 24, "top": 8, "bottom": 8}
        spec = self.spec(ink=PAPER_INK, width=PAPER_WIDTH)
        # A title in one line that is wider than the chart would squeeze it.
        spec["config"] = {**spec["config"], "axis": {**spec["config"]["axis"], "labelLimit": PAPER_LABELS}}
        named = {"title": wrap(self.title, PAPER_TITLE)} if title else {}
        return {**spec, **named, "background": "white", "padding": room}

    def titled(self, findings: Iterable[Finding]) -> "Figure":
        """The figure under the headline of the finding that it illustrates, if it is among these."""
        same = []
        for each in findings:
            names = [each.kind, *(name for row in each.rows[:1] for name in row.values())]
            if self.answers and all(name in names for name in self.answers) and self.model in ("", each.model):
                same.append(each)
        if not same or len({each.model for each in same}) > 1:  # one model's headline is not what several show
            return self
        return self._replace(title=sentence(f"{self.model}, " if self.model else "", same[0].headline))


def sentence(whose: str, seen: str) -> str:
    """A title: what is seen, with a capital where it begins the line."""
    return f"{whose}{seen}" if whose else seen[:1].upper() + seen[1:]


def each_model(part: pl.DataFrame, draw: Callable[[pl.DataFrame], Iterable[Figure]]) -> Iterator[Figure]:
    """Every model's figures; those of several models are numbered and named after their model."""
    several = part["model"].n_unique() > 1
    for number, (model, rows) in enumerate(by_model(part), 1):
        for figure in draw(rows):
            if several:
                figure = figure._replace(name=f"{figure.name}-{number}", model=model)
            yield figure._replace(title=sentence(f"{model}, " if several else "", figure.title))


# Forms


class Series(NamedTuple):
    """The colour, and the shape if there is one, of each name in a field."""

    colour: alt.Color
    shape: Any = alt.Undefined


class Axis(NamedTuple):
    """An axis of numbers: its title, whether they are shares in per cent, and how they are scaled."""

    title: str | None
    percent: bool = False
    scale: Spec | None = None  # options of the scale, such as its `domain` or `type`
    labels: Spec | None = None  # options of the axis, in place of the usual ones

    def x(self, field: str = "value") -> alt.X:
        return alt.X(f"{field}:Q", **self._options())

    def y(self, field: str = "value") -> alt.Y:
        return alt.Y(f"{field}:Q", **self._options())

    def _options(self) -> Spec:
        usual = percent_axis() if self.percent else alt.Axis(tickCount=5, format="~r")
        axis = usual if self.labels is None else alt.Axis(**self.labels)
        return {"title": self.title, "axis": axis, **({"scale": alt.Scale(**self.scale)} if self.scale else {})}


RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100]


def ratio_axis(rows: Rows) -> Axis:
    """An axis of ratios around 1, from one in a hundred to a hundred at most."""
    bounds = [bound for row in rows for key in NUMBERS if (bound := row.get(key))]
    domain = [max(0.01, min(0.5, 0.95 * min(bounds))), min(100.0, max(2.0, 1.05 * max(bounds)))]
    ticks = [tick for tick in RATIO_TICKS if domain[0] <= tick <= domain[1]]
    scale = {"type": "log", "domain": domain, "clamp": True, "nice": False}
    return Axis("women ÷ men (logarithmic)", scale=scale, labels={"values": ticks, "format": "~g"})


MOST_DRAWN = 100  # places down a chart; more would neither be read nor drawn in time


def forest(
    rows: Rows,
    x: Axis,
    *,
    down: str = "subset",
    lane: str = "model",
    marks: Series | None = None,
    published: Rows = [],  # noqa: B006 - read only
    landmark: float | None = None,
    size: int = 70,
) -> Layers:
    """Values with intervals: places down, in each a lane for every model or group, and one for published models."""
    # A row's `chance` is drawn as a tick, `landmark` as a line.
    lanes = [*order(rows, lane), *([PUBLISHED_LANE] if published else [])]
    scale, y = alt.Scale(domain=lanes), names_down(rows, down)
    marks = marks or series(rows, lane, alone=False)
    offset = alt.YOffset(f"{lane}:N", scale=scale)
    base = chart(fields(rows, down, lane, *NUMBERS, "n")).encode(y=y, yOffset=offset, color=marks.colour)
    points = base.mark_point(filled=True, size=size, opacity=1)
    layers = [whiskers(base), points.encode(x=x.x(), shape=marks.shape, tooltip=tooltip(down, lane))]
    if published:
        small = chart([{**other, "lane": PUBLISHED_LANE} for other in published])
        ticks = small.mark_tick(color=QUIET, thickness=1.5, height=9)
        offset = alt.YOffset("lane:N", scale=scale)
        layers = [ticks.encode(x="value:Q", y=y, yOffset=offset, tooltip=["model:N", "value:Q"]), *layers]
    if any(row.get("chance") for row in rows):
        by_chance = fields([row for row in rows if row.get("chance")], down, lane, "chance")
        layers.append(chart(by_chance).mark_tick(color=QUIET, thickness=2).encode(x="chance:Q", y=y))
    if landmark is not None:
        layers.append(rule_at(landmark))
    return alt.layer(*layers).properties(height=LANE * len(order(rows, down)) * max(1.8, len(lanes) + 0.5))


def bars(
    rows: Rows,
    x: Axis,
    *,
    down: str,
    marks: Series,
    lane: str = "",
    tick: str = "",
    landmark: float | None = None,
    tips: Sequence[str | alt.Tooltip] = (),
    room: float = 20,
    upright: bool = False,
) -> Layers:
    """Bars with intervals; a lane for each colour where `lane` is given, a tick at that field; `upright` from below."""
    along = "y" if upright else "x"
    places, lanes = order(rows, down), order(rows, lane) if lane else [""]
    if upright:
        slanted = len(places) > 5 or max(map(len, places)) > 10  # others stand side by side on a phone
        axis = alt.Axis(labelAngle=-35, labelAlign="right") if slanted else alt.Axis(labelAngle=0)
        base = chart(rows).encode(x=alt.X(f"{down}:N", title=None, sort=places, axis=axis), y=x.y())
        base = base.encode(xOffset=alt.XOffset(f"{lane}:N", sort=lanes)) if lane else base
    else:
        base = chart(rows).encode(y=names_down(rows, down), x=x.x())
        base = base.encode(yOffset=alt.YOffset(f"{lane}:N", sort=lanes)) if lane else base
    size: Spec = {"cornerRadiusEnd": 2} if lane else {"height": BAR}
    bar = base.mark_bar(aria=False, **size).encode(color=marks.colour, tooltip=[*tips] or tooltip(down, lane))
    if any("found" in row for row in rows):
        bar = bar.encode(opacity=shown(PALE))
    layers = [bar, whiskers(base, along, strokeWidth=1.5, color=INK, opacity=0.7)]
    if tick:
        there = base.transform_filter(f"isValid(datum.{tick})")
        mark = there.mark_tick(color=INK, thickness=2, opacity=0.6, size=BAR, aria=False)
        layers.append(mark.encode(y=f"{tick}:Q") if upright else mark.encode(x=f"{tick}:Q"))
    if landmark is not None:
        layers.append(rule_at(landmark, along))
    height = 240 if upright else room * max(2, len(places)) * (1 if len(lanes) < 2 else len(lanes) + 0.5)
    return alt.layer(*layers).properties(height=height)


def heatmap(
    cells: Rows,
    *,
    across: str,
    down: str,
    lines: list[str] | None = None,
    headings: Sequence[str] = (),
    unit: str | None = None,
    text: str = "",
    room: float = 22,
    tips: Sequence[str | alt.Tooltip] = (),
) -> Layers:
    """Cells whose colour is their distance from 0, which fades into the page at 0, so that it serves light and dark."""
    # `lines` may have `headings` in bold among them; `text` is the format of the numbers, where cells are large enough.
    columns, lines = order(cells, across), lines or order(cells, down)
    most = max((abs(cell["value"]) for cell in cells), default=1.0) or 1.0
    sign = "(datum.value > 0 ? '+' : '') + format(datum.value, '~r')"
    values = [-rounded(most), 0, rounded(most)]
    legend = alt.Legend(title=unit, gradientLength=160, gradientThickness=8, labelExpr=sign, values=values)
    angle = -90 if max(map(len, columns), default=0) > 4 else 0
    top = alt.Axis(orient="top", labelAngle=angle, ticks=False, domain=False, labelLimit=180)
    left: Spec = {"ticks": False, "domain": False}
    if headings:
        bold = {"test": f"indexof({json.dumps(list(headings))}, datum.value) >= 0", "value": 700}
        left |= {"labelFontWeight": {"condition": bold, "value": 400}, "labelFontSize": 10}
    x = alt.X(f"{across}:N", title=None, sort=columns, axis=top)
    base = chart(cells).encode(x=x, y=names_down(cells, down, lines, **left))
    colour, tip = alt.Color("value:Q", scale=diverging(most), legend=legend), [*tips] or tooltip(down, across)
    layers = [base.mark_rect(aria=False).encode(color=colour, opacity=shown(PALE), tooltip=tip)]
    if text:
        numbers = base.transform_filter("datum.found").mark_text(fontSize=10, color=INK, aria=False)
        layers.append(numbers.encode(text=alt.Text("value:Q", format=text)))
    return alt.layer(*layers).properties(height=room * len(lines))


def rounded(most: float) -> float:
    """The largest round number up to one."""
    unit = 10.0 ** math.floor(math.log10(most))
    return max(step * unit for step in (1, 2, 5) if step * unit <= most)


def curves(
    rows: Rows,
    x: alt.X,
    y: Axis,
    *,
    marks: Series,
    band: bool = False,
    diagonal: bool = False,
    tips: Sequence[str] = (),
) -> Layers:
    """Lines through points, with intervals as bands or whiskers; `diagonal` is where x and y are the same."""
    base = chart(rows).encode(x=x, color=marks.colour)
    ends = whiskers(base, "y", strokeWidth=1, opacity=0.6)
    if band:
        ends = ends.mark_area(opacity=0.18, aria=False).encode(y=y.y("low"))
    points = base.mark_point(filled=True, size=50, opacity=1, aria=False)
    points = points.encode(y=y.y(), shape=marks.shape, tooltip=tooltip(*tips))
    layers = [ends, base.mark_line(strokeWidth=2, aria=False).encode(y=y.y()), points]
    if diagonal:
        line = chart([{"x": 0, "y": 0}, {"x": 1, "y": 1}])
        layers.append(line.mark_line(color=QUIET, strokeDash=[4, 3], strokeWidth=1.5).encode(x="x:Q", y="y:Q"))
    return alt.layer(*layers).properties(height=260)


def scatter(
    rows: Rows,
    x: alt.X,
    y: alt.Y,
    *,
    marks: Series,
    tips: Sequence[str | alt.Tooltip],
    also: Sequence[alt.Chart] = (),
    size: int = 60,
    height: float = 280,
) -> Layers:
    """A mark for every row; `also` are layers beneath them, such as lines."""
    dots = chart(rows).mark_point(filled=True, size=size, opacity=0.9, aria=False)
    dots = dots.encode(x=x, y=y, color=marks.colour, shape=marks.shape, tooltip=[*tips])
    return alt.layer(*also, dots).properties(height=height)


def widest(rows: Rows) -> Rows:
    """The rows of the concepts on which groups differ most, no more of them than a chart can show."""
    values: dict[Any, list[float]] = {}
    for row in rows:
        values.setdefault(row["concept"], []).append(row["value"])
    kept = set(sorted(values, key=lambda concept: min(values[concept]) - max(values[concept]))[:MOST_DRAWN])
    return [row for row in rows if row["concept"] in kept]


def dots(rows: Rows, title: str = "share of belief") -> Layers:
    """A forest of concepts down, groups as coloured shapes with their intervals; the largest concept first."""
    best = dict[Any, float]()
    for row in rows:
        best[row["concept"]] = max(row["value"], best.get(row["concept"], row["value"]))
    groups = order(rows, "group") or [EVERYONE]
    named = {group: plural(group) for group in groups}
    if len(set(named.values())) < len(groups):  # a data set may have both "woman" and "women"
        named = {group: group for group in groups}
    data = [{**row, "group": named.get(row["group"], EVERYONE), "chance": None} for row in rows]
    data.sort(key=lambda row: -best[row["concept"]])
    colours = dict(zip(named.values(), chart_style.series_colours(groups), strict=True))
    shapes = {named[group]: shape for group, shape in chart_style.series_shapes(groups).items()}
    marks = series(data, "group", colours, shapes, alone=groups != [EVERYONE])
    x = Axis(title, percent=True, scale={"domainMin": 0})
    return forest(data, x, down="concept", lane="group", marks=marks, size=55)


# Parts


def chart(values: Rows) -> alt.Chart:
    data = alt.Data(values=values)  # type: ignore[no-untyped-call]  # altair leaves this class untyped
    return alt.Chart(data)


def fields(rows: Rows, *names: str) -> Rows:
    """These fields of every row, as far as a row has them."""
    return [{name: row[name] for name in dict.fromkeys(names) if name in row} for row in rows]


def whiskers(base: alt.Chart, along: str = "x", **mark: Any) -> Any:
    """The intervals of rows that have one."""
    rule = base.transform_filter("isValid(datum.low)").mark_rule(**{"strokeWidth": 2, "aria": False, **mark})
    return rule.encode(x="low:Q", x2="high:Q") if along == "x" else rule.encode(y="low:Q", y2="high:Q")


def series(
    rows: Rows,
    field: str,
    colours: Mapping[str, str] | None = None,
    shapes: Mapping[str, str] | None = None,
    *,
    alone: bool = True,
    **legend: Any,
) -> Series:
    """The names in the order of `colours` or of the rows; `alone`: whether a single name has a legend."""
    present = order(rows, field)
    names = present if colours is None else [name for name in colours if name in present]
    key = alt.Legend(**{"columns": chart_style.legend_columns(names), **legend}) if alone or len(names) > 1 else None
    hues = chart_style.series_colours(names) if colours is None else [colours[name] for name in names]
    colour = alt.Color(f"{field}:N", sort=names, scale=alt.Scale(domain=names, range=hues), legend=key)
    if shapes is None:
        return Series(colour)
    scale = alt.Scale(domain=names, range=[shapes[name] for name in names])
    return Series(colour, alt.Shape(f"{field}:N", sort=names, scale=scale, legend=key))


def names_down(rows: Rows, field: str, names: list[str] | None = None, **axis: Any) -> alt.Y:
    """Names from top to bottom, in the order of the rows."""
    names = names or order(rows, field)
    # A reader's font may be wider than the one with which a picture was laid out.
    room = min(axis.get("labelLimit", 130), 6.8 * max(map(len, names), default=0)) + 8
    labels = alt.Axis(**{"minExtent": room, **axis})
    return alt.Y(f"{field}:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=labels)


def shown(otherwise: float, field: str = "found") -> Any:
    """Opaque where a difference was found."""
    return alt.condition(f"datum.{field}", alt.value(1), alt.value(otherwise))


def rule_at(value: float, along: str = "x") -> Any:
    rule = chart([{"landmark": value}]).mark_rule(color=QUIET, strokeWidth=1.5)
    return rule.encode(x="landmark:Q") if along == "x" else rule.encode(y="landmark:Q")


def tooltip(*names: str) -> list[alt.Tooltip]:
    """These fields, then the value with its interval and n."""
    numbers = [alt.Tooltip(f"{name}:Q", format=".4~f") for name in NUMBERS]
    return [*(alt.Tooltip(f"{name}:N") for name in names if name), *numbers, alt.Tooltip("n:Q")]


def percent_axis() -> alt.Axis:
    """An axis of probabilities in per cent."""
    return alt.Axis(labelExpr="datum.value > 1 ? '' : format(datum.value * 100, '~r') + ' %'", tickCount=5)


def diverging(most: float) -> alt.Scale:
    """Colours from below to above; either side keeps its hue and fades towards 0."""
    colours = [f"rgba({hue}, {alpha})" for hue, alpha in ((BELOW, 1), (BELOW, 0.03), (ABOVE, 0.03), (ABOVE, 1))]
    return alt.Scale(domain=[-most, -most / 1e6, most / 1e6, most], range=colours)


def order(rows: Rows, key: str) -> list[str]:
    """The names in a field, each once, in the order of the rows."""
    return list(dict.fromkeys(row[key] for row in rows if row[key] is not None))


def by_width(narrow: float, wide: float) -> alt.ExprRef:
    """A number for a phone, and one for wider pages."""
    return alt.ExprRef(f"width < 400 ? {narrow} : {wide}")
