"""Perception's figures, as in the study and beyond: what moves judgements, for whom, and what else may."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.benchmarks.gras_groups import ALPHA
from beholder.benchmarks.perception_curves import CONFOUNDS, GROUP_LEVELS
from beholder.benchmarks.perception_scores import EVERYONE
from beholder.report import words
from beholder.report.figure import Figure, sentence
from beholder.report.marks import Rows
from beholder.report.numbers import Result
from beholder.report.perception import marks, reading, said

MOST_MODELS = 2
"""Figures with a mark for every group and level are drawn for so many models."""
RING = 48
DENSITIES = {
    "neutral": ("the neutral prompt by itself", "cosine of “a photo of a person”"),
    "cosine": ("all dimensions before Δ", "mean of all dimensions"),
    "delta_cosine": ("all dimensions after Δ", "mean of all dimensions less the neutral prompt"),
}


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model; the name tells them apart where there are several."""
    several, few = part["model"].n_unique() > 1, part["model"].n_unique() <= MOST_MODELS
    for number, (model, mine) in enumerate(reading.models(part), 1):
        for figure in _figures(mine, few=few):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)


def _figures(mine: pl.DataFrame, *, few: bool) -> Iterator[Figure]:
    yield from _summary(mine)
    yield from _effects(mine)
    yield from _induced(mine)
    yield from _variance(mine)
    if few:
        yield from _trajectories(mine)
        yield from _separation(mine)
        yield from _confounds(mine)
        yield from _neutral(mine)
        yield from _neutral_r(mine)
        yield from _brightness(mine)


# Summary


def _summary(mine: pl.DataFrame) -> Iterator[Figure]:
    """The eight dimensions × groups, each group less everyone."""
    subset = reading.crossed(mine)
    table = reading.rows(mine, "delta_cosine")
    everyone = {row["concept"]: row["value"] for row in table.filter(pl.col("subset") == EVERYONE).to_dicts()}
    rows = [
        _less(row, everyone[row["concept"]]) for row in table.filter(pl.col("subset") == subset).to_dicts()
    ]
    if subset == EVERYONE or not rows:
        return
    yield Figure(
        "groups",
        _farthest(mine, rows, subset),
        f"Δ of each group less Δ of everyone, {_unit(mine)}, with 95 % intervals of the group. Line: as everyone. "
        "A click on the legend brings a group out.",
        marks.group_dots(rows, f"off everyone, {_unit(mine)}"),
        "judgements",
        wide=True,
    )


def _farthest(mine: pl.DataFrame, rows: Rows, subset: str) -> str:
    """Who lies farthest off, where any difference between these groups is shown."""
    gaps = reading.rows(mine, "gap").filter(pl.col("subset") == subset).to_dicts()
    if not any(reading.shown(row) for row in gaps):
        return "no difference between the groups is shown"
    far = max(rows, key=lambda row: abs(row["value"]))
    off = f"{far['value']:+.2f}".replace("-", said.MINUS)
    return f"{far['group']} lies farthest from everyone, at {far['dimension']} ({off})"


def _less(row: Result, centre: float) -> Result:
    scale = said.factor(row)
    moved = {
        key: None if row[key] is None else round(scale * (row[key] - centre), 4)
        for key in ("value", "low", "high")
    }
    whose = said.group(row["group"], row["subset"])
    return {"dimension": said.dimension(row["concept"]), "group": whose, "n": row["n"], **moved}


# Effects


