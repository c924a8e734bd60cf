"""Perception's figures of curves and of other explanations: trajectories, ellipses, confounds, neutral prompt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.chapter.chart_parts import Rows
from beholder.chapter.figure import Figure
from beholder.chapter.numbers import Result
from beholder.chapter.phrases import listed
from beholder.studies.perception import chart_parts, phrases, queries
from beholder.studies.perception.brightness import square_place
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.scores import EVERYONE, MEAN

RING = 48
DENSITIES = {
    "neutral": ("the neutral prompt by itself", "cosine of “a photo of a person”"),
    "cosine": ("all dimensions before Δ", "mean of all dimensions"),
    "delta_cosine": ("all dimensions after Δ", "mean of all dimensions less the neutral prompt"),
}


def curve_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Every figure with a point for every group and level, of one model."""
    yield from _trajectories(results)
    yield from _separation(results)
    yield from _confounds(results)
    yield from _neutral(results)
    yield from _neutral_r(results)
    yield from _brightness(results)


# Curves


def _trajectories(results: pl.DataFrame) -> Iterator[Figure]:
    """Small multiples: each dimension over smiling and over age, a curve for each group."""
    points, fitted = queries.rows(results, "trajectory"), queries.rows(results, "trajectory_fit")
    grouping = queries.finest(results)
    for attribute in GROUP_LEVELS:
        for number, name in enumerate(queries.dimensions(results), 1):
            here = (pl.col("subset") == attribute) & (pl.col("concept") == name) & (pl.col("group") != EVERYONE)
            rows, curve = _levels(points.filter(here), grouping), _levels(fitted.filter(here), grouping)
            if len({row["level"] for row in rows}) > 2:
                yield Figure(
                    f"{attribute}-{name if name in phrases.TITLES else number}",  # the name becomes a file's
                    f"over {attribute}, {phrases.dimension(name)} {_span(curve)}",
                    f"Mean Δ at each level, {queries.printed_unit(results)}; second-degree curves with 95 % bands.",
                    chart_parts.curves(rows, curve, attribute, queries.printed_unit(results)),
                    "curves",
                )


def _span(curve: Rows) -> str:
    """For how many groups the bands at the curve's two ends do not overlap."""
    groups, ways = list(dict.fromkeys(row["group"] for row in curve)), {"rises": 0, "falls": 0}
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


def _separation(results: pl.DataFrame) -> Iterator[Figure]:
    table = queries.rows(results, "valence_point")
    if not table.height:
        return
    grouping = queries.finest(results)
    scale, points = phrases.factor(table.row(0, named=True)), []
    wide = table.pivot("concept", index=["group", "template", "n"], values="value")
    for row in wide.drop_nulls().to_dicts():
        ends = {end: round(scale * row[end], 4) for end in ("positive", "negative")}
        group = phrases.group(row["group"], grouping)
        points.append({"group": group, "age": float(row["template"]), "n": row["n"], **ends})
    rings = [ring for group in dict.fromkeys(row["group"] for row in points) for ring in _ring(points, group)]
    farthest = queries.largest(results, "separation", 1)
    title = "positive against negative valence"
    if farthest:
        title = f"farthest apart: {' and '.join(phrases.pair(farthest[0], grouping))}"
    yield Figure(
        "separation",
        title,
        "A point for each age and group: mean Δ of the positive ends (Agency +, progressive, Communion +) against the "
        "negative ends. Ellipses: 2 standard deviations over the ages.",
        chart_parts.ellipses(points, rings, queries.printed_unit(results)),
        "curves",
        wide=True,
    )


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
    points = queries.rows(results, "trajectory").filter(pl.col("group") == EVERYONE)
    correlations = queries.rows(results, "opposites_r")
    for attribute in CONFOUNDS:
        table = points.filter(pl.col("subset") == attribute)
        if table["template"].n_unique() < 3:
            continue
        rows = [{**_point(row), "group": phrases.dimension(row["concept"])} for row in table.to_dicts()]
        scales = correlations.filter((pl.col("subset") == attribute) & (pl.col("concept") != MEAN)).to_dicts()
        title, caption = "no scale has two ends", f"Mean Δ of everyone, {queries.printed_unit(results)}."
        if scales:
            together = sum(row["value"] > 0 for row in scales)
            title = f"the two ends move together in {together} of {len(scales)} scales"
            values = listed([f"{phrases.dimension(row['concept'])} {phrases.number(row)}" for row in scales])
            caption += f" r between the ends of each scale: {values}; −1: the ends oppose each other."
        yield Figure(
            f"confound-{attribute}",
            f"over {attribute}, {title}",
            caption,
            chart_parts.plain_curves(rows, attribute, queries.printed_unit(results)),
            "confounds",
        )


