"""Perception's figures: what changes the judgements, for whom, and what else may explain them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.chapter.chart_parts import Rows, order
from beholder.chapter.figure import Figure, each_model
from beholder.chapter.numbers import Result
from beholder.chapter.phrases import listed
from beholder.chapter.queries import metric_rows
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.perception import chart_parts, phrases, queries
from beholder.studies.perception.brightness import square_place
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.design import REST
from beholder.studies.perception.neutral import AT_REST
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import EVERYONE, INTERACTIONS, MEAN

MOST_MODELS = 2
"""Figures with a point for every group and level are drawn for at most so many models."""
RING = 48
DENSITIES = {
    "neutral": ("the neutral prompt by itself", "cosine of “a photo of a person”"),
    AT_REST: ("the neutral prompt, pictures without a smile", "cosine of “a photo of a person”"),
    "cosine": ("all dimensions before Δ", "mean of all dimensions"),
    "delta_cosine": ("all dimensions after Δ", "mean of all dimensions less the neutral prompt"),
    **{word: (f"the control word “{word}”", f"cosine of “a {word} person”") for word in CONTROLS},
}


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure of every model."""
    makers = (*FIGURES, *(CURVE_FIGURES if part["model"].n_unique() <= MOST_MODELS else ()))
    return each_model(part, lambda results: (figure for draw in makers for figure in draw(results)))


# Summary


