"""Perception's figures: what changes the judgements, for whom, and what else may explain them."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np
import polars as pl

from beholder.chapter.chart_style import QUIET, SERIES
from beholder.chapter.charts import Axis, Figure, Rows, chart, each_model, heatmap, order, series
from beholder.chapter.finding import by_model, metric_rows
from beholder.chapter.numbers import Result, listed
from beholder.chapter.numbers import number as counted
from beholder.comparison.groups import CROSSING
from beholder.studies.perception import phrases
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.design import REST
from beholder.studies.perception.neutral import AT_REST
from beholder.studies.perception.panels import (
    Panels,
    Span,
    boxes,
    brightness_maps,
    down,
    group_dots,
    numbers,
    panelled,
    span,
)
from beholder.studies.perception.phrases import attribute, decimal, dimension, factor, group, how_many
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import EVERYONE, MEAN

MOST_MODELS = 2  # figures with a point for every group and level are drawn for at most so many models
MAPS_ACROSS, CLOUDS_ACROSS = 3, 2
RING = 48
CURVE_TIPS = ("level:Q", "value:Q", "low:Q", "high:Q", "n:Q")
PROTECTED = ("race", "skin_tone", "gender", "age")
DENSITIES = {  # the panels of densities: control words are named in quotes
    "neutral": "neutral prompt",
    AT_REST: "neutral prompt, no smile",
    "cosine": "before Δ",
    "delta_cosine": "after Δ",
    **{word: f"“{word}”" for word in CONTROLS},
}


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure: the curves of all models in one, the others model by model."""
    few = part["model"].n_unique() <= MOST_MODELS
    if few:
        yield from _trajectories(part)
    makers = (*FIGURES, *(CURVE_FIGURES if few else ()))
    yield from each_model(part, lambda results: (figure for draw in makers for figure in draw(results)))


def _dot(row: Result, name: str, centre: float = 0.0) -> Result:
    return {"dimension": dimension(row["concept"]), "group": name, "n": row["n"], **phrases.printed(row, centre)}


def _point(row: Result, name: str) -> Result:
    return {**_dot(row, name), "level": float(row["template"])}


def _summary(results: pl.DataFrame) -> Iterator[Figure]:
    subset, unit, table = phrases.finest(results), phrases.printed_unit(results), metric_rows(results, "delta_cosine")
    everyone = dict(table.filter(subset=EVERYONE).select("concept", "value").iter_rows())
    table = table.filter(subset=subset)
    rows = [_dot(row, group(row["group"], subset), everyone[row["concept"]]) for row in table.to_dicts()]
    if subset == EVERYONE or not rows:
        return
    values = {name: [row["value"] for row in rows if row["dimension"] == name] for name in order(rows, "dimension")}
    rows.sort(key=lambda row: min(values[row["dimension"]]) - max(values[row["dimension"]]))
    gaps, clear = phrases.decided(results, "gap", subset=subset)
    title = "no difference between the groups is found"
    if clear:
        first, second = phrases.pair(clear[0])[:: 1 if clear[0]["value"] > 0 else -1]
        widest = f"the widest in {dimension(clear[0]['concept'])}, {first} above {second}"
        title = f"{how_many(len(clear), len(gaps), 'difference', 'between two groups')}, {widest}"
    caption = (
        f"Δ of each group less Δ of everyone, {unit}, with 95 % intervals of the group; where groups are farthest "
        "apart comes first. Line: the same as everyone. Click a group in the legend to highlight it."
    )
    yield Figure("groups", title, caption, group_dots(rows, f"less everyone, {unit}"), "judgements", wide=True)


