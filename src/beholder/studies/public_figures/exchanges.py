"""Right answers against exchanged ones: the published row, and the row that decides, all judged as one family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from beholder.comparison import Exchanged, comparison_at, judge
from beholder.core.results import WITHIN, Row


class Tested(NamedTuple):
    """A mean belief in right answers, and what exchanged answers give; None where there is no contrast: no claim."""

    row: Row
    made: Exchanged | None = None
    within: Sequence[str] = ()
    """The labels of the people among whom answers are exchanged."""


def tested_rows(family: Sequence[Tested]) -> Iterator[Row]:
    """The published rows with landmark and verdict; after each, the one with value, bounds and p that decided."""
    judged = iter(judge([each.made.part for each in family if each.made is not None]))
    for row, made, within in family:
        if made is None:
            yield row
            continue
        excess = comparison_at(next(judged), 0)
        row = row._replace(landmark=made.expected, verdict=excess.verdict)
        yield row
        whole = excess._replace(value=made.value, low=made.expected + excess.low, high=made.expected + excess.high)
        decided = whole.on(row, least=0.0, most=1.0)
        yield decided._replace(variant=f"{WITHIN}{', '.join(within)}")
