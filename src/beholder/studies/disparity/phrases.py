"""Words for groups and pairs of groups, and for gaps in points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from beholder.chapter.finding import turned
from beholder.chapter.numbers import MINUS, Result, has_interval, points, points_range, row_p_value
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


def worse(row: Result, pair: Pair) -> str:
    """The images in which a concept is recognised worse."""
    return images_of(pair)[1 if row["value"] > 0 else 0]


def better(row: Result, pair: Pair) -> str:
    """The images in which a concept is recognised better."""
    return images_of(pair)[0 if row["value"] > 0 else 1]


def decided(row: Result) -> str:
    """The bracket after a gap in points, whichever way it points: the bounds that decided, and p."""
    bounds = points_range(row if row["value"] >= 0 else turned(row))
    return f"({f'{bounds}; ' if bounds else ''}p {row_p_value(row)})"


def largest_missed(rows: Sequence[Result]) -> tuple[float, Result] | None:
    """How large a gap could still be, by the bounds that decided, and where; None without bounds."""
    reach = [(max(abs(row["low"]), abs(row["high"])), place) for place, row in enumerate(rows) if has_interval(row)]
    return (max(reach)[0], rows[max(reach)[1]]) if reach else None


def concepts(number: int) -> str:
    """How many concepts.

    >>> concepts(1), concepts(4)
    ('1 concept', '4 concepts')
    """
    return f"{number} concept{'' if number == 1 else 's'}"


def found(number: int, tested: int) -> str:
    """How many gaps were found.

    >>> found(1, 14), found(0, 1)
    ('1 of 14 gaps was found', '0 of 1 gap were found')
    """
    return f"{number} of {tested} gap{'' if tested == 1 else 's'} {'was' if number == 1 else 'were'} found"


def root(squared: float) -> float:
    """The root of a squared error; 0 for one below 0."""
    return math.sqrt(max(squared, 0.0))


def squared_gap(row: Result) -> str:
    """The width of a gap of squared errors, in square points, with the bounds that decided.

    >>> squared_gap({"value": -0.02, "low": -0.035, "high": -0.001, "against": "a", "group": "b"})
    'gap of the squares 200 square points, 10 to 350'
    """
    row = row if row["value"] >= 0 else turned(row)
    value, *ends = (SQUARE_POINTS * row[name] for name in ("value", "low", "high") if row[name] is not None)
    across = f", {ends[0]:.0f} to {ends[1]:.0f}".replace("-", MINUS) if ends else ""
    return f"gap of the squares {value:.0f} square points{across}"


def root_range(row: Result) -> str:
    """The interval of a squared error as roots, in points.

    >>> root_range({"low": -0.01, "high": 0.0025})
    '0.0–5.0'
    """
    return f"{points(root(row['low']))}–{points(root(row['high']))}"