def _effects(results: pl.DataFrame) -> Iterator[Figure]:
    unit, rows = phrases.printed_unit(results), []
    for row in metric_rows(results, "causal_effect").to_dicts():
        cell = {"contrast": phrases.change(row), "dimension": dimension(row["concept"]), "p_value": row["p_value"]}
        rows.append({**cell, "found": int(phrases.found(row)), **phrases.printed(row)})
    if rows:
        title = f"{sum(row['found'] for row in rows)} of {len(rows)} effects of one attribute alone are found"
        caption = (
            f"Average change of Δ when one attribute is changed and all else stays, {unit}; "
            "intervals hold for all of them at once. Faint: not found."
        )
        tips = [alt.Tooltip("contrast:N"), alt.Tooltip("dimension:N"), *numbers()]
        tips.append(alt.Tooltip("p_value:Q", title="corrected p", format=".2g"))
        drawing = heatmap(rows, across="dimension", down="contrast", unit=unit, text="+.2f", tips=tips)
        yield Figure("effects", title, caption, drawing, "effects", wide=True, answers=("effect",))


def _induced(results: pl.DataFrame) -> Iterator[Figure]:
    """The published measure: boxes of absolute differences, attribute by attribute, the largest median first."""
    unit, rows = phrases.printed_unit(results), []
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
        caption = (
            f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {unit}, all dimensions. Tick: median; box: "
            "middle half; line: 5 to 95 %. Noise alone makes it more than 0: read it with the effects."
        )
        widest, narrowest = (rows[place]["attribute"] for place in (0, -1))
        title = f"the median difference is widest for {widest} and narrowest for {narrowest}"
        yield Figure("induced-variation", title, caption, boxes(rows, f"absolute difference, {unit}"), "effects")


def _variance(results: pl.DataFrame) -> Iterator[Figure]:
    """How much of each dimension's variance each attribute explains, block by block: dimensions down, stacked."""
    caption = (
        "Share of the variance of Δ that each attribute explains, less what chance gives; rest: interactions and "
        "what no attribute explains."
    )
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
        bars = bars.encode(y=down(rows, "dimension"), color=colour, tooltip=tooltip)
        explained = table.filter(pl.col("subset") != REST).group_by("subset", maintain_order=True)
        means = explained.agg(pl.col("value").mean())
        most, share = ("attributes", 0.0) if means.is_empty() else means.sort("value", descending=True).row(0)
        most = attribute(most)
        text = f"{most} explains {100 * share:.0f} %" if share >= 0.005 else "attributes explain less than 1 %"
        where = f" where {attribute(str(block))} is varied" if block else ""
        title = f"{text} of the variance on average over the dimensions{where}"
        drawing = alt.layer(bars).properties(height=24 * len(order(rows, "dimension")))
        yield Figure(f"variance-{block_number}" if block else "variance", title, caption, drawing, "effects")


def _ratings(results: pl.DataFrame) -> Iterator[Figure]:
    rows = metric_rows(results, "rating_r").sort("value", descending=True).to_dicts()
    for kind in order(rows, "subset")[:1]:
        caption = (
            f"Correlation of people's mean ratings with the model's Δ over {kind}s, with intervals for all traits at "
            f"once where {kind}s are independent of each other; 1: the same order, 0: none."
        )
        drawing = group_dots([_dot(row, f"{kind}s") for row in rows], "correlation with people's ratings")
        yield Figure("ratings", "compared with people's ratings", caption, drawing, "ratings", answers=("ratings",))


def _departures(results: pl.DataFrame) -> Iterator[Figure]:
    rows, grouping = metric_rows(results, "rating_departure").to_dicts(), phrases.grouping_of(results)
    if rows:
        title = how_many(sum(map(phrases.found, rows)), len(rows), "departure", "from people's ratings")
        caption = (
            "Model less people's ratings, each in standard deviations of the trait; bars, where images were rated: "
            "intervals that hold for all groups and traits. Line: as people rate. Groups of fewer than five images are "
            "left out."
        )
        dots = [_dot(row, group(row["group"], grouping.get(row["group"]))) for row in rows]
        drawing = group_dots(dots, "standard deviations above people's ratings")
        yield Figure("rating-departures", title, caption, drawing, "ratings", wide=True)


