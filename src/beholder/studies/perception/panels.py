"""Forms of Perception's charts: dots, boxes, and panels of lines and maps; each is one view that fits any width.

A click on the legend highlights one group and fades the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt

from beholder.chapter.chart_style import QUIET, legend_columns
from beholder.chapter.charts import (
    INK,
    NUMBERS,
    Axis,
    Layers,
    Rows,
    by_width,
    chart,
    diverging,
    names_down,
    order,
    rounded,
    rule_at,
    series,
    whiskers,
)
from beholder.core.types import Entry
from beholder.studies.perception.phrases import decimal

LANE, BOX = 10, 26  # pixels of a lane of dots, and of a box
LABEL, LETTER = 180, 6.8  # the most pixels that a name may take on an axis, and about how many a letter takes
KINDS = {"protected": "#d9822b", "not protected": "#4c86c0"}
FAINT = 0.12
MANY, SHORT = 4, 20  # more names than these stand in two columns, if each has no more letters than these


def numbers(*names: str) -> list[alt.Tooltip]:
    """Tooltips of these numbers."""
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in names or NUMBERS]


def down(rows: Rows, name: str, **axis: Any) -> alt.Y:
    """Names from top to bottom, with room for long ones."""
    room = min(LABEL, LETTER * max(map(len, order(rows, name)))) + 8
    return names_down(rows, name, labelLimit=LABEL, minExtent=room, **axis)


def _highlight(rows: Rows, **symbol: Any) -> tuple[alt.Color, Any, Any]:
    """A colour for each group, and a legend whose click highlights one of them."""
    names, picked = order(rows, "group"), alt.selection_point(fields=["group"], bind="legend")
    columns = max(legend_columns(names), 2 if len(names) > MANY and max(map(len, names)) <= SHORT else 1)
    colour = series(rows, "group", columns=columns, **symbol).colour
    return colour, alt.condition(picked, alt.value(0.95), alt.value(FAINT)), picked


def group_dots(rows: Rows, title: str) -> Layers:
    """Dimensions down, a lane for each group, with intervals; 0 is the mean of everyone. The first are labelled."""
    names, first = order(rows, "group"), rows[0]["dimension"]
    colour, shown, picked = _highlight(rows)
    lanes = alt.YOffset("group:N", sort=names)
    place = {"y": down(rows, "dimension"), "yOffset": lanes, "opacity": shown, "color": colour}
    base = chart(rows).encode(**place)
    tooltip = ["dimension:N", "group:N", *numbers(), "n:Q"]
    dots = base.mark_point(filled=True, size=42, aria=False).encode(x=Axis(title).x(), tooltip=tooltip)
    layers = [rule_at(0.0), whiskers(base), dots.add_params(picked)]
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
            layers.append(text.encode(**place, x="at:Q", text="group:N"))
    return alt.layer(*layers).properties(height=LANE * len(order(rows, "dimension")) * (len(names) + 0.8))


def boxes(rows: Rows, title: str) -> Layers:
    """Attributes down, the largest median first; box: middle half, line: 5 to 95 %."""
    x, kinds = Axis(title, scale={"domainMin": 0}).x("low"), series(rows, "kind", KINDS, columns=2)
    base = chart(rows).encode(y=names_down(rows, "attribute"), color=kinds.colour)
    tooltip = ["attribute:N", "kind:N", *numbers("lower", "value", "upper"), "n:Q"]
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, aria=False).encode(x=x, x2="high:Q"),
        base.mark_bar(height=14, opacity=0.55, aria=False).encode(x="lower:Q", x2="upper:Q", tooltip=tooltip),
        base.mark_tick(thickness=3, height=18, aria=False).encode(x="value:Q"),
    ).properties(height=BOX * len(rows))


# Small multiples in one view

Span = tuple[float, float]
LEFT, WIDTH = 0.05, 0.88
BOTTOM, HEIGHT = 0.13, 0.68
"""The part of a cell in which the numbers are; above it is the panel's name, below it the ends of x."""
PIXELS = 170  # height of a row of panels


