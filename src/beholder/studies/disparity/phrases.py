"""Words for groups and pairs of groups, and for gaps in points."""

from __future__ import annotations

import math

from beholder.chapter.numbers import MINUS, Result, has_interval, points, points_range
from beholder.studies.disparity.queries import Pair

SQUARE_POINTS = 10_000
"""Squared points in a squared probability."""


def quoted(pair: Pair) -> tuple[str, str]:
    """The names of both groups, as the data has them; the rest needs no quotes.

    >>> quoted(Pair("man", "woman")), quoted(Pair("b", "the rest", rest=True))
    (('“man”', '“woman”'), ('“b”', 'the rest'))
    """
    return f"“{pair.first}”", pair.second if pair.rest else f"“{pair.second}”"


def less(pair: Pair) -> str:
    """A pair in a title or a table.

    >>> less(Pair("man", "woman"))
    '“man” less “woman”'
    """
    return " less ".join(quoted(pair))


def images_of(pair: Pair) -> tuple[str, str]:
    """The images of both groups.

    >>> images_of(Pair("b", "the rest", rest=True))
    ('images labelled “b”', 'the other images')
    """
    return f"images labelled “{pair.first}”", "the other images" if pair.rest else f"images labelled “{pair.second}”"


def better(row: Result, pair: Pair) -> str:
    """The images in which a concept is recognised better."""
    return images_of(pair)[0 if row["value"] > 0 else 1]


def interval(row: Result) -> str:
    """The bracket after a gap in points."""
    return f"95 % interval {points_range(row)}" if has_interval(row) else "no interval"


def mirrored(row: Result) -> Result:
    """A gap and its bounds seen from the other group.

    >>> mirrored({"value": -0.2, "low": -0.3, "high": -0.1})
    {'value': 0.2, 'low': 0.1, 'high': 0.3}
    """
    return {"value": -row["value"], "low": -row["high"], "high": -row["low"]}


def concepts(number: int) -> str:
    """How many concepts.

    >>> concepts(1), concepts(4)
    ('1 concept', '4 concepts')
    """
    return f"{number} concept{'' if number == 1 else 's'}"


def root(squared: float) -> float:
    """The root of a squared error; 0 for one below 0."""
    return math.sqrt(max(squared, 0.0))


def squared_gap(row: Result) -> str:
    """The width of a gap of squared errors, in squared points, with its bounds for all concepts at once.

    >>> squared_gap({"value": -0.02, "all_low": -0.035, "all_high": -0.001})
    'gap of the squares 200 square points, 10 to 350 for all concepts at once'
    """
    bounds = row["all_low"], row["all_high"]
    value, *ends = (SQUARE_POINTS * number for number in (row["value"], *bounds) if number is not None)
    ends = sorted(-end for end in ends) if value < 0 else ends
    across = f", {ends[0]:.0f} to {ends[1]:.0f} for all concepts at once".replace("-", MINUS) if ends else ""
    return f"gap of the squares {abs(value):.0f} square points{across}"


def root_range(row: Result) -> str:
    """The interval of a squared error as roots, in points.

    >>> root_range({"low": -0.01, "high": 0.0025})
    '0.0–5.0'
    """
    return f"{points(root(row['low']))}–{points(root(row['high']))}"
