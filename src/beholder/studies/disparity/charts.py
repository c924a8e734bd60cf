"""Disparity's figures: the widest gaps, what the mean hides, reliability, agreement of data sets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from beholder.chapter.figure import Figure, sentence
from beholder.chapter.numbers import Result, excludes, percent
from beholder.studies.disparity import chart_parts as marks
from beholder.studies.disparity import phrases as said
from beholder.studies.disparity import queries as reading

BARS = 12
"""Gaps drawn in either direction."""
STACK = 10
"""Dots that the strip has room for over each other, at least."""
CONFIDENCE = re.compile(r"mean confidence ([\d.]+)")
WORDS_SAID = " Colour: whether the gap points where word vectors put the concept."
NUMBERS = ("value", "low", "high")


def disparity_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model and pair by pair."""
    several = part["model"].n_unique() > 1
    for number, (model, mine) in enumerate(reading.models(part), 1):
        for figure in _figures(mine):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)


def _figures(mine: pl.DataFrame) -> Iterator[Figure]:
    for place, pair in enumerate(reading.pairs(mine)):
        slug = "" if len(reading.pairs(mine)) == 1 else f"-{place + 1}"
        yield from _bar_figure(mine, pair, slug)
        yield from _strip_figure(mine, pair, slug)
    yield from _reliability_figures(mine)
    yield from _scatter_figures(mine)


def _axis(pair: str) -> str:
    first, second = reading.sides(pair)
    return f"points: {first} less {second}"


def _bar_figure(mine: pl.DataFrame, pair: str, slug: str) -> Iterator[Figure]:
    table = reading.tested(mine, pair)
    rows = [_mark(row) for row in reading.ends(table, BARS)]
    if rows:
        coloured = any(row["words"] != reading.UNKNOWN for row in rows)
        yield Figure(
            f"gaps{slug}",
            gap_title(table, pair),
            "Bars: gap at one prevalence for both, with 95 % intervals; pale: not shown after correction. Ticks: the "
            f"published gap.{WORDS_SAID if coloured else ''}",
            marks.gap_bars(rows, _axis(pair)),
            "gaps",
        )


def _mark(row: Result) -> Result:
    kept = {key: row[key] for key in ("concept", "words", "p_value", "n")}
    numbers = {key: _points(row[key]) for key in (*NUMBERS, "raw")}
    return {**kept, **numbers, "shown": int(row["shown"])}


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def gap_title(table: pl.DataFrame, pair: str) -> str:
    """The widest gaps of those that are shown, in either direction."""
    shown = table.filter("shown")
    if not shown.height:
        return f"{said.less(pair)}: no gap is shown"
    said_of = [
        f"“{side['concept'][0]}” {said.signed(side['value'][0])}"
        for side in (shown.filter(pl.col("value") > 0), shown.filter(pl.col("value") < 0))
        if side.height
    ]
    return f"{said.less(pair)}: widest gaps {' and '.join(said_of)} points"


def _strip_figure(mine: pl.DataFrame, pair: str, slug: str) -> Iterator[Figure]:
    mean, table = reading.one(mine, "mean_ap_gap", group=pair), reading.tested(mine, pair)
    if mean is None or table.height < 2:
        return
    first, second = (reading.one(mine, "mean_average_precision", group=side) for side in reading.sides(pair))
    levels = f"{percent(first['value'])} and {percent(second['value'])}" if first and second else "see the table"
    rows = stacked([{**_mark(row), "concept": row["concept"]} for row in table.sort("value").to_dicts()], STACK)
    reach = f"{said.signed(table['value'].min())} to {said.signed(table['value'].max())}"  # type: ignore[arg-type]
    apart = "differs" if excludes(mean, 0.0) else "shows no difference"
    yield Figure(
        f"spread{slug}",
        f"the mean {apart} ({levels}); gaps of single concepts reach from {reach} points",
        f"Every dot a concept, pale where its gap is not shown. Diamond: the difference of the mean average precisions "
        f"over {mean['n']} concepts, with its 95 % interval.",
        marks.gap_strip(rows, {key: _points(mean[key]) for key in NUMBERS}, _axis(pair)),
        "gaps",
    )


def stacked(rows: list[Result], height: int) -> list[Result]:
    """Dots that would overlap stand over each other: `place` from 0 up to 1."""
    values = [row["value"] for row in rows]
    width = max((max(values) - min(values)) / 40, 1e-9)
    seen: dict[int, int] = {}
    placed = []
    for row in rows:
        bin_ = int((row["value"] - min(values)) / width)
        level = seen[bin_] = seen.get(bin_, -1) + 1
        placed.append((row, level))
    top = max(height, max(level for _, level in placed) + 1)
    return [{**row, "place": round(level / top, 3)} for row, level in placed]


def _reliability_figures(mine: pl.DataFrame) -> Iterator[Figure]:
    table, groups = reading.rows(mine, "reliability"), reading.groups(mine)
    for number, (concept, found) in enumerate(table.group_by(["concept"], maintain_order=True)):
        rows = [
            {**{key: row[key] for key in ("group", "n", *NUMBERS)}, "confidence": float(match[1])}
            for row in found.to_dicts()
            if (match := CONFIDENCE.search(row["note"] or ""))
        ]
        name = "all concepts together" if concept[0] is None else f"“{concept[0]}”"
        yield Figure(
            f"reliability-{number}",
            f"reliability, {name}",
            "On the line a confidence is as often right as it says; below it the model is too sure. Bars: exact 95 % "
            "intervals.",
            marks.reliability_curve(rows, groups),
            "calibration",
        )


def _scatter_figures(mine: pl.DataFrame) -> Iterator[Figure]:
    colours = reading.rows(mine, "agreement")
    for number, ((there,), found) in enumerate(colours.group_by(["subset"], maintain_order=True)):
        here = str(mine["dataset"][0])
        keys = ["concept", "group"]
        gaps = reading.rows(mine, "ap_gap").select(*keys, here="value")
        others = reading.rows(mine, "ap_gap_elsewhere").filter(pl.col("subset") == there)
        table = found.join(gaps, on=keys).join(others.select(*keys, there="value"), on=keys)
        rows = [
            {
                "concept": row["concept"],
                "here": _points(row["here"]),
                "there": _points(row["there"]),
                "colour": str(row["note"]).partition(":")[0],
            }
            for row in table.to_dicts()
        ]
        green = sum(row["colour"] == "green" for row in rows)
        yield Figure(
            f"agreement-{number + 1}",
            f"{green} of {len(rows)} concepts have a wide gap that points one way on {here} and on {there}",
            "Published gaps. Green: both wider than five points, one way; red: opposite ways; yellow: the rest.",
            marks.agreement_scatter(rows, here, str(there)),
            "agreement",
            wide=True,
        )
