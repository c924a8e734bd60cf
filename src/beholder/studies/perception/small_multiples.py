"""Small multiples in one view: panels in rows, on scales that they share, as wide as the page.

Vega-Lite cannot fit facets to the width of their container. Here every panel is a cell of one view instead: the place
of a number is that of its panel's cell plus its place inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import altair as alt

from beholder.chapter.chart_parts import Rows, by_width, chart
from beholder.chapter.chart_style import QUIET
from beholder.studies.perception import phrases

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
