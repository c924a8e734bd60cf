"""Perception's figures of curves and of what else may be at work: trajectories, ellipses, confounds, neutral prompt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.chart_parts import Rows
from beholder.chapter.figure import Figure
from beholder.chapter.numbers import Result
from beholder.studies.perception import chart_parts as marks
from beholder.studies.perception import phrases as said
from beholder.studies.perception import queries as reading
from beholder.studies.perception.curves import CONFOUNDS, GROUP_LEVELS
from beholder.studies.perception.scores import EVERYONE

RING = 48
DENSITIES = {
    "neutral": ("the neutral prompt by itself", "cosine of “a photo of a person”"),
    "cosine": ("all dimensions before Δ", "mean of all dimensions"),
    "delta_cosine": ("all dimensions after Δ", "mean of all dimensions less the neutral prompt"),
}


def curve_figures(mine: pl.DataFrame) -> Iterator[Figure]:
    """Every figure with a mark for every group and level, of one model."""
    yield from _trajectories(mine)
    yield from _separation(mine)
    yield from _confounds(mine)
    yield from _neutral(mine)
    yield from _neutral_r(mine)
    yield from _brightness(mine)


# Curves


def _trajectories(mine: pl.DataFrame) -> Iterator[Figure]:
    """Small multiples: each dimension over smiling and over age, a curve a group."""
    points, fitted = reading.rows(mine, "trajectory"), reading.rows(mine, "trajectory_fit")
    for attribute in GROUP_LEVELS:
        for name in reading.dimensions(mine):
            here = (pl.col("subset") == attribute) & (pl.col("concept") == name) & (pl.col("group") != EVERYONE)
            rows, curve = _levels(points.filter(here)), _levels(fitted.filter(here))
            if len({row["level"] for row in rows}) > 2:
                yield Figure(
                    f"{attribute}-{name}",
                    f"{said.dimension(name)} over {attribute}: {_span(curve)}",
                    f"Mean Δ at each level, {reading.printed_unit(mine)}; second-degree curves with 95 % bands.",
                    marks.curves(rows, curve, attribute, reading.printed_unit(mine)),
                    "curves",
                )


def _span(curve: Rows) -> str:
    """For how many groups the curve's two ends lie apart, bands and all."""
    groups, ways = list(dict.fromkeys(row["group"] for row in curve)), {"rises": 0, "falls": 0}
    for group in groups:
        mine = sorted((row for row in curve if row["group"] == group), key=lambda row: row["level"])
        first, last = mine[0], mine[-1]
        if None not in (first["low"], first["high"], last["low"], last["high"]):
            ways["rises"] += first["high"] < last["low"]
            ways["falls"] += first["low"] > last["high"]
    said_of = [f"{way} for {count}" for way, count in ways.items() if count]
    return f"{', '.join(said_of)} of {len(groups)} groups" if said_of else "the bands of both ends overlap"


def _levels(table: pl.DataFrame) -> Rows:
    return [
        {"group": said.group(row["group"]), "level": float(row["template"]), "n": row["n"], **said.printed(row)}
        for row in table.to_dicts()
    ]


