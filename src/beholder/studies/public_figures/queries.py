"""What is shown: one rule for every sentence, table and chart about public figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from beholder.chapter.family_correction import ALPHA, log, surviving
from beholder.chapter.numbers import Result, chance, excludes, has_interval
from beholder.chapter.queries import metric_rows
from beholder.comparison.verdicts import NONE_FOUND, TOO_LITTLE

PUBLISHED_ON = "apa"
"""The data set of the published figures."""


def shown(row: Result, landmark: float | None = None) -> bool:
    """Whether the corrected p is at most 0.05 and the interval excludes the landmark; without one, the row's own."""
    landmark = row.get("landmark") if landmark is None else landmark
    p_value = row.get("p_value")
    return landmark is not None and p_value is not None and p_value <= ALPHA and excludes(row, landmark)


def claimed_ratios(part: pl.DataFrame) -> list[Result]:
    """The ratio of each pool of which something is claimed: that of either word, where the word depends on gender."""
    either = {row["subset"]: row for row in metric_rows(part, "either_word_ratio").to_dicts()}
    return [either.get(row["subset"], row) for row in metric_rows(part, "bias_ratio").to_dicts()]


def shown_ratios(rows: Sequence[Result]) -> list[Result]:
    """The ratios that differ from 1. Rows of old runs have no p: theirs follows from their intervals."""
    if all(row.get("p_value") is not None for row in rows):
        return [row for row in rows if shown(row, 1.0)]
    return surviving(rows, lambda row: 1.0, log)


def known_by_name(row: Result) -> bool:
    """Whether the right names are shown to get more than names shuffled among people with the same labels."""
    return shown(row) and row["value"] > row["landmark"]


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


def nothing_shown(rows: Sequence[Result]) -> str:
    """The verdict where nothing is shown: too little data if no row has an interval."""
    return NONE_FOUND if any(map(has_interval, rows)) else TOO_LITTLE
