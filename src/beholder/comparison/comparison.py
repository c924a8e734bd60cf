"""Comparison: one difference between groups of people, with everything a reader needs to judge it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from beholder.comparison.family import Judged, verdict_of
from beholder.comparison.groups import Strata
from beholder.core.results import Row


class Comparison(NamedTuple):
    """What a study states and everything else reads."""

    group: str | None
    against: str | None
    value: float  # the first group less, or over, the second
    low: float  # bounds that hold for the whole family: they decide
    high: float
    p_value: float
    at_most: bool
    people: int  # of the smallest group
    verdict: str
    own: tuple[float, float] = (np.nan, np.nan)  # the interval of this number by itself; it decides nothing
    sides: tuple[float, float] | None = None  # the value of each group, within the strata
    method: str = ""

    def swapped(self) -> Comparison:
        """The same seen from the other group: second less first."""
        sides = self.sides and (self.sides[1], self.sides[0])
        swapped = self._replace(group=self.against, against=self.group, value=-self.value, sides=sides)
        return swapped._replace(low=-self.high, high=-self.low, own=(-self.own[1], -self.own[0]))

    def upward(self) -> Comparison:
        """The same with the group first that is higher."""
        return self.swapped() if self.value < 0 else self

    def through(self, scale: Callable[[float], float]) -> Comparison:
        """The same on another scale, which must rise: value and bounds as logarithms, or beside a landmark."""
        return self._replace(value=scale(self.value), low=scale(self.low), high=scale(self.high))

    def on(self, row: Row, *, least: float = -np.inf, most: float = np.inf) -> Row:
        """A row of results with this comparison's numbers; bounds do not leave the possible range."""
        low, high = (float(np.clip(bound, least, most)) for bound in (self.low, self.high))
        at_most = True if self.at_most else None
        named = self._named(row)._replace(value=self.value, low=low, high=high, verdict=self.verdict)
        return named._replace(p_value=self.p_value, p_at_most=at_most)

    def _named(self, row: Row) -> Row:
        group = row.group if self.group is None else self.group
        return row._replace(group=group, against=row.against if self.against is None else self.against)

    def rows(
        self, row: Row, strata: Strata | None = None, *, least: float = -np.inf, most: float = np.inf
    ) -> list[Row]:
        """The published row with the verdict; and where strata count, the row within them, which decided, after it.

        The published row keeps its own value, and its interval if it has one: both describe, the other row decides.
        """
        named = self._named(row)
        note = "; ".join(each for each in (row.note, strata.note if strata else None) if each) or None
        if strata is None or strata.variant is None:
            return [self.on(named._replace(note=note), least=least, most=most)._replace(value=row.value)]
        plain = named._replace(verdict=self.verdict, note=note)
        return [plain, self.on(named, least=least, most=most)._replace(variant=strata.variant)]


def comparison_at(
    judged: Judged, place: tuple[int, ...] | int, group: str | None = None, against: str | None = None
) -> Comparison:
    """One number of a judged part."""
    value, low, high, p_value = (float(part[place]) for part in (judged.value, judged.low, judged.high, judged.p_value))
    people = int(judged.people[place])
    verdict = verdict_of(p_value, people, judged.arrangements)
    own = float(judged.own[0][place]), float(judged.own[1][place])
    sides = judged.sides and (float(judged.sides[0][place]), float(judged.sides[1][place]))
    numbers = (value, low, high, p_value, bool(judged.at_most[place]), people)
    return Comparison(group, against, *numbers, verdict, own, sides, judged.method)
