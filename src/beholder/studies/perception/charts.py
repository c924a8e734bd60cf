"""Perception's figures: what changes the judgements, for whom, and what else may explain them.

First the forms that only they have: dots, boxes, and panels of lines and maps. Each is one view that fits any width; a
click on the legend highlights one group and fades the others.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from beholder.chapter import charts as form
from beholder.chapter.chart_style import QUIET, SERIES, legend_columns, series_shapes
from beholder.chapter.charts import Axis, Figure, Layers, Rows, chart, order, series
from beholder.chapter.finding import by_model, metric_rows
from beholder.chapter.numbers import Result, decimal, listed
from beholder.chapter.numbers import number as counted
from beholder.comparison.groups import CROSSING
from beholder.core.types import Entry
from beholder.studies.mirror import mirror_figures
from beholder.studies.perception import findings
from beholder.studies.perception.bias import AT_REST
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.design import REST
from beholder.studies.perception.findings import attribute, dimension, factor, group, how_many
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import EVERYONE, MEAN

LANE, BOX = 10, 26  # pixels of a lane of dots, and of a box
LABEL = 180  # the most pixels that the name of a dimension may take
KINDS = {"protected": "#d9822b", "not protected": "#4c86c0"}
FAINT = 0.12
MANY, SHORT = 4, 20  # more names than these stand in two columns, if each has no more letters than these


def numbers(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in names or form.NUMBERS]


def _highlight(rows: Rows, **symbol: Any) -> tuple[form.Series, Any, Any]:
    """A colour and a shape for each group, and a legend whose click highlights one of them."""
    names, picked = order(rows, "group"), alt.selection_point(fields=["group"], bind="legend")
    columns = max(legend_columns(names), 2 if len(names) > MANY and max(map(len, names)) <= SHORT else 1)
    marks = series(rows, "group", shapes=series_shapes(names), columns=columns, **symbol)
    return marks, alt.condition(picked, alt.value(0.95), alt.value(FAINT)), picked


def group_dots(rows: Rows, title: str) -> Layers:
    """Dimensions down, a lane for each group, with intervals; 0 is the mean of everyone. The first are labelled."""
    names, first = order(rows, "group"), rows[0]["dimension"]
    marks, shown, picked = _highlight(rows)
    lanes = alt.YOffset("group:N", sort=names)
    y = form.names_down(rows, "dimension", labelLimit=LABEL)
    place = {"y": y, "yOffset": lanes, "opacity": shown, "color": marks.colour}
    base = chart(rows).encode(**place)
    tooltip = ["dimension:N", "group:N", *numbers(), "n:Q"]
    dots = base.mark_point(filled=True, size=42, aria=False).encode(
        x=Axis(title).x(), shape=marks.shape, tooltip=tooltip
    )
    layers = [form.rule_at(0.0), form.whiskers(base), dots.add_params(picked)]
    # A label stands on the side of the line on which there is room; a phone has none.
    sides: tuple[tuple[bool, str, Any, int], ...] = ((True, "low", "right", -6), (False, "high", "left", 6))
    for right, end, align, off in sides:
        here = [row for row in rows if row["dimension"] == first and (row["value"] > 0) == right]
        if len(names) > 1 and here:
            beside = [{**row, "at": row["value"] if row[end] is None else row[end]} for row in here]
            text = chart(beside).mark_text(align=align, dx=off, fontSize=form.by_width(0, 10), aria=False)
            layers.append(text.encode(**place, x="at:Q", text="group:N"))
    return alt.layer(*layers).properties(height=LANE * len(order(rows, "dimension")) * (len(names) + 0.8))


def boxes(rows: Rows, title: str) -> Layers:
    """Attributes down, the largest median first; box: middle half, line: 5 to 95 %."""
    x, kinds = Axis(title, scale={"domainMin": 0}).x("low"), series(rows, "kind", KINDS, columns=2)
    base = chart(rows).encode(y=form.names_down(rows, "attribute"), color=kinds.colour)
    tooltip = ["attribute:N", "kind:N", *numbers("lower", "value", "upper"), "n:Q"]
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, aria=False).encode(x=x, x2="high:Q"),
        base.mark_bar(height=14, opacity=0.55, aria=False).encode(x="lower:Q", x2="upper:Q", tooltip=tooltip),
        base.mark_tick(thickness=3, height=18, aria=False).encode(x="value:Q"),
    ).properties(height=BOX * len(rows))


# Small multiples in one view

Span = tuple[float, float]
Titles = tuple[str, str | None]
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
        low, high = self.across[panel]
        return round(self.cell(panel)[0] + LEFT + WIDTH * ((value - low) / (high - low)), 4)

    def y(self, panel: str, value: float) -> float:
        """The place of a number upwards; one that leaves the panel stands at its edge."""
        share = (value - self.down[0]) / (self.down[1] - self.down[0])
        return round(self.cell(panel)[1] + BOTTOM + HEIGHT * min(max(share, 0.0), 1.0), 4)

    def placed(self, rows: Rows, x: str, *heights: str) -> Rows:
        """The rows with `x`, and `y_<name>` for each name of `heights`; what is absent stays so."""
        placed = []
        for row in rows:
            known = [name for name in heights if row.get(name) is not None]
            ys = {f"y_{name}": self.y(row["panel"], row[name]) for name in known}
            placed.append({**row, "x": self.x(row["panel"], row[x]), **ys})
        return placed

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
            slope, step = (self.down[1] - self.down[0]) / HEIGHT, form.rounded((self.down[1] - self.down[0]) / 3)
            ticks = range(math.ceil(self.down[0] / step), math.floor(self.down[1] / step) + 1)
            places = [self.y(name, tick * step) for name in self.names[:: self.columns] for tick in ticks]
            label = f"format(round(({self.down[0]} + ({inside}) * {slope}) / {step}) * {step}, '~g')"
            axis = alt.Axis(values=places, labelExpr=label, title=title, domain=False, ticks=False)
        return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, self.height], nice=False), axis=axis)

    def layered(self, layers: Sequence[alt.Chart], x_title: str | None, y_title: str | None) -> Layers:
        """The layers over the name of every panel, its left edge, and the two ends of its x."""
        corners = [(name, column + LEFT, row) for name in self.names for column, row in [self.cell(name)]]
        heads = [{"x": x, "y": row + 0.99, "text": name.replace(", ", ",\n")} for name, x, row in corners]
        bold: Entry = {"align": "left", "fontSize": form.by_width(8, 10), "fontWeight": 600, "lineBreak": "\n"}
        texts = [(heads, bold)]
        for place, align in enumerate(("left", "right") if self.ends else ()):
            ends = [(decimal(self.across[name][place], ".3g"), x + place * WIDTH, row) for name, x, row in corners]
            below = [{"x": x, "y": row + BOTTOM, "text": text} for text, x, row in ends]
            texts.append((below, {"align": align, "dy": 3, "fontSize": 10}))
        edges = [{"x": x, "y": row + BOTTOM, "y2": row + BOTTOM + HEIGHT} for _, x, row in corners]
        x, y = self.x_axis(x_title), self.y_axis("y", y_title)
        frame = [chart(edges).mark_rule(color=QUIET, aria=False).encode(x=x, y=y, y2="y2:Q")]
        for rows, mark in texts:
            text = chart(rows).mark_text(baseline="top", color=form.INK, aria=False, **mark)
            frame.append(text.encode(x=x, y=y, text="text:N"))
        return alt.layer(*frame, *layers).properties(height=PIXELS * self.height)


def panelled(
    panels: Panels, lines: Rows, dots: Rows, x: str, y: str, *, titles: Titles, tips: Sequence[str], **symbol: Any
) -> Layers:
    """Lines, with bands where they have bounds, and dots: a colour for each group, in the order of `step` if any."""
    marks, shown, picked = _highlight(dots or lines, **symbol)
    place: Entry = {"x": panels.x_axis(titles[0]), "color": marks.colour}
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
    corners = []
    for row in rows:
        panel, across, down = row["panel"], row["across"], row["down"]
        xs = {"x": panels.x(panel, across), "x2": panels.x(panel, across + 1)}
        ys = {"y": panels.y(panel, -down), "y2": panels.y(panel, -down - 1)}
        corners.append({"panel": panel, "value": row["value"], **xs, **ys})
    colour = alt.Color("value:Q", scale=form.diverging(1), legend=legend)
    squares = chart(corners).mark_rect(aria=False).encode(x=panels.x_axis(None), x2="x2:Q", y2="y2:Q", color=colour)
    tooltip = ["panel:N", alt.Tooltip("value:Q", format="+.2f")]
    return panels.layered([squares.encode(y=panels.y_axis("y", None), tooltip=tooltip)], None, None)


def span(values: Iterable[float | None]) -> Span:
    """From the least to the greatest; a width of 1 where all are alike."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