def _separation(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.rows(mine, "valence_point")
    if not table.height:
        return
    scale, points = said.factor(table.row(0, named=True)), []
    wide = table.pivot("concept", index=["group", "template", "n"], values="value")
    for row in wide.drop_nulls().to_dicts():
        ends = {end: round(scale * row[end], 4) for end in ("positive", "negative")}
        points.append({"group": said.group(row["group"]), "age": float(row["template"]), "n": row["n"], **ends})
    rings = [ring for group in dict.fromkeys(row["group"] for row in points) for ring in _ring(points, group)]
    apart = reading.rows(mine, "separation").sort("value", descending=True)
    far = apart.row(0, named=True) if apart.height else None
    seen = (
        f"{said.over(far).replace(' over ', ' and ')} lie farthest apart"
        if far
        else "positive against negative valence"
    )
    yield Figure(
        "separation",
        seen,
        "One point per age and group: mean Δ of the positive ends (Agency +, progressive, Communion +) against the "
        "negative ones. Ellipses: 2 standard deviations over the ages.",
        marks.ellipses(points, rings, reading.printed_unit(mine)),
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


def _confounds(mine: pl.DataFrame) -> Iterator[Figure]:
    points = reading.rows(mine, "trajectory").filter(pl.col("group") == EVERYONE)
    correlations = reading.rows(mine, "opposites_r")
    for attribute in CONFOUNDS:
        table = points.filter(pl.col("subset") == attribute)
        if table["template"].n_unique() < 3:
            continue
        rows = [
            {
                "group": said.dimension(row["concept"]),
                "level": float(row["template"]),
                "n": row["n"],
                **said.printed(row),
            }
            for row in table.to_dicts()
        ]
        found = correlations.filter((pl.col("subset") == attribute) & (pl.col("concept") != "mean")).to_dicts()
        listed = (
            words.listed([f"{said.dimension(row['concept'])} {said.number(row)}" for row in found]) if found else ""
        )
        together = sum(row["value"] > 0 for row in found)
        seen = f"{together} of {len(found)} scales have ends that move together" if found else "no scale with two ends"
        yield Figure(
            f"confound-{attribute}",
            f"over {attribute}, {seen}",
            f"Mean Δ of everyone, {reading.printed_unit(mine)}."
            + (f" r of each scale's ends: {listed}; ends that oppose have −1." if found else ""),
            marks.plain_curves(rows, attribute, reading.printed_unit(mine)),
            "confounds",
        )


# Neutral prompt, brightness


def _neutral(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.rows(mine, "density")
    narrow = reading.rows(mine, "narrowing").filter(pl.col("concept") == "groups").to_dicts()
    for name, (seen, title) in DENSITIES.items():
        part = table.filter(pl.col("subset") == name).to_dicts()
        if not part:
            continue
        scale = 100.0 if reading.unit(mine) in said.HUNDREDS else 1.0
        rows = [
            {
                "group": said.group(row["group"]),
                "place": round(scale * float(row["template"]), 4),
                "value": row["value"],
            }
            for row in part
        ]
        after = (
            f"; group means {narrow[0]['value']:.2f} times as far apart"
            if name == "delta_cosine" and narrow and narrow[0]["value"]
            else ""
        )
        yield Figure(
            f"density-{name.replace('_', '-')}",
            f"{seen}{after}",
            f"Smoothed density over the images of each group, {reading.printed_unit(mine)}.",
            marks.densities(rows, title),
            "neutral",
        )


def _neutral_r(mine: pl.DataFrame) -> Iterator[Figure]:
    """How far each dimension follows the neutral prompt over the images, before and after Δ."""
    when = {"cosine": "before Δ", "delta_cosine": "after Δ"}
    rows = [
        {"dimension": said.dimension(row["concept"]), "group": when[row["subset"]], "n": row["n"], **said.printed(row)}
        for row in reading.rows(mine, "neutral_r").to_dicts()
    ]
    if not rows:
        return
    spans = []
    for name in when.values():
        values = [row["value"] for row in rows if row["group"] == name]
        spans.append(f"{min(values):.2f} to {max(values):.2f} {name}".replace("-", said.MINUS))
    yield Figure(
        "neutral-r",
        f"r with the neutral prompt: {', '.join(spans)}",
        "Correlation of each dimension's score with that of the neutral prompt over all images, with 95 % intervals: "
        "1, an image that fits “person” fits any adjective; 0, the dimension says something of its own.",
        marks.group_dots(rows, "correlation over images"),
        "neutral",
        wide=True,
    )


def _brightness(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.rows(mine, "brightness")
    for _, part in table.group_by(["group"], maintain_order=True):
        cells = [
            {"down": int(down), "across": int(across), "value": round(row["value"], 3)}
            for row in part.filter(pl.col("template").is_not_null()).to_dicts()
            for down, across in [row["template"].split(",")]
        ]
        whole = part.filter(pl.col("template").is_null())["value"]
        first, second = said.pair(part.row(0, named=True))
        overall = f"{whole[0]:+.2f}".replace("-", said.MINUS) if len(whole) else ""
        yield Figure(
            f"brightness-{first}-{second}".replace(" ", "-"),
            f"{first} against {second}: mean sign {overall}",
            f"Where in the picture the pairs' grey values differ ({part['n'][0]} pairs that differ in this alone): +1 "
            "the first is always brighter, −1 the second. About the pictures, not about the model.",
            marks.brightness_map(cells, first, second),
            "confounds",
        )
