"""Figure: a chart with its title and caption, as one view whose width follows its container."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from beholder.chapter.chart_parts import Layers, Rows, order
from beholder.chapter.chart_style import PAPER_INK, PAPER_WIDTH, config
from beholder.chapter.queries import by_model


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
        # Every mark was checked when it was made; checking the whole again takes longer than drawing it.
        said = f"{self.title}. {self.caption}"  # for who hears the page
        return {**sized.to_dict(validate=False), "config": config(ink), "description": said}

    def paper(self) -> dict[str, Any]:
        """The same with its title inside, for a file, with room for a reader's fonts, which may be wider than ours."""
        room = {"left": 24, "right": 24, "top": 8, "bottom": 8}
        spec = self.spec(ink=PAPER_INK, width=PAPER_WIDTH)
        return {**spec, "title": self.title, "background": "white", "padding": room}


def whose(rows: Rows, model: str) -> str:
    """The model's name where there are several."""
    return f"{model}, " if len(order(rows, "model")) > 1 else ""


def sentence(whose: str, seen: str) -> str:
    """A title: what is seen, with a capital where it begins the line."""
    return f"{whose}{seen}" if whose else seen[:1].upper() + seen[1:]


def each_model(part: pl.DataFrame, draw: Callable[[pl.DataFrame], Iterable[Figure]]) -> Iterator[Figure]:
    """Every model's figures; those of several models are numbered and named after their model."""
    several = part["model"].n_unique() > 1
    for number, (model, rows) in enumerate(by_model(part), 1):
        for figure in draw(rows):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)
