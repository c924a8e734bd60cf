"""Disparity's figures: the widest gaps, the spread of all gaps, reliability, agreement of data sets."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.charts import Figure, each_model
from beholder.chapter.numbers import Result, points_range, signed
from beholder.chapter.queries import metric_rows
from beholder.comparison.verdicts import DIFFERENCE
from beholder.studies.disparity import chart_parts, phrases, queries
from beholder.studies.disparity.agreement import COLOURS
from beholder.studies.disparity.model_charts import COLOURED, association_colours, calibration_bars, model_figures
from beholder.studies.disparity.queries import Pair

BARS = 12
"""How many gaps are drawn in either direction."""
STACK = 10
"""The strip has room for at least this many stacked dots."""
WORD_COLOURS = " Colour: whether the gap points towards the group that word vectors put the concept nearer to."
NUMBERS = ("value", "low", "high")


def disparity_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure: all models in one, if there are several, then each model's own."""
    yield from model_figures(part)
    yield from each_model(part, _figures)


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    pairs = queries.pairs(part)
    for number, pair in enumerate(pairs, 1):
        suffix = "" if len(pairs) == 1 else f"-{number}"
        yield from _bar_figure(part, pair, suffix)
        yield from _strip_figure(part, pair, suffix)
        yield from _calibration_figure(part, pair, suffix)
    yield from _reliability_figures(part)
    yield from _scatter_figures(part)


def _axis(pair: Pair) -> str:
    return f"points: {pair.first} less {pair.second}"


def _bar_figure(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    table = queries.tested(part, pair)
    bars = [_in_points(row) for row in queries.ends(table, BARS)]
    if bars:
        coloured = any(bar["words"] != queries.UNKNOWN for bar in bars)
        caption = (
            "Bars: gap at the same prevalence for both groups, with 95 % intervals that hold for all concepts at once; "
            f"pale: no difference found. Ticks: the published gap.{WORD_COLOURS if coloured else ''}"
        )
        yield Figure(f"gaps{suffix}", gap_title(table, pair), caption, chart_parts.gap_bars(bars, _axis(pair)), "gaps")


def _in_points(row: Result) -> Result:
    kept = {key: row[key] for key in ("concept", "words", "p_value", "n")}
    numbers = {key: _points(row[key]) for key in (*NUMBERS, "raw")}
    return {**kept, **numbers, "found": int(row["found"])}


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def gap_title(table: pl.DataFrame, pair: Pair) -> str:
    """The widest gaps that were found, in either direction."""
    found = table.filter("found")
    if not found.height:
        return f"{phrases.less(pair)}: no gap was found"
    directions = found.filter(pl.col("value") > 0), found.filter(pl.col("value") < 0)
    rows = [side.row(0, named=True) for side in directions if side.height]
    widest = [f"“{row['concept']}” {signed(row['value'])} ({points_range(row)})" for row in rows]
    return f"{phrases.less(pair)}: widest gaps {' and '.join(widest)} points"


def _strip_figure(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    mean, table = queries.decided(queries.of_pair(part, pair), "mean_ap_gap_matched"), queries.tested(part, pair)
    if mean is None or table.height < 2:
        return
    dots = chart_parts.stacked([_in_points(row) for row in table.sort("value").to_dicts()], STACK)
    reach = f"{signed(table['value'].min())} to {signed(table['value'].max())}"  # type: ignore[arg-type]
    result = "a difference" if mean["verdict"] == DIFFERENCE else "no difference"
    title = f"the mean gap ({signed(mean['value'])} points): {result} found; single gaps range from {reach}"
    caption = (
        "Each dot is a concept at matched prevalence; pale: no difference found. Diamond: the mean over the "
        f"{mean['n']} concepts, with its 95 % interval."
    )
    chart = chart_parts.gap_strip(dots, {key: _points(mean[key]) for key in NUMBERS}, _axis(pair))
    yield Figure(f"spread{suffix}", title, caption, chart, "gaps")


def _calibration_figure(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    """The gaps of calibration by concept, coloured by the words' association."""
    bars = calibration_bars(part, pair)
    if not bars:
        return
    ends = bars if len(bars) <= 2 * BARS else [*bars[:BARS], *bars[-BARS:]]
    found = sum(bar["found"] for bar in bars)
    coloured = COLOURED if any(bar["words"] != queries.UNKNOWN for bar in bars) else ""
    caption = (
        "Bars: how much farther confidence is off for the first group than for the second, in points, at the same "
        f"prevalence and less what chance adds; pale: no difference found. Ticks: the published gap of ECE.{coloured}"
    )
    title = f"calibration, {phrases.less(pair)}: {phrases.found(found, len(bars))}"
    chart = chart_parts.gap_bars(ends, _axis(pair), association_colours(pair))
    yield Figure(f"calibration-gaps{suffix}", title, caption, chart, "calibration")


def _reliability_figures(part: pl.DataFrame) -> Iterator[Figure]:
    caption = (
        "On the dashed line, confidence equals the share of images that show the concept; below it, the model is too "
        "confident. Bars: exact 95 % intervals."
    )
    bins = metric_rows(part, "reliability").drop_nulls("expected")
    for number, ((concept,), table) in enumerate(bins.group_by(["concept"], maintain_order=True)):
        rows = table.select("group", "n", *NUMBERS, confidence="expected").to_dicts()
        title = f"reliability, {'all concepts together' if concept is None else f'“{concept}”'}"
        chart = chart_parts.reliability_curve(rows)
        yield Figure(f"reliability-{number}", title, caption, chart, "calibration")


def _scatter_figures(part: pl.DataFrame) -> Iterator[Figure]:
    here, keys = str(part["dataset"][0]), ["concept", "group", "against"]
    caption = (
        "Published gaps. Green: both wider than five points, same direction; red: opposite directions; yellow: all "
        "others."
    )
    gaps, colours = metric_rows(part, "ap_gap").select(*keys, here="value"), metric_rows(part, "agreement")
    for number, ((there,), table) in enumerate(colours.group_by(["subset"], maintain_order=True), 1):
        others = metric_rows(part, "ap_gap_elsewhere").filter(subset=there).select(*keys, there="value")
        both = table.join(gaps, on=keys).join(others, on=keys).select("concept", "here", "there", "value")
        dots = [
            {"concept": concept, "here": _points(own), "there": _points(other), "colour": COLOURS[value]}
            for concept, own, other, value in both.iter_rows()
        ]
        green = sum(dot["colour"] == "green" for dot in dots)
        title = f"{green} of {len(dots)} concepts have a wide gap in the same direction on {here} and on {there}"
        chart = chart_parts.agreement_scatter(dots, here, str(there))
        yield Figure(f"agreement-{number}", title, caption, chart, "agreement", wide=True)
