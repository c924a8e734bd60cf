"""Swarm: the published models' numbers at one place as dots around equal, and the user's own above them."""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import Result, number
from beholder.report.scorecard import WHOLES, Scale, in_words, interval_in_words

WIDTH, EDGE, RADIUS, ROW = 1000.0, 20.0, 7.0, 38.0
NEAR = 1.05  # a ratio within 5 % of equal is called about equal
RATIOS = {0.25: "a quarter", 0.5: "half", 0.75: "three quarters", 1.0: "equal", 4 / 3: "a third more", 2.0: "double"}


class Dot(NamedTuple):
    """A model: where it stands, and what it is called and says; with the ends of its interval if it is one's own."""

    x: float
    y: float
    said: str
    low: float | None = None
    high: float | None = None
    hollow: bool = False


class Swarm(NamedTuple):
    """A chart of one question, and what it shows in a sentence."""

    slug: str
    title: str
    published: list[Dot]
    own: list[Dot]
    ticks: list[tuple[float, str]]
    landmark: float | None
    ends: tuple[str, str]
    height: float
    said: str
    yours: str
    share: float  # of the published models, how many lie on the more common side of equal


def _at(axis: Scale, value: float) -> float:
    """A place, within the chart."""
    return round(EDGE + (WIDTH - 2 * EDGE) * axis.part(value), 1)


def swarm(slug: str, title: str, numbers: pl.DataFrame, ends: tuple[str, str]) -> Swarm | None:
    """The chart of a place; None where fewer than three published models have a number."""
    rows = numbers.drop_nulls("value").sort("date", descending=True, maintain_order=True)
    printed = rows.filter(pl.col("run") == "").unique("model", maintain_order=True).sort("value").to_dicts()
    own = rows.filter(pl.col("run") != "").unique("model", maintain_order=True).to_dicts()
    if len(printed) < 3:
        return None
    unit, landmark = str(numbers["unit"][0]), next((row["landmark"] for row in printed), None)
    axis = _axis([*printed, *own], unit, landmark)
    top = ROW * len(own) + 24
    places = list(_apart([_at(axis, row["value"]) for row in printed]))
    reach = max((abs(offset) for _, offset in places), default=0.0) + RADIUS
    dots = [
        Dot(x, top + reach + offset, f"{row['model']}: {in_words(row['value'], unit, landmark)}")
        for (x, offset), row in zip(places, printed, strict=True)
    ]
    mine = [_own(row, axis, ROW * (place + 1)) for place, row in enumerate(own)]
    told = _said(printed, own, landmark, ends)
    height = top + 2 * reach + 34
    at = None if landmark is None else _at(axis, landmark)
    return Swarm(slug, title, dots, mine, list(_ticks(axis)), at, ends, height, *told)


def _axis(rows: Sequence[Result], unit: str, landmark: float | None) -> Scale:
    values = [row[end] for row in rows for end in ("value", "low", "high") if row[end] is not None]
    values += [] if landmark is None else [landmark]
    low, high = min(values), max(values)
    if unit == "ratio" and low > 0:
        return Scale(unit, landmark, max(low * 0.95, 1e-3), max(high, 4 / 3), True)
    whole = WHOLES.get(unit)
    if whole is not None and landmark is None and low >= 0 and high <= whole:
        return Scale(unit, landmark, 0.0, whole, False)
    return Scale(unit, landmark, low, high if high > low else low + 1.0, False)


def _apart(places: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Each place with an offset, so that no two dots cover each other."""
    taken: list[tuple[float, float]] = []
    for x in places:
        steps = (sign * step * RADIUS for step in range(60) for sign in (1, -1))
        near = [each for each in taken if abs(each[0] - x) < 2 * RADIUS]
        offset = next(y for y in steps if all(math.hypot(x - a, y - b) >= 2 * RADIUS - 0.1 for a, b in near))
        taken.append((x, offset))
        yield x, offset


def _own(row: Result, axis: Scale, y: float) -> Dot:
    bounds = [None if row[end] is None else _at(axis, row[end]) for end in ("low", "high")]
    text = ", ".join(filter(None, (f"{row['model']} (yours): {interval(row)}", row["reason"])))
    return Dot(_at(axis, row["value"]), y, text, bounds[0], bounds[1], bool(row["reason"]))


def interval(row: Result) -> str:
    """A number in words, with its bounds where it has any."""
    value = in_words(row["value"], row["unit"], row["landmark"])
    if row["low"] is None or row["high"] is None:
        return value
    return f"{value} ({interval_in_words(row)})"


def _ticks(axis: Scale) -> Iterator[tuple[float, str]]:
    if axis.logarithmic:
        yield from ((_at(axis, at), name) for at, name in RATIOS.items() if axis.low <= at <= axis.high)
        return
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = axis.low + part * (axis.high - axis.low)
        yield _at(axis, value), axis.label(value)


def _said(
    printed: Sequence[Result], own: Sequence[Result], landmark: float | None, ends: tuple[str, str]
) -> tuple[str, str, float]:
    """What the published models show, where one's own stand among them, and how one-sided the published ones are."""
    values, middle = [row["value"] for row in printed], median(row["value"] for row in printed)
    about = in_words(middle, printed[0]["unit"], landmark)
    yours = []
    for row in own:
        lower = sum(value > row["value"] for value in values)
        where = f"lower than {lower} of the {len(values)}" if 2 * lower >= len(values) else ""
        where = where or f"higher than {sum(value < row['value'] for value in values)} of the {len(values)}"
        remark = f"; {row['reason']}, so not ranked" if row["reason"] else ""
        yours.append(f"Yours, {row['model']}: {interval(row)}, {where}{remark}.")
    text = " ".join(yours)
    if landmark is None or not all(ends):
        return f"The middle one of {number(len(values), 'published model')}: {about}.", text, 0.0
    off = 0.0 if landmark == 0 else math.log(NEAR)
    distances = [value if landmark == 0 else math.log(max(value, 1e-3)) for value in values]
    sides = [sum(each < -off for each in distances), sum(each > off for each in distances)]
    most = int(sides[1] > sides[0])
    said = f"In {sides[most]} of {number(len(values), 'published model')} {ends[most]}; the middle one: {about}."
    return said, text, sides[most] / len(values)