def _effects(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.rows(mine, "causal_effect").to_dicts()
    if not table:
        return
    rows = [
        {
            "contrast": said.change(row),
            "dimension": said.dimension(row["concept"]),
            "shown": int(reading.shown(row)), "p_value": row["p_value"], **_printed(row),
        }
        for row in table
    ]  # fmt: skip
    count = sum(row["shown"] for row in rows)
    yield Figure(
        "effects",
        f"{count} of {len(rows)} effects of one attribute alone are shown",
        f"Average change of Δ when one attribute is changed and all else stays, {_unit(mine)}; intervals resample "
        "identities. Faint: not shown after correction.",
        marks.effect_map(rows, _unit(mine)),
        "effects",
        wide=True,
    )


def _induced(mine: pl.DataFrame) -> Iterator[Figure]:
    found = reading.induced(mine)
    if not found:
        return
    rows = []
    for row in found:
        low, lower, upper, high = (None if q is None else round(said.factor(row) * q, 4) for q in row["box"])
        kind = "protected" if row["subset"] in reading.PROTECTED else "not protected"
        value = round(said.factor(row) * row["value"], 4)
        box = {"low": low, "lower": lower, "value": value, "upper": upper, "high": high, "n": row["n"]}
        rows.append({"attribute": said.attribute(row["subset"]), "kind": kind, **box})
    yield Figure(
        "induced-variation",
        _widest(mine, found),
        f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {_unit(mine)}, all dimensions. Tick: median; "
        "box: middle half; line: 5 to 95 %. Noise alone gives more than 0 here: read the effects beside it.",
        marks.boxes(rows, f"absolute difference, {_unit(mine)}"),
        "effects",
    )


def _widest(mine: pl.DataFrame, found: Rows) -> str:
    """Which attribute makes the widest differences, where the rank-sum test tells it from the narrowest."""
    first, last = found[0]["subset"], found[-1]["subset"]
    tests = reading.rows(mine, "induced_variation_test").filter(
        pl.col("group").is_in([f"{first} over {last}", f"{last} over {first}"])
    )
    p_values = tests["p_value"].drop_nulls()
    if not len(p_values) or p_values[0] > ALPHA:
        return "no attribute is shown to make wider differences than another"
    return f"{said.attribute(first)} makes the widest differences, {said.attribute(last)} the narrowest"


def _variance(mine: pl.DataFrame) -> Iterator[Figure]:
    for (block,), table in reading.rows(mine, "variance_share").group_by(["template"], maintain_order=True):
        names = list(dict.fromkeys(table["subset"]))
        rows = [
            {"dimension": said.dimension(row["concept"]), "attribute": said.attribute(row["subset"]),
             "place": names.index(row["subset"]), "value": round(100 * max(row["value"], 0.0), 2)}
            for row in table.to_dicts()
        ]  # fmt: skip
        known = table.filter(pl.col("subset") != "rest")
        top = (
            known.group_by("subset", maintain_order=True)
            .agg(pl.col("value").mean())
            .sort("value", descending=True)
            .row(0)
        )
        where = f" where {said.attribute(str(block))} is varied" if block else ""
        yield Figure(
            f"variance{f'-{block}' if block else ''}",
            f"{said.attribute(top[0])} carries {100 * top[1]:.0f} % of the spread on average{where}",
            "Share of the spread of Δ that goes with each attribute, less what chance gives; rest: interactions and "
            "what no attribute explains.",
            marks.stacked(rows),
            "effects",
        )


# Curves


def _trajectories(mine: pl.DataFrame) -> Iterator[Figure]:
    """Small multiples: each dimension over smiling and over age, a curve a group."""
    points, fitted = reading.rows(mine, "trajectory"), reading.rows(mine, "trajectory_fit")
    for attribute in GROUP_LEVELS:
        for name in reading.dimensions(mine):
            here = (
                (pl.col("subset") == attribute) & (pl.col("concept") == name) & (pl.col("group") != EVERYONE)
            )
            rows, curve = _levels(points.filter(here)), _levels(fitted.filter(here))
            if len({row["level"] for row in rows}) > 2:
                yield Figure(
                    f"{attribute}-{name}",
                    f"{said.dimension(name)} over {attribute}: {_span(curve)}",
                    f"Mean Δ at each level, {_unit(mine)}, with second-degree curves and their 95 % bands.",
                    marks.curves(rows, curve, attribute, _unit(mine)),
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
        {"group": said.group(row["group"]), "level": float(row["template"]), "n": row["n"], **_printed(row)}
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
        points.append(
            {"group": said.group(row["group"]), "age": float(row["template"]), "n": row["n"], **ends}
        )
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
        marks.ellipses(points, rings, _unit(mine)),
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
                **_printed(row),
            }
            for row in table.to_dicts()
        ]
        found = correlations.filter(
            (pl.col("subset") == attribute) & (pl.col("concept") != "mean")
        ).to_dicts()
        listed = (
            words.listed([f"{said.dimension(row['concept'])} {said.number(row)}" for row in found])
            if found
            else ""
        )
        together = sum(row["value"] > 0 for row in found)
        seen = (
            f"{together} of {len(found)} scales have ends that move together"
            if found
            else "no scale with two ends"
        )
        yield Figure(
            f"confound-{attribute}",
            f"over {attribute}, {seen}",
            f"Mean Δ of everyone, {_unit(mine)}."
            + (f" r of each scale's ends: {listed}; ends that oppose have −1." if found else ""),
            marks.plain_curves(rows, attribute, _unit(mine)),
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
            f"Smoothed density over the images of each group, {_unit(mine)}.",
            marks.densities(rows, title),
            "neutral",
        )


def _neutral_r(mine: pl.DataFrame) -> Iterator[Figure]:
    """How far each dimension follows the neutral prompt over the images, before and after Δ."""
    when = {"cosine": "before Δ", "delta_cosine": "after Δ"}
    rows = [
        {
            "dimension": said.dimension(row["concept"]),
            "group": when[row["subset"]],
            "n": row["n"],
            **_printed(row),
        }
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


def _printed(row: Result) -> Result:
    scale = said.factor(row)
    return {key: None if row[key] is None else round(scale * row[key], 4) for key in ("value", "low", "high")}


def _unit(mine: pl.DataFrame) -> str:
    return said.PRINTED.get(reading.unit(mine), reading.unit(mine))
