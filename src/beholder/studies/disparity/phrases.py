"""Words of disparity: whose pictures, which way a gap points."""

from __future__ import annotations

import math

from beholder.chapter.numbers import Result, has_interval
from beholder.studies.disparity import queries as reading
from beholder.studies.gras.phrases import MINUS, p_value, points, points_range, signed

__all__ = [
    "MINUS",
    "better",
    "interval",
    "less",
    "p_value",
    "pictures",
    "points",
    "points_range",
    "root",
    "root_range",
    "signed",
]


def pictures(group: str) -> str:
    """The pictures of a group, as the data names it.

    >>> pictures("man"), pictures("the rest")
    ('pictures labelled “man”', 'the other pictures')
    """
    return "the other pictures" if group == "the rest" else f"pictures labelled “{group}”"


def better(row: Result) -> str:
    """In whose pictures a concept is recognised better."""
    first, second = reading.sides(row["group"])
    return pictures(first if row["value"] > 0 else second)


def interval(row: Result) -> str:
    """The bracket after a gap in points."""
    return f"95 % interval {points_range(row)}" if has_interval(row) else "no interval"


def root(squared: float) -> float:
    """The root of a squared error; 0 for one that fell below 0."""
    return math.sqrt(max(squared, 0.0))


def root_range(row: Result) -> str:
    """The interval of a squared error as roots, in points.

    >>> root_range({"low": -0.01, "high": 0.0025})
    '0.0–5.0'
    """
    return f"{points(root(row['low']))}–{points(root(row['high']))}"


def less(pair: str) -> str:
    """A pair in a title.

    >>> less("man less woman")
    '“man” less “woman”'
    """
    return " less ".join(f"“{side}”" for side in reading.sides(pair))