MOST_MODELS = 2  # figures with a point for every group and level are drawn for at most so many models
MAPS_ACROSS, CLOUDS_ACROSS = 3, 2
RING = 48
GROUP = pl.col("group") != EVERYONE  # rows of a group
CURVE_TIPS = ("level:Q", "value:Q", "low:Q", "high:Q", "n:Q")
PROTECTED = ("race", "skin_tone", "gender", "age")
CAPTIONS = {  # by the figure's name; {unit} is that of the judgements
    "groups": "Δ of each group less Δ of everyone, {unit}, with 95 % intervals of the group; where groups are farthest "
    "apart comes first. Line: the same as everyone. Click a group in the legend to highlight it.",
    "effects": "Average change of Δ when one attribute is changed and all else stays, {unit}; intervals hold for all "
    "of them at once. Faint: not found.",
    "induced-variation": "|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {unit}, all dimensions. Tick: "
    "median; box: middle half; line: 5 to 95 %. Noise alone makes it more than 0: read it with the effects.",
    "variance": "Share of the variance of Δ that each attribute explains, less what chance gives; rest: interactions "
    "and what no attribute explains.",
    "separation": "A point for each age and group: mean Δ of the negative ends of the scales against that of the "
    "positive ends. A scale has the name of its positive end. Ellipses: 2 standard deviations over the ages. No test: "
    "a few ages do not tell how far ages spread.",
    "densities": "Smoothed density over the images of each group, {unit}; each panel has scales of its own. Before Δ: "
    "mean of all dimensions; after Δ: the same less the neutral prompt. In quotes: control words.",
    "neutral-r": "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % "
    "intervals: 1: an image that fits “person” fits any adjective; 0: the dimension does not depend on that.",
    "neutral-group-r": "Each group against the others: correlation of the neutral prompt's cosine over the seeds that "
    "both have, with 95 % intervals; 1: the same faces fit “person” in both groups.",
    "neutral-seeds": "A point for each seed: the neutral prompt's cosine in the second group over that in the first, "
    "{unit}; r over the seeds.",
    "brightness": "Where the grey values of pairs differ that differ in this alone. Signs are taken pixel by pixel; "
    "squares are their means. +1: the first is always brighter, −1: the second. About the pictures, not about the "
    "model.",
}
WHEN = {"cosine": "before Δ", "delta_cosine": "after Δ"}
# The panels of densities, before those of the control words
DENSITIES = {"neutral": "neutral prompt", AT_REST: "neutral prompt, no smile", **WHEN}


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure: the curves of all models in one, the others model by model."""
    few = part["model"].n_unique() <= MOST_MODELS
    if few:
        yield from _trajectories(part)
    makers = (*FIGURES, *(CURVE_FIGURES if few else ()))
    yield from form.each_model(part, lambda results: (figure for draw in makers for figure in draw(results)))


def _figure(name: str, title: str, drawing: Layers, topic: str, unit: str = "", *, wide: bool = True) -> Figure:
    return Figure(name, title, CAPTIONS[name].format(unit=unit), drawing, topic, wide=wide)


def _dot(row: Result, name: str, centre: float = 0.0) -> Result:
    return {"dimension": dimension(row["concept"]), "group": name, "n": row["n"], **findings.printed(row, centre)}


def _summary(results: pl.DataFrame) -> Iterator[Figure]:
    subset, unit, table = findings.finest(results), findings.printed_unit(results), metric_rows(results, "delta_cosine")
    everyone = dict(table.filter(subset=EVERYONE).select("concept", "value").iter_rows())
    table = table.filter(subset=subset)
    rows = [_dot(row, group(row["group"], subset), everyone[row["concept"]]) for row in table.to_dicts()]
    if subset == EVERYONE or not rows:
        return
    values = {name: [row["value"] for row in rows if row["dimension"] == name] for name in order(rows, "dimension")}
    rows.sort(key=lambda row: min(values[row["dimension"]]) - max(values[row["dimension"]]))
    gaps, clear = findings.decided(results, "gap", subset=subset)
    title = "no difference between the groups is found"
    if clear:
        first, second = findings.pair(clear[0])[:: 1 if clear[0]["value"] > 0 else -1]
        widest = f"the widest in {dimension(clear[0]['concept'])}, {first} above {second}"
        title = f"{how_many(len(clear), len(gaps), 'difference', 'between two groups')}, {widest}"
    yield _figure("groups", title, group_dots(rows, f"less everyone, {unit}"), "judgements", unit)


def _effects(results: pl.DataFrame) -> Iterator[Figure]:
    unit, rows = findings.printed_unit(results), []
    for row in metric_rows(results, "causal_effect").to_dicts():
        cell = {"contrast": findings.change(row), "dimension": dimension(row["concept"]), "p_value": row["p_value"]}
        rows.append({**cell, "found": int(findings.found(row)), **findings.printed(row)})
    if rows:
        title = f"{sum(row['found'] for row in rows)} of {len(rows)} effects of one attribute alone are found"
        tips = [alt.Tooltip("contrast:N"), alt.Tooltip("dimension:N"), *numbers()]
        tips.append(alt.Tooltip("p_value:Q", title="corrected p", format=".2g"))
        drawing = form.heatmap(rows, across="dimension", down="contrast", unit=unit, text="+.2f", tips=tips)
        yield _figure("effects", title, drawing, "effects", unit)._replace(answers=("effect",))


def _induced(results: pl.DataFrame) -> Iterator[Figure]:
    """The published measure: boxes of absolute differences, attribute by attribute, the largest median first."""
    unit, rows = findings.printed_unit(results), []
    medians = metric_rows(results, "induced_variation").filter(concept=MEAN).sort("value", descending=True)
    table = metric_rows(results, "induced_variation_quantile").filter(concept=MEAN)
    quantiles = {(row["subset"], row["template"]): row["value"] for row in table.to_dicts()}
    ends = {"low": "0.05", "lower": "0.25", "upper": "0.75", "high": "0.95"}
    for row in medians.to_dicts():
        box = {"value": row["value"], **{name: quantiles.get((row["subset"], end)) for name, end in ends.items()}}
        scaled = {name: None if value is None else round(factor(row) * value, 4) for name, value in box.items()}
        kind = "protected" if row["subset"] in PROTECTED else "not protected"
        rows.append({"attribute": attribute(row["subset"]), "kind": kind, "n": row["n"], **scaled})
    if rows:
        widest, narrowest = (rows[place]["attribute"] for place in (0, -1))
        title = f"the median difference is widest for {widest} and narrowest for {narrowest}"
        drawing = boxes(rows, f"absolute difference, {unit}")
        yield _figure("induced-variation", title, drawing, "effects", unit, wide=False)


def _variance(results: pl.DataFrame) -> Iterator[Figure]:
    """How much of each dimension's variance each attribute explains, block by block: dimensions down, stacked."""
    blocks = metric_rows(results, "variance_share").group_by(["template"], maintain_order=True)
    for block_number, ((block,), table) in enumerate(blocks, 1):
        subsets = table["subset"].unique(maintain_order=True).to_list()
        rows = list[Result]()
        for row in table.to_dicts():
            cell = {"dimension": dimension(row["concept"]), "attribute": attribute(row["subset"])}
            percent = round(100 * max(row["value"], 0.0), 2)
            rows.append({**cell, "order": subsets.index(row["subset"]), "value": percent})
        hues = [QUIET if name == REST else SERIES[k % len(SERIES)] for k, name in enumerate(subsets)]
        colours = dict(zip(map(attribute, subsets), hues, strict=True))
        tooltip = ["dimension:N", "attribute:N", alt.Tooltip("value:Q", format=".1f")]
        colour, x = series(rows, "attribute", colours, columns=2).colour, Axis("per cent of the spread").x().stack(True)
        bars = chart(rows).mark_bar(aria=False).encode(x=x, order="order:Q")
        y = form.names_down(rows, "dimension", labelLimit=LABEL)
        bars = bars.encode(y=y, color=colour, tooltip=tooltip)
        explained = table.filter(pl.col("subset") != REST).group_by("subset", maintain_order=True)
        means = explained.agg(pl.col("value").mean())
        most, share = ("attributes", 0.0) if means.is_empty() else means.sort("value", descending=True).row(0)
        most = attribute(most)
        text = f"{most} explains {100 * share:.0f} %" if share >= 0.005 else "attributes explain less than 1 %"
        where = f" where {attribute(str(block))} is varied" if block else ""
        title = f"{text} of the variance on average over the dimensions{where}"
        drawing = alt.layer(bars).properties(height=24 * len(order(rows, "dimension")))
        figure = _figure("variance", title, drawing, "effects", wide=False)
        yield figure._replace(name=f"variance-{block_number}") if block else figure