def _trajectories(part: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling and over age: a panel each and for each model, on one scale; a curve a group."""
    by_unit = dict[str, list[tuple[str, pl.DataFrame]]]()
    for model, results in by_model(part):
        by_unit.setdefault(phrases.printed_unit(results), []).append((model, results))
    several = sum(map(len, by_unit.values())) > 1
    for place, (unit, models) in enumerate(by_unit.items(), 1):
        for name in GROUP_LEVELS:
            for figure in _curves(models, name, unit, several=several):
                yield figure if len(by_unit) == 1 else figure._replace(name=f"{figure.name}-{place}")


def _curves(models: list[tuple[str, pl.DataFrame]], over: str, unit: str, *, several: bool) -> Iterator[Figure]:
    points, fitted, crossed = list[Result](), list[Result](), ""
    for model, results in models:
        whose, grouping = f", {model}" if several else "", phrases.finest(results)
        own, fits = (
            [
                {**_point(row, group(row["group"], grouping)), "panel": dimension(row["concept"]) + whose}
                for row in metric_rows(results, name).filter(pl.col("group") != EVERYONE, subset=over).to_dicts()
            ]
            for name in ("trajectory", "trajectory_fit")
        )
        if len({row["level"] for row in own}) < 3:
            continue
        points, fitted = [*points, *own], [*fitted, *fits]
        crossed = CROSSING.join((over, grouping))
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
    clouds, grouping = {"all scales": metric_rows(results, "valence_point")}, phrases.finest(results)
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
    caption = (
        "A point for each age and group: mean Δ of the negative ends of the scales against that of the positive ends. "
        "A scale has the name of its positive end. Ellipses: 2 standard deviations over the ages. No test: a few ages "
        "do not tell how far ages spread."
    )
    whole, unit = [*points, *rings], phrases.printed_unit(results)
    panels = _panels(points, "positive", span(row["negative"] for row in whole), whole)._replace(columns=CLOUDS_ACROSS)
    titles, tips = (f"positive ends, {unit}", f"negative ends, {unit}"), ["age:Q", "positive:Q", "negative:Q", "n:Q"]
    drawing = panelled(panels, rings, points, "positive", "negative", titles=titles, tips=tips)
    title = "positive against negative ends of the scales, age by age"
    yield Figure("separation", title, caption, drawing, "curves", wide=True)


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
    points, unit = metric_rows(results, "trajectory").filter(group=EVERYONE), phrases.printed_unit(results)
    correlations = metric_rows(results, "opposites_r").filter(pl.col("concept") != MEAN)
    rows, counts, values = [], [], []
    for name in CONFOUNDS:
        table = points.filter(subset=name)
        if table["template"].n_unique() < 3:
            continue
        rows += [{**_point(row, dimension(row["concept"])), "panel": f"over {name}"} for row in table.to_dicts()]
        if scales := correlations.filter(subset=name).to_dicts():
            together = sum(row["value"] > 0 for row in scales)
            counts.append(f"{together} of {counted(len(scales), 'scale')} over {name}")
            each = listed([f"{dimension(row['concept'])} {phrases.number(row)}" for row in scales])
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
    scale, grouping, rows = factor({"unit": phrases.score_unit(results)}), phrases.finest(results), []
    for name, panel in DENSITIES.items():
        table = metric_rows(results, "density").filter(subset=name).to_dicts()
        highest = max((row["value"] for row in table), default=0.0)  # each panel is as high as its highest line
        for row in table if highest > 0 else ():  # scores nearly alike: spikes between the points of the grid
            place = {"panel": panel, "group": group(row["group"], grouping)}
            numbers = {"score": round(scale * float(row["template"]), 4), "value": round(row["value"] / highest, 4)}
            rows.append({**place, **numbers})
    if not rows:
        return
    title = "scores of each group with the neutral prompt, and before and after subtracting it"
    unit = phrases.printed_unit(results)
    caption = (
        f"Smoothed density over the images of each group, {unit}; each panel has scales of its own. Before Δ: mean of "
        "all dimensions; after Δ: the same less the neutral prompt. In quotes: control words."
    )
    strokes = {"symbolType": "stroke", "symbolStrokeWidth": 3}
    panels = _panels(rows, "score", (0, 1))
    drawing = panelled(panels, rows, [], "score", "value", titles=(unit, None), tips=["score:Q"], **strokes)
    yield Figure("densities", title, caption, drawing, "neutral", wide=True, answers=("neutral",))


def _neutral_r(results: pl.DataFrame) -> Iterator[Figure]:
    when = {"cosine": "before Δ", "delta_cosine": "after Δ"}
    rows = [_dot(row, when[row["subset"]]) for row in metric_rows(results, "neutral_r").to_dicts()]
    if rows:
        ranges = ", ".join(f"{_range(rows, name)} {name}" for name in when.values())
        title = f"correlation with the neutral prompt: {ranges}"
        caption = (
            "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % "
            "intervals: 1: an image that fits “person” fits any adjective; 0: the dimension does not depend on that."
        )
        yield Figure("neutral-r", title, caption, group_dots(rows, "correlation over images"), "neutral", wide=True)


def _range(rows: Rows, name: str = "") -> str:
    values = [row["value"] for row in rows if name in ("", row["group"])]
    return f"{decimal(min(values))} to {decimal(max(values))}"


def _group_r(results: pl.DataFrame) -> Iterator[Figure]:
    dots, grouping = [], phrases.finest(results)
    for row in metric_rows(results, "neutral_group_r").to_dicts():
        first, second = phrases.pair(row, grouping)
        dots.append({**_dot(row, f"with {second}"), "dimension": first})
    if dots:
        title = f"correlation of two groups' neutral cosines over seeds: {_range(dots)}"
        caption = (
            "Each group against the others: correlation of the neutral prompt's cosine over the seeds that both have, "
            "with 95 % intervals; 1: the same faces fit “person” in both groups."
        )
        drawing = group_dots(dots, "correlation over seeds")
        yield Figure("neutral-group-r", title, caption, drawing, "neutral", wide=True)


def _brightness(results: pl.DataFrame) -> Iterator[Figure]:
    """Where the pictures of two groups differ in brightness: a map for each pair, and within each other group."""
    grouping, squares, means = phrases.grouping_of(results), list[Result](), dict[str, float]()
    for row in metric_rows(results, "brightness").to_dicts():
        within = row["concept"]
        among = f"among {group(within, grouping.get(within))}" if within else "among all"
        panel = f"{' against '.join(phrases.pair(row))}\n{among}"
        if row["template"] is None:
            means[panel] = row["value"]
        else:
            down, across = map(int, row["template"].split(","))
            squares.append({"panel": panel, "down": down, "across": across, "value": round(row["value"], 3)})
    if not squares:
        return
    caption = (
        "Where the grey values of pairs differ that differ in this alone. Signs are taken pixel by pixel; squares are "
        "their means. +1: the first is always brighter, −1: the second. About the pictures, not about the model."
    )
    side, depth = (1 + max(row[name] for row in squares) for name in ("across", "down"))
    names = order(squares, "panel")
    panels = Panels(names, dict.fromkeys(names, (0, side)), (-depth, 0), MAPS_ACROSS, ends=False)
    title = "brightness of pictures that differ in one attribute"
    if means:
        widest = max(means, key=lambda name: abs(means[name]))
        where, mean = widest.replace("\n", ", "), decimal(means[widest], "+.2f")
        title = f"brightness differs most for {where}: mean sign {mean}"
    yield Figure("brightness", title, caption, brightness_maps(squares, panels), "confounds", wide=True)


FIGURES = (_summary, _effects, _induced, _variance, _ratings, _departures)
CURVE_FIGURES = (_separation, _confounds, _neutral, _neutral_r, _group_r, _brightness)
