"""Perception's figures: what changes the judgements, for whom, and what else may explain them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.chapter.charts import Figure, Rows, each_model, order, sentence
from beholder.chapter.finding import by_model, metric_rows
from beholder.chapter.numbers import Result, listed
from beholder.chapter.numbers import number as counted
from beholder.comparison.groups import CROSSING
from beholder.studies.perception import chart_parts, phrases
from beholder.studies.perception.chart_parts import Panels, span
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.design import REST
from beholder.studies.perception.neutral import AT_REST
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import EVERYONE, MEAN

MOST_MODELS = 2
"""Figures with a point for every group and level are drawn for at most so many models."""
MAPS_ACROSS, CLOUDS_ACROSS = 3, 2
RING = 48
DENSITIES = {
    "neutral": "neutral prompt",
    AT_REST: "neutral prompt, no smile",
    "cosine": "before Δ",
    "delta_cosine": "after Δ",
    **{word: f"“{word}”" for word in CONTROLS},
}
"""The panels of densities: control words are named in quotes."""


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure: the curves of all models in one, the others model by model."""
    few = part["model"].n_unique() <= MOST_MODELS
    if few:
        yield from _trajectories(part)
    makers = (*FIGURES, *(CURVE_FIGURES if few else ()))
    yield from each_model(part, lambda results: (figure for draw in makers for figure in draw(results)))


PROTECTED = ("race", "skin_tone", "gender", "age")


def _dot(row: Result, group: str, centre: float = 0.0) -> Result:
    """A row as a chart of dimensions and groups draws it."""
    return {
        "dimension": phrases.dimension(row["concept"]),
        "group": group,
        "n": row["n"],
        **phrases.printed(row, centre),
    }


def _boxes_of(part: pl.DataFrame) -> list[Result]:
    """Attributes by the median difference they make, the largest first, each with its `box` of quantiles."""
    medians = metric_rows(part, "induced_variation").filter(concept=MEAN).sort("value", descending=True)
    table = metric_rows(part, "induced_variation_quantile").filter(concept=MEAN)
    quantiles = {(row["subset"], row["template"]): row["value"] for row in table.to_dicts()}
    ends = ("0.05", "0.25", "0.75", "0.95")
    return [{**row, "box": [quantiles.get((row["subset"], end)) for end in ends]} for row in medians.to_dicts()]


# Summary


