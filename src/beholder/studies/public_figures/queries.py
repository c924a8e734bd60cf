"""What the sentences, tables and charts about public figures ask of the results."""

from __future__ import annotations

import math

import polars as pl

from beholder.chapter.numbers import Result, chance
from beholder.chapter.queries import deciding_rows, metric_rows
from beholder.comparison import DIFFERENCE
from beholder.core.results import WITHIN

PUBLISHED_ON = "apa"
"""The data set of the published figures."""


def found(row: Result) -> bool:
    """Whether the comparison found a difference."""
    return row.get("verdict") == DIFFERENCE


def within_branches(row: Result) -> bool:
    """Whether a number was taken within branches, or within one, beside the published one."""
    return str(row.get("variant") or "").startswith(WITHIN)


def claimed_ratios(part: pl.DataFrame) -> list[Result]:
    """The ratio of each pool of which something is claimed, within branches where there are several.

    Where the right word depends on the gender, it is that of either word.
    """
    decided = {row["subset"]: row for row in deciding_rows(part, "bias_ratio").to_dicts()}
    decided |= {row["subset"]: row for row in deciding_rows(part, "either_word_ratio").to_dicts()}
    return [decided[pool] for pool in dict.fromkeys(metric_rows(part, "bias_ratio")["subset"])]


def found_ratios(part: pl.DataFrame) -> list[Result]:
    """The claimed ratios that differ from 1."""
    return [row for row in claimed_ratios(part) if found(row)]


def reference(row: Result) -> float | None:
    """What a model would get that knows no more than the labels: the row's landmark, else chance."""
    landmark = row.get("landmark")
    return landmark if landmark is not None else chance(row)


def times_landmark(value: float, landmark: float | None) -> float:
    """How many times the landmark; a share of 0 is 1 time a landmark of 0.

    >>> times_landmark(0.3, 0.1), times_landmark(0.0, 0.0)
    (2.9999999999999996, 1.0)
    """
    if landmark:
        return value / landmark
    return math.inf if value else 1.0