class Panels(NamedTuple):
    """Panels from left to right and from top to bottom."""

    names: list[str]
    across: dict[str, Span]  # from where to where x runs in each panel
    down: Span  # from where to where y runs in all of them
    columns: int = 4
    ends: bool = True  # whether the ends of x are written below each panel

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
        return [
            {
                **row,
                "x": self.x(row["panel"], row[x]),
                **{f"y_{name}": self.y(row["panel"], row[name]) for name in heights if row.get(name) is not None},
            }
            for row in rows
        ]

    def x_axis(self, title: str | None) -> alt.X:
        """No ticks: the ends of x stand below each panel."""
        axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False, title=title)
        width = min(self.columns, len(self.names))
        return alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=axis)

    def y_axis(self, field: str, title: str | None) -> alt.Y:
        """The same ticks in every row of panels; none without a title."""
        axis = None
        if title:
            inside = f"datum.value - floor(datum.value) - {BOTTOM}"
            slope, step = (self.down[1] - self.down[0]) / HEIGHT, rounded((self.down[1] - self.down[0]) / 3)
            ticks = range(math.ceil(self.down[0] / step), math.floor(self.down[1] / step) + 1)
            places = [self.y(name, tick * step) for name in self.names[:: self.columns] for tick in ticks]
            label = f"format(round(({self.down[0]} + ({inside}) * {slope}) / {step}) * {step}, '~g')"
            axis = alt.Axis(values=places, labelExpr=label, title=title, domain=False, ticks=False)
        return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, self.height], nice=False), axis=axis)

    def layered(self, layers: Sequence[alt.Chart], x_title: str | None, y_title: str | None) -> Layers:
        """The layers over the name of every panel, its left edge, and the two ends of its x."""
        corners = [(name, column + LEFT, row) for name in self.names for column, row in [self.cell(name)]]
        heads = [{"x": x, "y": row + 0.99, "text": name.replace(", ", ",\n")} for name, x, row in corners]
        bold: Entry = {"align": "left", "fontSize": by_width(8, 10), "fontWeight": 600, "lineBreak": "\n"}
        texts = [(heads, bold)]
        for place, align in enumerate(("left", "right") if self.ends else ()):
            ends = [
                {"x": x + place * WIDTH, "y": row + BOTTOM, "text": decimal(self.across[name][place], ".3g")}
                for name, x, row in corners
            ]
            texts.append((ends, {"align": align, "dy": 3, "fontSize": 10}))
        edges = [{"x": x, "y": row + BOTTOM, "y2": row + BOTTOM + HEIGHT} for _, x, row in corners]
        x, y = self.x_axis(x_title), self.y_axis("y", y_title)
        frame = [chart(edges).mark_rule(color=QUIET, aria=False).encode(x=x, y=y, y2="y2:Q")]
        for rows, mark in texts:
            text = chart(rows).mark_text(baseline="top", color=INK, aria=False, **mark)
            frame.append(text.encode(x=x, y=y, text="text:N"))
        return alt.layer(*frame, *layers).properties(height=PIXELS * self.height)


def panelled(
    panels: Panels,
    lines: Rows,
    dots: Rows,
    x: str,
    y: str,
    *,
    titles: tuple[str, str | None],
    tips: Sequence[str] = (),
    **symbol: Any,
) -> Layers:
    """Lines, with bands where they have bounds, and dots: a colour for each group, in the order of `step` if any."""
    colour, shown, picked = _highlight(dots or lines, **symbol)
    place: Entry = {"x": panels.x_axis(titles[0]), "color": colour}
    height = panels.y_axis(f"y_{y}", titles[1])
    tooltip = ["panel:N", "group:N", *tips]
    line = chart(panels.placed(lines, x, y, "low", "high")).encode(**place, detail="panel:N")
    layers = [line.mark_line(strokeWidth=1.5, aria=False).encode(y=height, opacity=shown, tooltip=tooltip)]
    if any("step" in row for row in lines):
        layers = [layers[0].encode(order="step:Q")]
    if any(row.get("low") is not None for row in lines):
        fade = alt.condition(picked, alt.value(0.16), alt.value(0.0))
        band = line.transform_filter("isValid(datum.y_low)").mark_area(aria=False)
        layers.insert(0, band.encode(y=panels.y_axis("y_low", titles[1]), y2="y_high:Q", opacity=fade))
    if dots:
        points = chart(panels.placed(dots, x, y)).mark_point(filled=True, size=20, aria=False)
        layers.append(points.encode(**place, y=height, opacity=shown, tooltip=tooltip))
    return panels.layered([*layers[:-1], layers[-1].add_params(picked)], *titles)


def brightness_maps(rows: Rows, panels: Panels) -> Layers:
    """Squares of the picture, a panel for every two groups; colour says who is brighter there."""
    label = "datum.value > 0 ? 'first brighter' : datum.value < 0 ? 'second brighter' : 'even'"
    legend = alt.Legend(title=None, values=[-1, 0, 1], labelExpr=label, gradientLength=160, gradientThickness=8)
    corners = [
        {
            "panel": row["panel"],
            "value": row["value"],
            **{f"x{end}": panels.x(row["panel"], row["across"] + (end == "2")) for end in ("", "2")},
            **{f"y{end}": panels.y(row["panel"], -row["down"] - (end == "2")) for end in ("", "2")},
        }
        for row in rows
    ]
    colour = alt.Color("value:Q", scale=diverging(1), legend=legend)
    squares = chart(corners).mark_rect(aria=False).encode(x=panels.x_axis(None), x2="x2:Q", y2="y2:Q", color=colour)
    tooltip = ["panel:N", alt.Tooltip("value:Q", format="+.2f")]
    return panels.layered([squares.encode(y=panels.y_axis("y", None), tooltip=tooltip)], None, None)


def span(values: Iterable[float | None]) -> Span:
    """From the least to the greatest; a width of 1 where all are alike."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _share(value: float, ends: Span) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])
