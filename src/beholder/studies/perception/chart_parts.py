"""Parts of Perception's charts: dots, boxes, and panels of curves, ellipses, densities and maps; each fits any width.

A click on the legend highlights one group and fades the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import altair as alt

from beholder.chapter.chart_style import ABOVE, BELOW, QUIET, SERIES, legend_columns
from beholder.chapter.charts import Layers, Rows, by_width, chart, named_scale, order, points_axis, rule_at
from beholder.studies.perception import phrases
from beholder.studies.perception.design import REST

LANE, BOX = 10, 26
"""Pixels of a lane of dots, and of a box."""
LABEL, LETTER = 180, 6.8
"""The most pixels that a name may take on an axis, and about how many a letter takes."""
PROTECTED, OTHER = "#d9822b", "#4c86c0"
KINDS = {"protected": PROTECTED, "not protected": OTHER}
FAINT = 0.12
MANY, SHORT = 4, 20
"""More names than these stand in two columns, if each has no more letters than these."""
GRADIENT: dict[str, Any] = {"gradientLength": 160, "gradientThickness": 8}


def group_dots(rows: Rows, title: str) -> Layers:
    """Dimensions down, a lane for each group, with intervals; 0 is the mean of everyone. The first are labelled."""
    names, first = order(rows, "group"), rows[0]["dimension"]
    colour, shown, picked = _legend(names)
    place = {"y": _down(rows, "dimension"), "yOffset": alt.YOffset("group:N", sort=names), "opacity": shown}
    base = chart(rows).encode(**place)
    x = alt.X("value:Q", title=title, axis=points_axis())
    tooltip = ["dimension:N", "group:N", *_numbers(), "n:Q"]
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    dots = base.mark_point(filled=True, size=42, aria=False).encode(x=x, color=colour, tooltip=tooltip)
    labels = []
    # A label stands on the side of the line on which there is room; a phone has none.
    sides: tuple[tuple[bool, str, Any, int], ...] = ((True, "low", "right", -6), (False, "high", "left", 6))
    for right, end, align, off in sides:
        beside = [
            {**row, "at": row["value"] if row[end] is None else row[end]}
            for row in rows
            if len(names) > 1 and row["dimension"] == first and (row["value"] > 0) == right
        ]
        if beside:
            text = chart(beside).mark_text(align=align, dx=off, fontSize=by_width(0, 10), aria=False)
            labels.append(text.encode(**place, x="at:Q", text="group:N", color=colour))
    return alt.layer(
        rule_at(0.0), whiskers.encode(x="low:Q", x2="high:Q", color=colour), dots.add_params(picked), *labels
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


def curves(points: Rows, lines: Rows, panels: Panels, x_title: str, y_title: str) -> Layers:
    """Means at every level, and lines with their bands where they have any; a panel for each dimension or attribute."""
    colour, shown, picked = _legend(order(points, "group"))
    x, fade = panels.x_axis(x_title), alt.condition(picked, alt.value(0.16), alt.value(0.0))
    line = chart(panels.placed(lines, "level", "value", "low", "high")).encode(x=x, color=colour, detail="panel:N")
    band = line.transform_filter("isValid(datum.low)").mark_area(aria=False)
    dots = chart(panels.placed(points, "level", "value")).mark_point(filled=True, size=18, aria=False)
    tooltip = ["panel:N", "group:N", "level:Q", *_numbers(), "n:Q"]
    layers = (
        band.encode(y=panels.y_axis("y_low", y_title), y2="y_high:Q", opacity=fade),
        line.mark_line(strokeWidth=1.5, aria=False).encode(y=panels.y_axis("y_value", y_title), opacity=shown),
        dots.encode(x=x, y=panels.y_axis("y_value", y_title), color=colour, opacity=shown, tooltip=tooltip),
    )
    frame = panels.frame(x_title, y_title)
    return alt.layer(*frame, *layers[:2], layers[2].add_params(picked)).properties(height=PIXELS * panels.height)


def ellipses(points: Rows, rings: Rows, panels: Panels, unit: str) -> Layers:
    """Negative against positive ends of the scales: a point for each age, an ellipse of 2 σ for each group."""
    colour, shown, picked = _legend(order(points, "group"))
    titles = f"positive ends, {unit}", f"negative ends, {unit}"
    x, y = panels.x_axis(titles[0]), panels.y_axis("y_negative", titles[1])
    placed = [chart(panels.placed(rows, "positive", "negative")) for rows in (rings, points)]
    lines = placed[0].mark_line(strokeWidth=1.5, aria=False).encode(order="step:Q", detail="panel:N")
    dots = placed[1].mark_point(filled=True, size=22, aria=False)
    dots = dots.encode(tooltip=["panel:N", "group:N", "age:Q", "positive:Q", "negative:Q", "n:Q"]).add_params(picked)
    layers = [part.encode(x=x, y=y, color=colour, opacity=shown) for part in (lines, dots)]
    return alt.layer(*panels.frame(*titles), *layers).properties(height=PIXELS * panels.height)


def densities(rows: Rows, panels: Panels, title: str) -> Layers:
    """Smoothed densities, a line for each group; each panel as high as its highest."""
    colour, shown, picked = _legend(order(rows, "group"), symbolType="stroke", symbolStrokeWidth=3)
    lines = chart(panels.placed(rows, "score", "value")).mark_line(strokeWidth=1.5, aria=False)
    place = {"x": panels.x_axis(title), "y": panels.y_axis("y_value", None), "detail": "panel:N"}
    lines = lines.encode(**place, color=colour, opacity=shown, tooltip=["panel:N", "group:N", "score:Q"])
    layers = [*panels.frame(title, None), lines.add_params(picked)]
    return alt.layer(*layers).properties(height=PIXELS * panels.height)


def stacked(rows: Rows) -> Layers:
    """Dimensions down, the spread of each split over the attributes."""
    names = order(rows, "attribute")
    colours = [QUIET if name == REST else SERIES[k % len(SERIES)] for k, name in enumerate(names)]
    x = alt.X("value:Q", title="per cent of the spread", stack=True, axis=points_axis())
    legend = alt.Legend(columns=2)
    colour = alt.Color("attribute:N", sort=names, scale=named_scale(names, colours), legend=legend)
    tooltip = ["dimension:N", "attribute:N", alt.Tooltip("value:Q", format=".1f")]
    y = _down(rows, "dimension")
    bars = chart(rows).mark_bar(aria=False).encode(y=y, x=x, color=colour, order="order:Q", tooltip=tooltip)
    return alt.layer(bars).properties(height=24 * len(order(rows, "dimension")))


def effect_map(rows: Rows, title: str) -> Layers:
    """Contrasts down, dimensions across; the colour is the effect, faint where none is found."""
    most = max((abs(row["value"]) for row in rows), default=1.0) or 1.0
    colour = alt.Color("value:Q", scale=_diverging(most), legend=alt.Legend(title=title, **GRADIENT))
    across = alt.Axis(orient="top", labelAngle=-90, ticks=False, domain=False, labelLimit=LABEL)
    x = alt.X("dimension:N", title=None, sort=order(rows, "dimension"), axis=across)
    base = chart(rows).encode(x=x, y=_down(rows, "contrast", ticks=False, domain=False))
    tooltip = ["contrast:N", "dimension:N", *_numbers(), alt.Tooltip("p_value:Q", title="corrected p", format=".2g")]
    pale = alt.condition("datum.found", alt.value(1), alt.value(0.3))
    text = base.transform_filter("datum.found").mark_text(fontSize=10, color="currentColor", aria=False)
    return alt.layer(
        base.mark_rect(aria=False).encode(color=colour, opacity=pale, tooltip=tooltip),
        text.encode(text=alt.Text("value:Q", format="+.2f")),
    ).properties(height=22 * len(order(rows, "contrast")))


def brightness_maps(rows: Rows, panels: Panels) -> Layers:
    """Squares of the picture, a panel for every two groups; colour says who is brighter there."""
    names = "datum.value > 0 ? 'first brighter' : datum.value < 0 ? 'second brighter' : 'even'"
    legend = alt.Legend(title=None, values=[-1, 0, 1], labelExpr=names, **GRADIENT)
    corners = [
        {
            "panel": row["panel"],
            "value": row["value"],
            **{f"x{end}": panels.x(row["panel"], row["across"] + (end == "2")) for end in ("", "2")},
            **{f"y{end}": panels.y(row["panel"], -row["down"] - (end == "2")) for end in ("", "2")},
        }
        for row in rows
    ]
    squares = chart(corners).mark_rect(aria=False)
    squares = squares.encode(
        x=panels.x_axis(None),
        x2="x2:Q",
        y=panels.y_axis("y", None),
        y2="y2:Q",
        color=alt.Color("value:Q", scale=_diverging(1), legend=legend),
        tooltip=["panel:N", alt.Tooltip("value:Q", format="+.2f")],
    )
    return alt.layer(*panels.frame(None, None), squares).properties(height=PIXELS * panels.height)


# Small things


def _legend(names: list[str], **symbol: Any) -> tuple[alt.Color, Any, Any]:
    """A colour for each group, and a legend whose click highlights one of them."""
    picked = alt.selection_point(fields=["group"], bind="legend")
    scale = named_scale(names, [SERIES[k % len(SERIES)] for k in range(len(names))])
    columns = max(legend_columns(names), 2 if len(names) > MANY and max(map(len, names)) <= SHORT else 1)
    legend = alt.Legend(columns=columns, **symbol)
    colour = alt.Color("group:N", sort=names, scale=scale, legend=legend)
    return colour, alt.condition(picked, alt.value(0.95), alt.value(FAINT)), picked


def _down(rows: Rows, name: str, **axis: Any) -> alt.Y:
    """Names from top to bottom, in the order of the rows."""
    # A reader's font may be wider than the one with which a picture was laid out.
    room = min(LABEL, LETTER * max(len(each) for each in order(rows, name))) + 8
    return alt.Y(
        f"{name}:N", title=None, sort=order(rows, name), axis=alt.Axis(labelLimit=LABEL, minExtent=room, **axis)
    )


def _numbers(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in names or ("value", "low", "high")]


def _diverging(most: float) -> alt.Scale:
    """Colours from below to above, faint near 0."""
    colours = [f"rgba({hue}, {alpha})" for hue, alpha in ((BELOW, 1), (BELOW, 0.03), (ABOVE, 0.03), (ABOVE, 1))]
    return alt.Scale(domain=[-most, -most / 1e6, most / 1e6, most], range=colours)


# Small multiples in one view

Span = tuple[float, float]
LEFT, WIDTH = 0.05, 0.88
BOTTOM, HEIGHT = 0.13, 0.68
"""The part of a cell in which the numbers are; above it is the panel's name, below it the ends of x."""
PIXELS = 170
"""Height of a row of panels."""
INK = "currentColor"