def _trajectories(part: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling and over age: a panel each and for each model, on one scale; a curve a group."""
    by_unit = dict[str, list[tuple[str, pl.DataFrame]]]()
    for model, results in by_model(part):
        by_unit.setdefault(findings.printed_unit(results), []).append((model, results))
    several = sum(map(len, by_unit.values())) > 1
    for place, (unit, models) in enumerate(by_unit.items(), 1):
        for name in GROUP_LEVELS:
            for figure in _curves(models, name, unit, several=several):
                yield figure if len(by_unit) == 1 else figure._replace(name=f"{figure.name}-{place}")


def _curves(models: list[tuple[str, pl.DataFrame]], over: str, unit: str, *, several: bool) -> Iterator[Figure]:
    points, fitted, crossed = list[Result](), list[Result](), ""
    for model, results in models:
        whose, grouping = f", {model}" if several else "", findings.finest(results)
        if metric_rows(results, "trajectory").filter(GROUP, subset=over)["template"].n_unique() < 3:
            continue
        crossed = CROSSING.join((over, grouping))
        for into, name in ((points, "trajectory"), (fitted, "trajectory_fit")):
            for row in metric_rows(results, name).filter(GROUP, subset=over).to_dicts():
                point = {**_dot(row, group(row["group"], grouping)), "level": float(row["template"])}
                into.append({**point, "panel": dimension(row["concept"]) + whose})
    if not points:
        return
    dimensions = order(points, "dimension")
    points.sort(key=lambda row: dimensions.index(row["dimension"]))
    # A fit of few pictures has bands so wide that every curve would look flat: they are cut at the edge of the panel.
    whole = [*points, *fitted]
    panels = _panels(points, "level", span(row["value"] for row in whole), whole)
    caption = f"Mean Δ at each level, {unit}, on one scale; curves of second degree, 95 % bands, cut at the edges."
    drawing = panelled(panels, fitted, points, "level", "value", titles=(over, unit), tips=CURVE_TIPS)
    title, answers = f"The judgements of each group over {over}", ("stand_out", crossed)
    yield Figure(f"curves-{over}", title, caption, drawing, "curves", wide=True, answers=answers)


def _panels(rows: Rows, x: str, down: Span, whole: Rows | None = None) -> Panels:
    """A panel for every name; x runs alike in all of them where it holds the `whole` rows, else as far as its own."""
    names = order(rows, "panel")
    across = {name: span(row[x] for row in whole or rows if whole or row["panel"] == name) for name in names}
    return Panels(names, across, down)


def _separation(results: pl.DataFrame) -> Iterator[Figure]:
    """Positive against negative valence, a cloud of ages for each group: all scales together, then each apart."""
    clouds, grouping = {"all scales": metric_rows(results, "valence_point")}, findings.finest(results)
    for (scale,), table in metric_rows(results, "scale_point").group_by(["subset"], maintain_order=True):
        clouds[dimension(str(scale))] = table
    points, rings = [], []
    for panel, table in clouds.items():
        scale = factor(table.row(0, named=True)) if table.height else 1.0
        wide = table.pivot("concept", index=["group", "template", "n"], values="value").drop_nulls()
        for (name,), cloud in wide.group_by(["group"], maintain_order=True):
            whose = {"panel": panel, "group": group(str(name), grouping)}
            ends = (scale * cloud.select("positive", "negative").to_numpy()).round(4)
            for (age, n), both in zip(cloud.select("template", "n").iter_rows(), ends.tolist(), strict=True):
                points.append({**whose, "age": float(age), "n": n, "positive": both[0], "negative": both[1]})
            rings += [{**whose, **ring} for ring in _ring(ends)]
    if not points:
        return
    whole, unit = [*points, *rings], findings.printed_unit(results)
    panels = _panels(points, "positive", span(row["negative"] for row in whole), whole)._replace(columns=CLOUDS_ACROSS)
    titles, tips = (f"positive ends, {unit}", f"negative ends, {unit}"), ["age:Q", "positive:Q", "negative:Q", "n:Q"]
    drawing = panelled(panels, rings, points, "positive", "negative", titles=titles, tips=tips)
    yield _figure("separation", "positive against negative ends of the scales, age by age", drawing, "curves")


def _ring(cloud: np.ndarray) -> Iterator[Result]:
    if len(cloud) < 3:
        return
    lengths, axes = np.linalg.eigh(np.cov(cloud.T))
    turn = np.linspace(0, 2 * np.pi, RING)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    ring = cloud.mean(axis=0)[:, None] + axes @ (2 * np.sqrt(np.maximum(lengths, 0))[:, None] * circle)
    for step, (positive, negative) in enumerate(ring.T.round(4).tolist()):
        yield {"step": step, "positive": positive, "negative": negative}


def _confounds(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling, lighting and pose: do the ends of a scale oppose each other?"""
    points, unit = metric_rows(results, "trajectory").filter(group=EVERYONE), findings.printed_unit(results)
    correlations = metric_rows(results, "opposites_r").filter(pl.col("concept") != MEAN)
    rows, counts, values = [], [], []
    for name in CONFOUNDS:
        table = points.filter(subset=name)
        if table["template"].n_unique() < 3:
            continue
        for row in table.to_dicts():
            point = {**_dot(row, dimension(row["concept"])), "level": float(row["template"])}
            rows.append({**point, "panel": f"over {name}"})
        if scales := correlations.filter(subset=name).to_dicts():
            together = sum(row["value"] > 0 for row in scales)
            counts.append(f"{together} of {counted(len(scales), 'scale')} over {name}")
            each = listed([f"{dimension(row['concept'])} {findings.number(row)}" for row in scales])
            values.append(f"over {name} {each}")
    if not rows:
        return
    title, caption = "no scale has two ends", f"Mean Δ of everyone, {unit}, on one scale."
    if counts:
        title = f"the two ends of a scale move together in {listed(counts)}"
        caption += f" r between the ends: {'; '.join(values)}; −1: the ends oppose each other."
    panels, lines = _panels(rows, "level", span(row["value"] for row in rows)), [{**row, "low": None} for row in rows]
    drawing = panelled(panels, lines, rows, "level", "value", titles=("", unit), tips=CURVE_TIPS)
    yield Figure("confounds", title, caption, drawing, "confounds", wide=True)


def _neutral(results: pl.DataFrame) -> Iterator[Figure]:
    """Densities of the neutral prompt's score, of all dimensions before and after Δ, and of the control words."""
    scale, grouping, rows = factor({"unit": findings.score_unit(results)}), findings.finest(results), []
    before, after = metric_rows(results, "density"), metric_rows(results, "delta_density")
    panes = [(panel, before.filter(subset=name)) for name, panel in DENSITIES.items()]
    for word in CONTROLS:
        panes += [(f"“{word}”", before.filter(subset=word)), (f"“{word}” after Δ", after.filter(subset=word))]
    for panel, part in panes:
        table = part.to_dicts()
        highest = max((row["value"] for row in table), default=0.0)  # each panel is as high as its highest line
        for row in table if highest > 0 else ():  # scores nearly alike: spikes between the points of the grid
            place = {"panel": panel, "group": group(row["group"], grouping)}
            numbers = {"score": round(scale * float(row["template"]), 4), "value": round(row["value"] / highest, 4)}
            rows.append({**place, **numbers})
    if not rows:
        return
    title = "scores of each group with the neutral prompt, and before and after subtracting it"
    unit = findings.printed_unit(results)
    strokes = {"symbolType": "stroke", "symbolStrokeWidth": 3}
    panels = _panels(rows, "score", (0, 1))
    drawing = panelled(panels, rows, [], "score", "value", titles=(unit, None), tips=["score:Q"], **strokes)
    yield _figure("densities", title, drawing, "neutral", unit)._replace(answers=("neutral",))


def _neutral_r(results: pl.DataFrame) -> Iterator[Figure]:
    rows = [_dot(row, WHEN[row["subset"]]) for row in metric_rows(results, "neutral_r").to_dicts()]
    if rows:
        ranges = ", ".join(f"{_range(rows, name)} {name}" for name in WHEN.values())
        title = f"correlation with the neutral prompt: {ranges}"
        yield _figure("neutral-r", title, group_dots(rows, "correlation over images"), "neutral")


def _range(rows: Rows, name: str = "") -> str:
    values = [row["value"] for row in rows if name in ("", row["group"])]
    return f"{decimal(min(values))} to {decimal(max(values))}"


def _group_r(results: pl.DataFrame) -> Iterator[Figure]:
    dots, grouping = [], findings.finest(results)
    for row in metric_rows(results, "neutral_group_r").to_dicts():
        first, second = findings.pair(row, grouping)
        dots.append({**_dot(row, f"with {second}"), "dimension": first})
    if dots:
        title = f"correlation of two groups' neutral cosines over seeds: {_range(dots)}"
        yield _figure("neutral-group-r", title, group_dots(dots, "correlation over seeds"), "neutral")


def _seeds(results: pl.DataFrame) -> Iterator[Figure]:
    """The study's Fig. S.14: each seed's neutral cosine in one group against that in another, a panel a pair."""
    scale, grouping = factor({"unit": findings.score_unit(results)}), findings.finest(results)
    table, dots = metric_rows(results, "neutral_seed"), list[Result]()
    for row in metric_rows(results, "neutral_group_r").drop_nulls("value").to_dicts():
        names = findings.pair(row, grouping)
        both = table.filter(group=row["group"]).join(table.filter(group=row["against"]), on="template")
        place = {"panel": f"{names[1]} over {names[0]}\nr = {decimal(row['value'])}", "group": names[0]}
        for seed, x, y in both.select("template", "value", "value_right").iter_rows():
            dots.append({**place, "seed": seed, "at": round(scale * x, 4), "value": round(scale * y, 4)})
    if dots:
        unit, across = findings.printed_unit(results), span(row["at"] for row in dots)
        panes = order(dots, "panel")
        panels = Panels(panes, dict.fromkeys(panes, across), span(row["value"] for row in dots))
        tips = ["seed:N", "at:Q", "value:Q"]
        drawing = panelled(panels, [], dots, "at", "value", titles=(f"first group, {unit}", unit), tips=tips)
        title = f"the same seeds in two groups, with the neutral prompt: {counted(len(panes), 'pair')}"
        yield _figure("neutral-seeds", title, drawing, "neutral", unit)


def _brightness(results: pl.DataFrame) -> Iterator[Figure]:
    """Where the pictures of two groups differ in brightness: a map for each pair, and within each other group."""
    grouping, squares, means = findings.grouping_of(results), list[Result](), dict[str, float]()
    for row in metric_rows(results, "brightness").to_dicts():
        within = row["concept"]
        among = f"among {group(within, grouping.get(within))}" if within else "among all"
        panel = f"{' against '.join(findings.pair(row))}\n{among}"
        if row["template"] is None:
            means[panel] = row["value"]
        else:
            down, across = map(int, row["template"].split(","))
            squares.append({"panel": panel, "down": down, "across": across, "value": round(row["value"], 3)})
    if not squares:
        return
    side, depth = (1 + max(row[name] for row in squares) for name in ("across", "down"))
    names = order(squares, "panel")
    panels = Panels(names, dict.fromkeys(names, (0, side)), (-depth, 0), MAPS_ACROSS, ends=False)
    title = "brightness of pictures that differ in one attribute"
    if means:
        widest = max(means, key=lambda name: abs(means[name]))
        where, mean = widest.replace("\n", ", "), decimal(means[widest], "+.2f")
        title = f"brightness differs most for {where}: mean sign {mean}"
    yield _figure("brightness", title, brightness_maps(squares, panels), "confounds")


FIGURES = (_summary, _effects, _induced, _variance, mirror_figures)
CURVE_FIGURES = (_separation, _confounds, _neutral, _neutral_r, _group_r, _seeds, _brightness)
