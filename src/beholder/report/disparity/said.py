"""Words of disparity: whose pictures, which way a gap points."""

from __future__ import annotations

from beholder.report.disparity import reading
from beholder.report.gras.said import MINUS, p_value, points, points_range, signed
from beholder.report.numbers import Result, has_interval

__all__ = ["MINUS", "better", "interval", "less", "p_value", "pictures", "points", "points_range", "signed"]


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


def less(pair: str) -> str:
    """A pair in a title.

    >>> less("man less woman")
    '“man” less “woman”'
    """
    return " less ".join(f"“{side}”" for side in reading.sides(pair))