def _summary(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension and group, each group less everyone."""
    subset, unit, table = phrases.finest(results), phrases.printed_unit(results), metric_rows(results, "delta_cosine")
    everyone = {row["concept"]: row["value"] for row in table.filter(subset=EVERYONE).to_dicts()}
    rows = [
        _dot(row, phrases.group(row["group"], subset), everyone[row["concept"]])
        for row in table.filter(subset=subset).to_dicts()
    ]
    if subset == EVERYONE or not rows:
        return
    values = {name: [row["value"] for row in rows if row["dimension"] == name] for name in order(rows, "dimension")}
    rows.sort(key=lambda row: min(values[row["dimension"]]) - max(values[row["dimension"]]))
    caption = (
        f"Δ of each group less Δ of everyone, {unit}, with 95 % intervals of the group; where groups are farthest "
        "apart comes first. Line: the same as everyone. Click a group in the legend to highlight it."
    )
    chart = chart_parts.group_dots(rows, f"less everyone, {unit}")
    yield Figure("groups", _differences(results, subset), caption, chart, "judgements", wide=True)


def _differences(results: pl.DataFrame, subset: str) -> str:
    """How many differences between these groups are found, and the widest of them."""
    gaps, clear = phrases.decided(results, "gap", subset=subset)
    if not clear:
        return "no difference between the groups is found"
    first, second = phrases.pair(clear[0])[:: 1 if clear[0]["value"] > 0 else -1]
    widest = f"the widest in {phrases.dimension(clear[0]['concept'])}, {first} above {second}"
    return f"{phrases.how_many(len(clear), len(gaps), 'difference', 'between two groups')}, {widest}"


# Effects


def _effects(results: pl.DataFrame) -> Iterator[Figure]:
    """Every contrast and dimension, coloured by the effect."""
    unit, rows = phrases.printed_unit(results), []
    for row in metric_rows(results, "causal_effect").to_dicts():
        cell = {"contrast": phrases.change(row), "dimension": phrases.dimension(row["concept"])}
        rows.append({**cell, "found": int(phrases.found(row)), "p_value": row["p_value"], **phrases.printed(row)})
    if rows:
        title = f"{sum(row['found'] for row in rows)} of {len(rows)} effects of one attribute alone are found"
        caption = (
            f"Average change of Δ when one attribute is changed and all else stays, {unit}; "
            "intervals hold for all of them at once. Faint: not found."
        )
        yield Figure("effects", title, caption, chart_parts.effect_map(rows, unit), "effects", wide=True)


def _induced(results: pl.DataFrame) -> Iterator[Figure]:
    """The published measure: boxes of absolute differences, attribute by attribute."""
    boxes, unit, rows = _boxes_of(results), phrases.printed_unit(results), []
    for row in boxes:
        low, lower, upper, high = (None if q is None else round(phrases.factor(row) * q, 4) for q in row["box"])
        kind = "protected" if row["subset"] in PROTECTED else "not protected"
        value = round(phrases.factor(row) * row["value"], 4)
        box = {"low": low, "lower": lower, "value": value, "upper": upper, "high": high, "n": row["n"]}
        rows.append({"attribute": phrases.attribute(row["subset"]), "kind": kind, **box})
    if rows:
        caption = (
            f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {unit}, all dimensions. Tick: median; box: "
            "middle half; line: 5 to 95 %. Noise alone makes it more than 0: read it with the effects."
        )
        chart = chart_parts.boxes(rows, f"absolute difference, {unit}")
        widest, narrowest = (phrases.attribute(boxes[place]["subset"]) for place in (0, -1))
        title = f"the median difference is widest for {widest} and narrowest for {narrowest}"
        yield Figure("induced-variation", title, caption, chart, "effects")


def _variance(results: pl.DataFrame) -> Iterator[Figure]:
    """How much of each dimension's variance each attribute explains, block by block."""
    caption = (
        "Share of the variance of Δ that each attribute explains, less what chance gives; rest: interactions and "
        "what no attribute explains."
    )
    blocks = metric_rows(results, "variance_share").group_by(["template"], maintain_order=True)
    for number, ((block,), table) in enumerate(blocks, 1):
        names, rows = list(dict.fromkeys(table["subset"])), []
        for row in table.to_dicts():
            cell = {"dimension": phrases.dimension(row["concept"]), "attribute": phrases.attribute(row["subset"])}
            share = round(100 * max(row["value"], 0.0), 2)
            rows.append({**cell, "order": names.index(row["subset"]), "value": share})
        where = f" where {phrases.attribute(str(block))} is varied" if block else ""
        title = f"{_explained(table)}{where}"
        name = f"variance-{number}" if block else "variance"
        yield Figure(name, title, caption, chart_parts.stacked(rows), "effects")


def _explained(table: pl.DataFrame) -> str:
    """The attribute with the largest mean share, as far as it is more than chance gives."""
    known = table.filter(pl.col("subset") != REST).group_by("subset", maintain_order=True)
    means = known.agg(pl.col("value").mean()).sort("value", descending=True)
    if not means.height or means["value"][0] < 0.005:
        return "attributes explain less than 1 % of the variance on average over the dimensions"
    top, share = means.row(0)
    return f"{phrases.attribute(top)} explains {100 * share:.0f} % of the variance on average over the dimensions"


# Ratings


def _ratings(results: pl.DataFrame) -> Iterator[Figure]:
    """How far the model agrees with people on each trait."""
    rows = metric_rows(results, "rating_r").sort("value", descending=True).to_dicts()
    if not rows:
        return
    kind = rows[0]["subset"]
    agree = sum(phrases.found(row) and row["value"] > 0 for row in rows)
    title = f"on {agree} of {len(rows)} traits the model is found to order {kind}s as people do"
    caption = (
        f"Correlation of people's mean ratings with the model's Δ over {kind}s, with intervals for all traits at "
        f"once where {kind}s are independent of each other; 1: the same order, 0: none."
    )
    dots = [_dot(row, f"{kind}s") for row in rows]
    chart = chart_parts.group_dots(dots, "correlation with people's ratings")
    yield Figure("ratings", title, caption, chart, "ratings")


def _departures(results: pl.DataFrame) -> Iterator[Figure]:
    """For which groups the model departs from people's ratings."""
    rows, grouping = metric_rows(results, "rating_departure").to_dicts(), phrases.grouping_of(results)
    dots = [_dot(row, phrases.group(row["group"], grouping.get(row["group"]))) for row in rows]
    if rows:
        clear = sum(map(phrases.found, rows))
        title = phrases.how_many(clear, len(rows), "departure", "from people's ratings")
        caption = (
            "Model less people's ratings, each in standard deviations of the trait; bars, where images were rated: "
            "intervals that hold for all groups and traits. Line: as people rate. Groups of fewer than five images are "
            "left out."
        )
        chart = chart_parts.group_dots(dots, "standard deviations above people's ratings")
        yield Figure("rating-departures", title, caption, chart, "ratings", wide=True)


# Curves


def _trajectories(part: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling and over age: a panel each and for each model, on one scale; a curve a group."""
    by_unit = dict[str, list[tuple[str, pl.DataFrame]]]()
    for model, results in by_model(part):
        by_unit.setdefault(phrases.printed_unit(results), []).append((model, results))
    several = sum(map(len, by_unit.values())) > 1
    for number, (unit, models) in enumerate(by_unit.items(), 1):
        for attribute in GROUP_LEVELS:
            figure = _curves(models, attribute, unit, several=several)
            if figure is not None:
                yield figure._replace(name=figure.name if len(by_unit) == 1 else f"{figure.name}-{number}")


def _curves(models: list[tuple[str, pl.DataFrame]], attribute: str, unit: str, *, several: bool) -> Figure | None:
    """The curves of models whose scores have one unit."""
    points, fitted, titles = list[Result](), list[Result](), list[str]()
    for model, results in models:
        own, fits = (
            _levels(metric_rows(results, name).filter(pl.col("group") != EVERYONE, subset=attribute), results)
            for name in ("trajectory", "trajectory_fit")
        )
        if len({row["level"] for row in own}) > 2:
            whose = f", {model}" if several else ""
            points += [{**row, "panel": row["dimension"] + whose} for row in own]
            fitted += [{**row, "panel": row["dimension"] + whose} for row in fits]
            titles.append(f"{model}: {_slopes(results, attribute)}" if several else _slopes(results, attribute))
    if not points:
        return None
    dimensions = order(points, "dimension")
    points.sort(key=lambda row: dimensions.index(row["dimension"]))
    # A fit of few pictures has bands so wide that every curve would look flat: they are cut at the edge of the panel.
    panels = _panels(points, "level", [*points, *fitted], y=("value",))
    caption = f"Mean Δ at each level, {unit}, on one scale; curves of second degree, 95 % bands, cut at the edges."
    chart = chart_parts.curves(points, fitted, panels, attribute, unit)
    title = sentence("", f"over {attribute}, {'; '.join(titles)}")
    return Figure(f"curves-{attribute}", title, caption, chart, "curves", wide=True)


def _slopes(results: pl.DataFrame, attribute: str) -> str:
    """How many curves are found to depart from those of the other groups."""
    crossing = CROSSING.join((attribute, phrases.finest(results)))
    departures = [phrases.decided(results, f"{name}_departure", subset=crossing)[0] for name in ("slope", "curvature")]
    apart = [row for rows in departures for row in rows]
    if not apart:
        return "the judgements of each group"
    return phrases.how_many(sum(map(phrases.found, apart)), len(apart), "departure", "from the other groups")


def _panels(rows: Rows, x: str, bounded: Rows, *, y: tuple[str, ...] = ("value", "low", "high")) -> Panels:
    """A panel for every dimension, all on the same scales, which hold the `bounded` rows too."""
    names = order(rows, "panel")
    across, down = span(row[x] for row in bounded), span(row.get(name) for row in bounded for name in y)
    return Panels(names, dict.fromkeys(names, across), down)


def _levels(table: pl.DataFrame, results: pl.DataFrame) -> Rows:
    grouping = phrases.finest(results)
    return [
        {**_point(row), "group": phrases.group(row["group"], grouping), "dimension": phrases.dimension(row["concept"])}
        for row in table.to_dicts()
    ]


def _point(row: Result) -> Result:
    return {"level": float(row["template"]), "n": row["n"], **phrases.printed(row)}


def _separation(results: pl.DataFrame) -> Iterator[Figure]:
    """Positive against negative valence, a cloud of ages for each group: all scales together, then each apart."""
    clouds = {"all scales": metric_rows(results, "valence_point")}
    for (scale,), table in metric_rows(results, "scale_point").group_by(["subset"], maintain_order=True):
        clouds[phrases.dimension(str(scale))] = table
    points = [point for name, table in clouds.items() if table.height for point in _cloud(results, table, name)]
    if not points:
        return
    groups = order(points, "group")
    rings = [ring for panel in order(points, "panel") for group in groups for ring in _ring(points, group, panel)]
    caption = (
        "A point for each age and group: mean Δ of the negative ends of the scales against that of the positive ends. "
        "A scale has the name of its positive end. Ellipses: 2 standard deviations over the ages. No test: a few ages "
        "do not tell how far ages spread."
    )
    panels = _panels(points, "positive", [*points, *rings], y=("negative",))._replace(columns=CLOUDS_ACROSS)
    chart = chart_parts.ellipses(points, rings, panels, phrases.printed_unit(results))
    title = "positive against negative ends of the scales, age by age"
    yield Figure("separation", title, caption, chart, "curves", wide=True)


def _cloud(results: pl.DataFrame, table: pl.DataFrame, name: str) -> Iterator[Result]:
    scale, grouping = phrases.factor(table.row(0, named=True)), phrases.finest(results)
    wide = table.pivot("concept", index=["group", "template", "n"], values="value")
    for row in wide.drop_nulls().to_dicts():
        both = {end: round(scale * row[end], 4) for end in ("positive", "negative")}
        group = phrases.group(row["group"], grouping)
        yield {"panel": name, "group": group, "age": float(row["template"]), "n": row["n"], **both}


def _ring(points: Rows, group: str, panel: str) -> Iterator[Result]:
    """The 2 σ ellipse of a group's points."""
    inside = [row for row in points if (row["group"], row["panel"]) == (group, panel)]
    cloud = np.array([[row["positive"], row["negative"]] for row in inside])
    if len(cloud) < 3:
        return
    lengths, axes = np.linalg.eigh(np.cov(cloud.T))
    turn = np.linspace(0, 2 * np.pi, RING)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    ring = cloud.mean(axis=0)[:, None] + axes @ (2 * np.sqrt(np.maximum(lengths, 0))[:, None] * circle)
    for step, (positive, negative) in enumerate(ring.T.tolist()):
        both = {"positive": round(positive, 4), "negative": round(negative, 4)}
        yield {"panel": panel, "group": group, "step": step, **both}


def _confounds(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling, lighting and pose: do the ends of a scale oppose each other?"""
    points, unit = metric_rows(results, "trajectory").filter(group=EVERYONE), phrases.printed_unit(results)
    correlations = metric_rows(results, "opposites_r").filter(pl.col("concept") != MEAN)
    rows, counts, values = [], [], []
    for attribute in CONFOUNDS:
        table = points.filter(subset=attribute)
        if table["template"].n_unique() < 3:
            continue
        rows += [
            {**_point(row), "group": phrases.dimension(row["concept"]), "panel": f"over {attribute}"}
            for row in table.to_dicts()
        ]
        if scales := correlations.filter(subset=attribute).to_dicts():
            together = sum(row["value"] > 0 for row in scales)
            counts.append(f"{together} of {counted(len(scales), 'scale')} over {attribute}")
            each = listed([f"{phrases.dimension(row['concept'])} {phrases.number(row)}" for row in scales])
            values.append(f"over {attribute} {each}")
    if not rows:
        return
    title, caption = "no scale has two ends", f"Mean Δ of everyone, {unit}, on one scale."
    if counts:
        title = f"the two ends of a scale move together in {listed(counts)}"
        caption += f" r between the ends: {'; '.join(values)}; −1: the ends oppose each other."
    names = order(rows, "panel")
    across = {name: span(row["level"] for row in rows if row["panel"] == name) for name in names}
    panels = Panels(names, across, span(row["value"] for row in rows))
    lines = [{**row, "low": None, "high": None} for row in rows]
    yield Figure("confounds", title, caption, chart_parts.curves(rows, lines, panels, "", unit), "confounds", wide=True)


# Neutral prompt, brightness


def _neutral(results: pl.DataFrame) -> Iterator[Figure]:
    """Densities of the neutral prompt's score, of all dimensions before and after Δ, and of the control words."""
    scale, grouping, rows = phrases.factor({"unit": phrases.score_unit(results)}), phrases.finest(results), []
    for name, panel in DENSITIES.items():
        table = metric_rows(results, "density").filter(subset=name).to_dicts()
        highest = max((row["value"] for row in table), default=0.0)
        for row in table if highest > 0 else ():  # scores nearly alike: spikes between the points of the grid
            score, group = round(scale * float(row["template"]), 4), phrases.group(row["group"], grouping)
            rows.append({"panel": panel, "group": group, "score": score, "value": round(row["value"] / highest, 4)})
    if not rows:
        return
    names = order(rows, "panel")
    panels = Panels(names, {name: span(row["score"] for row in rows if row["panel"] == name) for name in names}, (0, 1))
    unit = phrases.printed_unit(results)
    caption = (
        f"Smoothed density over the images of each group, {unit}; each panel has scales of its own. Before Δ: mean of "
        "all dimensions; after Δ: the same less the neutral prompt. In quotes: control words."
    )
    yield Figure("densities", _moved(results), caption, chart_parts.densities(rows, panels, unit), "neutral", wide=True)


def _moved(results: pl.DataFrame) -> str:
    """How much farther apart Δ sets the groups, with what it does to shuffled groups."""
    title = "scores of each group with the neutral prompt, and before and after subtracting it"
    for row in metric_rows(results, "narrowing").filter(pl.col("landmark").is_not_null(), concept="groups").to_dicts():
        title = (
            f"after Δ the groups' means are {phrases.number(row)} times as far apart, those of shuffled groups "
            f"{phrases.decimal(row['landmark'])} times"
        )
    return title


def _group_r(results: pl.DataFrame) -> Iterator[Figure]:
    """How far two groups' neutral cosines go together over seeds."""
    rows, grouping = metric_rows(results, "neutral_group_r").to_dicts(), phrases.finest(results)
    if rows:
        spans = [phrases.decimal(each(row["value"] for row in rows)) for each in (min, max)]
        title = f"correlation of two groups' neutral cosines over seeds: {spans[0]} to {spans[1]}"
        caption = (
            "Each group against the others: correlation of the neutral prompt's cosine over the seeds that both have, "
            "with 95 % intervals; 1: the same faces fit “person” in both groups."
        )
        dots = []
        for row in rows:
            first, second = phrases.pair(row, grouping)
            numbers = {"group": f"with {second}", "n": row["n"], **phrases.printed(row)}
            dots.append({"dimension": first, **numbers})
        chart = chart_parts.group_dots(dots, "correlation over seeds")
        yield Figure("neutral-group-r", title, caption, chart, "neutral", wide=True)


def _neutral_r(results: pl.DataFrame) -> Iterator[Figure]:
    """How far each dimension correlates with the neutral prompt over the images, before and after Δ."""
    when = {"cosine": "before Δ", "delta_cosine": "after Δ"}
    rows = [_dot(row, when[row["subset"]]) for row in metric_rows(results, "neutral_r").to_dicts()]
    if not rows:
        return
    spans = []
    for name in when.values():
        values = [row["value"] for row in rows if row["group"] == name]
        spans.append(f"{phrases.decimal(min(values))} to {phrases.decimal(max(values))} {name}")
    title = f"correlation with the neutral prompt: {', '.join(spans)}"
    caption = (
        "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % intervals: "
        "1: an image that fits “person” fits any adjective; 0: the dimension does not depend on that."
    )
    chart = chart_parts.group_dots(rows, "correlation over images")
    yield Figure("neutral-r", title, caption, chart, "neutral", wide=True)


def _brightness(results: pl.DataFrame) -> Iterator[Figure]:
    """Where the pictures of two groups differ in brightness: a map for each pair, and within each other group."""
    grouping = phrases.grouping_of(results)
    keys, squares, means = ["subset", "group", "against", "concept"], list[Result](), dict[str, float]()
    for _, part in metric_rows(results, "brightness").group_by(keys, maintain_order=True):
        row = part.row(0, named=True)
        within = row["concept"]
        among = f"among {phrases.group(within, grouping.get(within))}" if within else "among all"
        panel = f"{' against '.join(phrases.pair(row))}\n{among}"
        for whole in part.filter(pl.col("template").is_null())["value"]:
            means[panel] = whole
        for square in part.drop_nulls("template").to_dicts():
            down, across = map(int, square["template"].split(","))
            place = {"down": down, "across": across, "value": round(square["value"], 3)}
            squares.append({"panel": panel, **place})
    if not squares:
        return
    caption = (
        "Where the grey values of pairs differ that differ in this alone. Signs are taken pixel by pixel; squares are "
        "their means. +1: the first is always brighter, −1: the second. About the pictures, not about the model."
    )
    side = 1 + max(row["across"] for row in squares)
    depth = 1 + max(row["down"] for row in squares)
    names = order(squares, "panel")
    panels = Panels(names, dict.fromkeys(names, (0, side)), (-depth, 0), MAPS_ACROSS, ends=False)
    widest = max(means, key=lambda name: abs(means[name]), default="")
    title = "brightness of pictures that differ in one attribute"
    if widest:
        mean = phrases.decimal(means[widest], "+.2f")
        title = f"brightness differs most for {widest.replace(chr(10), ', ')}: mean sign {mean}"
    yield Figure("brightness", title, caption, chart_parts.brightness_maps(squares, panels), "confounds", wide=True)


FIGURES = (_summary, _effects, _induced, _variance, _ratings, _departures)
CURVE_FIGURES = (_separation, _confounds, _neutral, _neutral_r, _group_r, _brightness)
"""Figures with a point for every group and level."""