def _summary(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension and group, each group less everyone."""
    subset, unit, table = queries.finest(results), queries.printed_unit(results), metric_rows(results, "delta_cosine")
    everyone = {row["concept"]: row["value"] for row in table.filter(subset=EVERYONE).to_dicts()}
    rows = [
        phrases.dot(row, phrases.group(row["group"], subset), everyone[row["concept"]])
        for row in table.filter(subset=subset).to_dicts()
    ]
    if subset == EVERYONE or not rows:
        return
    caption = (
        f"Δ of each group less Δ of everyone, {unit}, with 95 % intervals of the group. "
        "Line: the same as everyone. Click a group in the legend to highlight it."
    )
    chart = chart_parts.group_dots(rows, f"difference from everyone, {unit}")
    yield Figure("groups", _differences(results, subset), caption, chart, "judgements", wide=True)


def _differences(results: pl.DataFrame, subset: str) -> str:
    """How many differences between these groups are shown."""
    gaps = metric_rows(results, "gap").filter(subset=subset).to_dicts()
    clear = sum(map(queries.shown, gaps))
    if not clear:
        return "no difference between the groups is shown"
    return phrases.how_many(clear, len(gaps), "difference", "between two groups")


# Effects


def _effects(results: pl.DataFrame) -> Iterator[Figure]:
    """Every contrast and dimension, coloured by the effect."""
    unit, rows = queries.printed_unit(results), []
    for row in metric_rows(results, "causal_effect").to_dicts():
        cell = {"contrast": phrases.change(row), "dimension": phrases.dimension(row["concept"])}
        rows.append({**cell, "shown": int(queries.shown(row)), "p_value": row["p_value"], **phrases.printed(row)})
    if rows:
        title = f"{sum(row['shown'] for row in rows)} of {len(rows)} effects of one attribute alone are shown"
        caption = (
            f"Average change of Δ when one attribute is changed and all else stays, {unit}; "
            "intervals hold for all of them at once. Faint: not shown."
        )
        yield Figure("effects", title, caption, chart_parts.effect_map(rows, unit), "effects", wide=True)


def _induced(results: pl.DataFrame) -> Iterator[Figure]:
    """The published measure: boxes of absolute differences, attribute by attribute."""
    boxes, unit, rows = queries.induced(results), queries.printed_unit(results), []
    for row in boxes:
        low, lower, upper, high = (None if q is None else round(phrases.factor(row) * q, 4) for q in row["box"])
        kind = "protected" if row["subset"] in queries.PROTECTED else "not protected"
        value = round(phrases.factor(row) * row["value"], 4)
        box = {"low": low, "lower": lower, "value": value, "upper": upper, "high": high, "n": row["n"]}
        rows.append({"attribute": phrases.attribute(row["subset"]), "kind": kind, **box})
    if rows:
        caption = (
            f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {unit}, all dimensions. Tick: median; box: "
            "middle half; line: 5 to 95 %. Noise alone makes it more than 0: read it with the effects."
        )
        chart = chart_parts.boxes(rows, f"absolute difference, {unit}")
        yield Figure("induced-variation", _widest(results, boxes), caption, chart, "effects")


def _widest(results: pl.DataFrame, boxes: Rows) -> str:
    """Which attribute makes the widest differences, where it is shown to make wider ones than the narrowest."""
    first, last = boxes[0]["subset"], boxes[-1]["subset"]
    tests = metric_rows(results, "induced_variation_test").filter(pl.col("variant").is_null()).to_dicts()
    if not any(queries.shown(row) for row in tests if {row["group"], row["against"]} == {first, last}):
        return "no attribute is shown to make wider differences than another"
    return f"{phrases.attribute(first)} is shown to make wider differences than {phrases.attribute(last)}"


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
    """The attribute with the largest mean share, of those that are shown to have one in some dimension."""
    known = table.filter(pl.col("subset") != REST).group_by("subset", maintain_order=True)
    means = known.agg(pl.col("value").mean(), pl.col("p_value").min()).filter(pl.col("p_value") <= ALPHA)
    if not means.height:
        return "no attribute is shown to explain any of the variance"
    top, share, _ = means.sort("value", descending=True).row(0)
    return f"{phrases.attribute(top)} explains {100 * share:.0f} % of the variance on average over the dimensions"


# Ratings


def _ratings(results: pl.DataFrame) -> Iterator[Figure]:
    """How far the model agrees with people on each trait."""
    rows = metric_rows(results, "rating_r").sort("value", descending=True).to_dicts()
    if not rows:
        return
    kind = rows[0]["subset"]
    shown = sum(queries.shown(row) and row["value"] > 0 for row in rows)
    title = f"on {shown} of {len(rows)} traits the model orders {kind}s as people do"
    caption = (
        f"Correlation of people's mean ratings with the model's Δ over {kind}s, with 95 % intervals where {kind}s are "
        "independent of each other; 1: the same order, 0: none. Counted: above 0 after correction over traits."
    )
    dots = [phrases.dot(row, f"{kind}s") for row in rows]
    chart = chart_parts.group_dots(dots, "correlation with people's ratings")
    yield Figure("ratings", title, caption, chart, "ratings")


def _departures(results: pl.DataFrame) -> Iterator[Figure]:
    """For which groups the model departs from people's ratings."""
    rows, grouping = metric_rows(results, "rating_departure").to_dicts(), queries.grouping_of(results)
    dots = [phrases.dot(row, phrases.group(row["group"], grouping.get(row["group"]))) for row in rows]
    if rows:
        clear = sum(map(queries.shown, rows))
        title = phrases.how_many(clear, len(rows), "departure", "from people's ratings")
        caption = (
            "Model less people's ratings, each in standard deviations of the trait; bars, where images were rated: "
            "intervals that hold for all groups of a trait. Line: as people rate. Groups of fewer than five images are "
            "left out."
        )
        chart = chart_parts.group_dots(dots, "standard deviations above people's ratings")
        yield Figure("rating-departures", title, caption, chart, "ratings", wide=True)


# Curves


def _trajectories(results: pl.DataFrame) -> Iterator[Figure]:
    """Small multiples: each dimension over smiling and over age, a curve for each group."""
    points, fitted = metric_rows(results, "trajectory"), metric_rows(results, "trajectory_fit")
    grouping, unit = queries.finest(results), queries.printed_unit(results)
    caption = f"Mean Δ at each level, {unit}; second-degree curves with 95 % bands."
    for attribute in GROUP_LEVELS:
        for number, name in enumerate(queries.dimensions(results), 1):
            here = (pl.col("subset") == attribute) & (pl.col("concept") == name) & (pl.col("group") != EVERYONE)
            rows, curve = _levels(points.filter(here), grouping), _levels(fitted.filter(here), grouping)
            if len({row["level"] for row in rows}) > 2:
                file_name = f"{attribute}-{name if name in phrases.TITLES else number}"
                title = f"over {attribute}, {phrases.dimension(name)} {_span(curve)}"
                yield Figure(file_name, title, caption, chart_parts.curves(rows, curve, attribute, unit), "curves")


def _span(curve: Rows) -> str:
    """For how many groups the bands at the curve's two ends do not overlap."""
    groups, ways = order(curve, "group"), {"rises": 0, "falls": 0}
    for group in groups:
        levels = sorted((row for row in curve if row["group"] == group), key=lambda row: row["level"])
        first, last = levels[0], levels[-1]
        if None not in (first["low"], first["high"], last["low"], last["high"]):
            ways["rises"] += first["high"] < last["low"]
            ways["falls"] += first["low"] > last["high"]
    counts = [f"{way} for {count}" for way, count in ways.items() if count]
    return f"{' and '.join(counts)} of {len(groups)} groups" if counts else "has overlapping bands at both ends"


def _levels(table: pl.DataFrame, grouping: str) -> Rows:
    return [{**_point(row), "group": phrases.group(row["group"], grouping)} for row in table.to_dicts()]


def _point(row: Result) -> Result:
    return {"level": float(row["template"]), "n": row["n"], **phrases.printed(row)}


def _departures_of_curves(results: pl.DataFrame) -> Iterator[Figure]:
    """How far each crossed group's slope and curvature depart from those of the others."""
    unit = queries.printed_unit(results)
    for kind in ("slope", "curvature"):
        parts = metric_rows(results, f"{kind}_departure").group_by(["subset"], maintain_order=True)
        for number, ((subset,), table) in enumerate(parts, 1):
            varied, grouping = INTERACTIONS[str(subset)]
            rows = table.to_dicts()
            clear = sum(map(queries.shown, rows))
            over = f"over {phrases.attribute(varied)}"
            title = f"{over}, {phrases.how_many(clear, len(rows), 'departure', f'in {kind}')}"
            caption = (
                f"Each group's {kind} less the mean of the other groups, {unit}; bars: intervals that hold for all "
                "of them at once. Line: the same as the others."
            )
            dots = [phrases.dot(row, phrases.group(row["group"], grouping)) for row in rows]
            chart = chart_parts.group_dots(dots, f"{kind} less that of the others, {unit}")
            yield Figure(f"{kind}-departure-{number}", title, caption, chart, "curves", wide=True)


def _separation(results: pl.DataFrame) -> Iterator[Figure]:
    """Positive against negative valence, a cloud of ages for each group: all scales together, then each apart."""
    together = metric_rows(results, "valence_point")
    if together.height:
        ends = "the positive ends of all scales (Agency +, progressive, Communion +)"
        if set(queries.dimensions(results)) - set(phrases.TITLES):
            ends = "the positive ends of all scales"
        yield _clouds(results, together, "separation", "positive against negative ends", ends)
    apart = metric_rows(results, "scale_point").group_by(["subset"], maintain_order=True)
    for number, ((scale,), table) in enumerate(apart, 1):
        name = phrases.dimension(str(scale))
        yield _clouds(results, table, f"separation-{number}", f"{name} against its opposite", name)


def _clouds(results: pl.DataFrame, table: pl.DataFrame, name: str, title: str, ends: str) -> Figure:
    scale, points, grouping = phrases.factor(table.row(0, named=True)), [], queries.finest(results)
    wide = table.pivot("concept", index=["group", "template", "n"], values="value")
    for row in wide.drop_nulls().to_dicts():
        both = {end: round(scale * row[end], 4) for end in ("positive", "negative")}
        group = phrases.group(row["group"], grouping)
        points.append({"group": group, "age": float(row["template"]), "n": row["n"], **both})
    rings = [ring for group in order(points, "group") for ring in _ring(points, group)]
    caption = (
        f"A point for each age and group: mean Δ of {ends} against that of the opposite. Ellipses: 2 standard "
        "deviations over the ages. No test: a few ages do not tell how far ages spread."
    )
    chart = chart_parts.ellipses(points, rings, queries.printed_unit(results))
    return Figure(name, title, caption, chart, "curves", wide=name == "separation")


def _ring(points: Rows, group: str) -> Iterator[Result]:
    """The 2 σ ellipse of a group's points."""
    cloud = np.array([[row["positive"], row["negative"]] for row in points if row["group"] == group])
    if len(cloud) < 3:
        return
    lengths, axes = np.linalg.eigh(np.cov(cloud.T))
    turn = np.linspace(0, 2 * np.pi, RING)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    ring = cloud.mean(axis=0)[:, None] + axes @ (2 * np.sqrt(np.maximum(lengths, 0))[:, None] * circle)
    for step, (positive, negative) in enumerate(ring.T.tolist()):
        yield {"group": group, "step": step, "positive": round(positive, 4), "negative": round(negative, 4)}


def _confounds(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension over smiling, lighting and pose: do the ends of a scale oppose each other?"""
    points, unit = metric_rows(results, "trajectory").filter(group=EVERYONE), queries.printed_unit(results)
    correlations = metric_rows(results, "opposites_r").filter(pl.col("concept") != MEAN)
    for attribute in CONFOUNDS:
        table = points.filter(subset=attribute)
        if table["template"].n_unique() < 3:
            continue
        rows = [{**_point(row), "group": phrases.dimension(row["concept"])} for row in table.to_dicts()]
        scales = correlations.filter(subset=attribute).to_dicts()
        title, caption = f"over {attribute}, no scale has two ends", f"Mean Δ of everyone, {unit}."
        if scales:
            together = sum(row["value"] > 0 for row in scales)
            title = f"over {attribute}, the two ends move together in {together} of {len(scales)} scales"
            values = listed([f"{phrases.dimension(row['concept'])} {phrases.number(row)}" for row in scales])
            caption += f" r between the ends of each scale: {values}; −1: the ends oppose each other."
        chart = chart_parts.plain_curves(rows, attribute, unit)
        yield Figure(f"confound-{attribute}", title, caption, chart, "confounds")


# Neutral prompt, brightness


def _neutral(results: pl.DataFrame) -> Iterator[Figure]:
    """Densities of the neutral prompt's score, and of all dimensions before and after Δ."""
    narrow = metric_rows(results, "narrowing").filter(concept="groups").to_dicts()
    scale, grouping = phrases.factor({"unit": queries.unit(results)}), queries.finest(results)
    caption = f"Smoothed density over the images of each group, {queries.printed_unit(results)}."
    for name, (title, axis) in DENSITIES.items():
        rows = []
        for row in metric_rows(results, "density").filter(subset=name).to_dicts():
            score, group = round(scale * float(row["template"]), 4), phrases.group(row["group"], grouping)
            rows.append({"group": group, "score": score, "value": row["value"]})
        if rows:
            if name == "delta_cosine" and narrow and narrow[0]["value"]:
                title += f"; group means {narrow[0]['value']:.2f} times as far apart"
            chart = chart_parts.densities(rows, axis)
            yield Figure(f"density-{name.replace('_', '-')}", title, caption, chart, "neutral")


def _group_r(results: pl.DataFrame) -> Iterator[Figure]:
    """How far two groups' neutral cosines go together over seeds."""
    rows, grouping = metric_rows(results, "neutral_group_r").to_dicts(), queries.finest(results)
    if rows:
        spans = [phrases.decimal(each(row["value"] for row in rows)) for each in (min, max)]
        title = f"r of two groups' neutral cosines over seeds: {spans[0]} to {spans[1]}"
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
    rows = [phrases.dot(row, when[row["subset"]]) for row in metric_rows(results, "neutral_r").to_dicts()]
    if not rows:
        return
    spans = []
    for name in when.values():
        values = [row["value"] for row in rows if row["group"] == name]
        spans.append(f"{phrases.decimal(min(values))} to {phrases.decimal(max(values))} {name}")
    title = f"r with the neutral prompt: {', '.join(spans)}"
    caption = (
        "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % intervals: "
        "1: an image that fits “person” fits any adjective; 0: the dimension does not depend on that."
    )
    chart = chart_parts.group_dots(rows, "correlation over images")
    yield Figure("neutral-r", title, caption, chart, "neutral", wide=True)


def _brightness(results: pl.DataFrame) -> Iterator[Figure]:
    """Where the pictures of two groups differ in brightness: a map for each pair, and within each other group."""
    keys = ["subset", "group", "against", "concept"]
    maps = metric_rows(results, "brightness").group_by(keys, maintain_order=True)
    for number, (_, part) in enumerate(maps, 1):
        squares = []
        for row in part.drop_nulls("template").to_dicts():
            down, across = square_place(row["template"])
            squares.append({"down": down, "across": across, "value": round(row["value"], 3)})
        whole = part.filter(pl.col("template").is_null())["value"]
        row = part.row(0, named=True)
        first, second = phrases.pair(row)
        overall = phrases.decimal(whole[0], "+.2f") if len(whole) else ""
        among = f", among {row['concept']}" if row["concept"] else ""
        title = f"brightness of {first} against {second}{among}: mean sign {overall}"
        caption = (
            f"Where the grey values of {phrases.counted(row['n'], 'pair')} differ that differ in this alone. Signs are "
            "taken pixel by pixel; squares are their means. +1: the first is always brighter, −1: the second. About "
            "the pictures, not about the model."
        )
        chart = chart_parts.brightness_map(squares, first, second)
        yield Figure(f"brightness-{number}", title, caption, chart, "confounds")


FIGURES = (_summary, _effects, _induced, _variance, _ratings, _departures)
CURVE_FIGURES = (
    _trajectories,
    _departures_of_curves,
    _separation,
    _confounds,
    _neutral,
    _neutral_r,
    _group_r,
    _brightness,
)
"""Figures with a point for every group and level."""