# Neutral prompt, brightness


def _neutral(results: pl.DataFrame) -> Iterator[Figure]:
    table = queries.rows(results, "density")
    narrow = queries.rows(results, "narrowing").filter(pl.col("concept") == "groups").to_dicts()
    scale, grouping = phrases.factor({"unit": queries.unit(results)}), queries.finest(results)
    for name, (title, axis) in DENSITIES.items():
        rows = [
            {
                "group": phrases.group(row["group"], grouping),
                "score": round(scale * float(row["template"]), 4),
                "value": row["value"],
            }
            for row in table.filter(pl.col("subset") == name).to_dicts()
        ]
        if not rows:
            continue
        after = (
            f"; group means {narrow[0]['value']:.2f} times as far apart"
            if name == "delta_cosine" and narrow and narrow[0]["value"]
            else ""
        )
        yield Figure(
            f"density-{name.replace('_', '-')}",
            f"{title}{after}",
            f"Smoothed density over the images of each group, {queries.printed_unit(results)}.",
            chart_parts.densities(rows, axis),
            "neutral",
        )


def _neutral_r(results: pl.DataFrame) -> Iterator[Figure]:
    """How far each dimension correlates with the neutral prompt over the images, before and after Δ."""
    when = {"cosine": "before Δ", "delta_cosine": "after Δ"}
    rows = [
        {
            "dimension": phrases.dimension(row["concept"]),
            "group": when[row["subset"]],
            "n": row["n"],
            **phrases.printed(row),
        }
        for row in queries.rows(results, "neutral_r").to_dicts()
    ]
    if not rows:
        return
    spans = []
    for name in when.values():
        values = [row["value"] for row in rows if row["group"] == name]
        spans.append(f"{phrases.decimal(min(values))} to {phrases.decimal(max(values))} {name}")
    yield Figure(
        "neutral-r",
        f"r with the neutral prompt: {', '.join(spans)}",
        "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % intervals: "
        "1: an image that fits “person” fits any adjective; 0: the dimension does not depend on that.",
        chart_parts.group_dots(rows, "correlation over images"),
        "neutral",
        wide=True,
    )


def _brightness(results: pl.DataFrame) -> Iterator[Figure]:
    maps = queries.rows(results, "brightness").group_by(["subset", "group", "against"], maintain_order=True)
    for number, (_, part) in enumerate(maps, 1):
        squares = []
        for row in part.drop_nulls("template").to_dicts():
            down, across = square_place(row["template"])
            squares.append({"down": down, "across": across, "value": round(row["value"], 3)})
        whole = part.filter(pl.col("template").is_null())["value"]
        first, second = phrases.pair(part.row(0, named=True))
        overall = phrases.decimal(whole[0], "+.2f") if len(whole) else ""
        yield Figure(
            f"brightness-{number}",
            f"brightness of {first} against {second}: mean sign {overall}",
            f"Where the grey values of the pairs differ ({part['n'][0]} pairs that differ in this alone). +1: the "
            "first is always brighter, −1: the second. About the pictures, not about the model.",
            chart_parts.brightness_map(squares, first, second),
            "confounds",
        )