class Panels(NamedTuple):
    """Panels from left to right and from top to bottom."""

    names: list[str]
    across: dict[str, Span]
    """From where to where x runs in each panel."""
    down: Span
    """From where to where y runs in all of them."""
    columns: int = 4
    ends: bool = True
    """Whether the ends of x are written below each panel."""

    @property
    def width(self) -> int:
        """Cells side by side."""
        return min(self.columns, len(self.names))

    @property
    def height(self) -> int:
        """Rows of cells."""
        return math.ceil(len(self.names) / self.columns)

    def cell(self, panel: str) -> tuple[int, int]:
        """How many cells are left of a panel's, and how many below."""
        place = self.names.index(panel)
        return place % self.columns, self.height - 1 - place // self.columns

    def x(self, panel: str, value: float) -> float:
        """The place of a number across."""
        return round(self.cell(panel)[0] + LEFT + WIDTH * _share(value, self.across[panel]), 4)

    def y(self, panel: str, value: float) -> float:
        """The place of a number upwards; one that leaves the panel stands at its edge."""
        return round(self.cell(panel)[1] + BOTTOM + HEIGHT * min(max(_share(value, self.down), 0.0), 1.0), 4)

    def placed(self, rows: Rows, x: str, *heights: str) -> Rows:
        """The rows with `x`, and `y_<name>` for each name of `heights`; what is absent stays so."""
        laid = []
        for row in rows:
            panel = row["panel"]
            ys = {f"y_{name}": None if row[name] is None else self.y(panel, row[name]) for name in heights}
            laid.append({**row, "x": self.x(panel, row[x]), **ys})
        return laid

    def x_axis(self, title: str | None, field: str = "x") -> alt.X:
        """No ticks: the ends of x stand below each panel."""
        axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=title)
        return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, self.width], nice=False), axis=axis)

    def y_axis(self, field: str, title: str | None) -> alt.Y:
        """The same ticks in every row of panels; none without a title."""
        axis = None
        if title:
            inside = f"datum.value - floor(datum.value) - {BOTTOM}"
            slope, step = (self.down[1] - self.down[0]) / HEIGHT, step_of(self.down)
            places = [self.y(name, tick) for name in self.names[:: self.columns] for tick in ticks(self.down)]
            label = f"format(round(({self.down[0]} + ({inside}) * {slope}) / {step}) * {step}, '~g')"
            axis = alt.Axis(values=places, labelExpr=label, title=title, domain=False, ticks=False)
        return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, self.height], nice=False), axis=axis)

    def frame(self, x_title: str | None, y_title: str | None) -> list[alt.Chart]:
        """The name of every panel, its left edge, and the two ends of its x; axes are those of the other layers."""
        heads, ends, edges = [], [], []
        for name in self.names:
            column, row = self.cell(name)
            heads.append({"x": column + LEFT, "y": row + 0.99, "text": name.replace(", ", ",\n")})
            edges.append({"x": column + LEFT, "y": row + BOTTOM, "y2": row + BOTTOM + HEIGHT})
            for place, end in enumerate(self.across[name] if self.ends else ()):
                text = phrases.decimal(end, ".3g")
                ends.append({"x": column + LEFT + place * WIDTH, "y": row + BOTTOM, "text": text, "end": place})
        x, y = self.x_axis(x_title), self.y_axis("y", y_title)
        below: dict[str, Any] = {"baseline": "top", "dy": 3, "fontSize": 10, "color": INK, "aria": False}
        aligns: tuple[Any, ...] = ("left", "right") if self.ends else ()
        texts = [
            chart([row for row in ends if row["end"] == place]).mark_text(align=align, **below)
            for place, align in enumerate(aligns)
        ]
        head = chart(heads).mark_text(
            align="left",
            baseline="top",
            fontSize=by_width(8, 10),
            fontWeight=600,
            color=INK,
            lineBreak="\n",
            aria=False,
        )
        edge = chart(edges).mark_rule(color=QUIET, aria=False).encode(x=x, y=y, y2="y2:Q")
        return [edge, *(part.encode(x=x, y=y, text="text:N") for part in (head, *texts))]


def span(values: Iterable[float | None]) -> Span:
    """From the least to the greatest; a width of 1 where all are alike."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def step_of(ends: Span) -> float:
    """A round number that fits between two ends at least three times.

    >>> step_of((-1.2, 3.1)), step_of((0.0, 0.1))
    (1.0, 0.02)
    """
    rough = (ends[1] - ends[0]) / 3
    power = 10.0 ** math.floor(math.log10(rough))
    return max(size * power for size in (1, 2, 5) if size * power <= rough)


def ticks(ends: Span) -> list[float]:
    """The multiples of the step between two ends.

    >>> ticks((-1.2, 3.1)), ticks((0.0, 1.0))
    ([-1.0, 0.0, 1.0, 2.0, 3.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    step = step_of(ends)
    return [round(k * step, 12) for k in range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)]


def _share(value: float, ends: Span) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])
