"""Disparity's figures across models: several models in one chart, as in the study's figures 1, 2 and 4."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chart_style import QUIET, series_colours
from beholder.chapter.charts import Axis, Figure, forest
from beholder.chapter.numbers import Result
from beholder.chapter.queries import by_model, metric_rows
from beholder.studies.disparity import chart_parts, phrases, queries
from beholder.studies.disparity.chart_parts import stacked
from beholder.studies.disparity.queries import Pair

STACK = 8
"""A strip has room for at least this many stacked dots."""
COLOURED = " Colour: the group whose words are nearer to the concept's."


def model_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Figures with all models, if there are several."""
    if part["model"].n_unique() < 2:
        return
    yield from _means(part)
    pairs = queries.pairs(part)
    for number, pair in enumerate(pairs, 1):
        suffix = "" if len(pairs) == 1 else f"-{number}"
        yield from _gaps(part, pair, suffix)
        yield from _calibration(part, pair, suffix)
    yield from _agreement(part)


def association_colours(pair: Pair) -> dict[str, str]:
    """A colour for each answer of `queries.association`."""
    names = [queries.nearer(name) for name in pair.names]
    return dict(zip(names, series_colours(list(pair.names)), strict=True)) | {queries.UNKNOWN: QUIET}


def calibration_bars(part: pl.DataFrame, pair: Pair) -> list[Result]:
    """How much farther confidence is off for the first group than for the second, in points, by concept."""
    first, second = queries.sides(part, "miscalibration", pair)
    published = queries.by_concept(queries.of_pair(part, pair), "ece_gap")
    near, bars = queries.association(part, pair), []
    for row in queries.calibration_gaps(part, pair).to_dicts():
        concept = row["concept"]
        if concept in first and concept in second:
            roots = [phrases.root(side[concept]["value"]) for side in (first, second)]
            raw = published[concept]["value"] if concept in published else None
            bars.append(
                {
                    **{key: row[key] for key in ("concept", "p_value", "n")},
                    "value": round(100 * (roots[0] - roots[1]), 2),
                    "raw": None if raw is None else round(100 * raw, 2),
                    "low": None,
                    "high": None,
                    "words": near.get(concept, queries.UNKNOWN),
                    "found": int(row["found"]),
                }
            )
    return sorted(bars, key=lambda bar: -bar["value"])


def _means(part: pl.DataFrame) -> Iterator[Figure]:
    rows = metric_rows(part, "mean_average_precision").select("model", "group", "value", "low", "high", "n").to_dicts()
    if rows:
        caption = "Over the concepts that every group shows, as published, with 95 % intervals."
        x = Axis("mean average precision", percent=True, scale={"zero": True})
        chart = forest(rows, x, down="model", lane="group")
        title = f"Mean average precision of {part['model'].n_unique()} models by group"
        yield Figure("models-means", title, caption, chart, "means")


def _gaps(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    rows: list[Result] = []
    for model, own in by_model(part):
        near, table = queries.association(own, pair), queries.tested(own, pair).sort("value")
        dots = [
            {
                "model": model,
                "concept": row["concept"],
                "value": round(100 * row["value"], 2),
                "words": near.get(row["concept"], queries.UNKNOWN),
                "found": int(row["found"]),
            }
            for row in table.to_dicts()
        ]
        rows += stacked(dots, STACK) if dots else []
        mean = queries.decided(queries.of_pair(own, pair), "mean_ap_gap_matched")
        if mean:
            numbers = {key: None if mean[key] is None else 100 * mean[key] for key in ("value", "low", "high")}
            rows.append({"model": model, "concept": None, "words": None, **numbers})
    what = "gap of average precision at matched prevalence"
    yield from _strips(pair, rows, f"models-gaps{suffix}", "gaps", what)


def _calibration(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    rows: list[Result] = []
    for model, own in by_model(part):
        bars = calibration_bars(own, pair)
        rows += stacked([{**bar, "model": model} for bar in reversed(bars)], STACK) if bars else []
    if len({row["model"] for row in rows}) > 1:
        what = "how much farther confidence is off for the first group"
        yield from _strips(pair, rows, f"models-calibration{suffix}", "calibration", what)


def _strips(pair: Pair, rows: list[Result], name: str, topic: str, what: str) -> Iterator[Figure]:
    concepts = [row for row in rows if row["concept"] is not None]
    if not concepts:
        return
    found = sum(row["found"] for row in concepts)
    models = len({row["model"] for row in concepts})
    coloured = COLOURED if any(row["words"] != queries.UNKNOWN for row in concepts) else ""
    diamond = " Diamond: the mean, with its 95 % interval." if len(concepts) < len(rows) else ""
    caption = f"Each dot is a concept: {what}, in points; pale: no difference found.{diamond}{coloured}"
    title = f"{phrases.less(pair)}, {models} models: {phrases.found(found, len(concepts))}"
    if topic == "calibration":
        title = f"Calibration, {title}"
    chart = chart_parts.model_strips(rows, f"points: {pair.first} less {pair.second}", association_colours(pair))
    yield Figure(name, title, caption, chart, topic, wide=True)


def _agreement(part: pl.DataFrame) -> Iterator[Figure]:
    """The counts of every colour, for every model and other data set."""
    counts = metric_rows(part, "agreement_count")
    for number, ((elsewhere,), table) in enumerate(counts.group_by(["subset"], maintain_order=True), 1):
        rows: list[Result] = []
        for model, own in by_model(table):
            start = 0.0
            for row in own.to_dicts():
                end = start + row["value"]
                rows.append({"model": model, "colour": row["group"], "value": row["value"], "start": start, "end": end})
                start = end
        if len({row["model"] for row in rows}) > 1:
            here = str(part["dataset"][0])
            title = f"Agreement of the gaps on {here} and on {elsewhere}, by model"
            caption = (
                "Concepts of both data sets. Green: published gaps wider than five points in the same direction; red: "
                "in opposite directions; yellow: all others."
            )
            yield Figure(f"models-agreement-{number}", title, caption, chart_parts.agreement_bars(rows), "agreement")
