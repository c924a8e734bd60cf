"""Gaps between groups: every trait by every attribute, within the other attributes and the image source, as one family.

The published number is the widest gap of plain means. What decides is the same pair within strata. Other pairs, and
pairs within a single stratum, are in the family too: a difference that the widest pair does not tell is found there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison import (
    Comparison,
    Groups,
    Part,
    Strata,
    compare_groups,
    comparison_at,
    each_stratum,
    judge,
    verdict_of,
)
from beholder.comparison.family import Judged, nothing_told
from beholder.comparison.groups import REST
from beholder.core.results import WITHIN
from beholder.studies.gras.groups import NOTHING, Answers, Array, Compared, Grouped

MANY = 2
"""With more groups than these, each is compared with all others within a single stratum."""


BOUNDS = (0.0, 1.0)


class Other(NamedTuple):
    """A difference that the widest pair of a trait does not tell."""

    comparison: Comparison
    variant: str | None
    n: int


@dataclass(frozen=True)
class Gaps:
    """The groups of one attribute in the mean over all wordings of every trait."""

    answers: Answers
    """With the wordings averaged."""
    averaged: Compared
    by_valence: Compared | None
    """The same over all traits of each of the `valences`."""
    groups: Groups
    """Those with at least five people; all, where only one has them."""
    strata: Strata
    valences: list[str]
    parts: tuple[Part, ...]
    """All people, and then every single stratum."""
    inner: tuple[str, ...]
    """The names of the single strata."""
    judged: tuple[Judged, ...] = ()

    @property
    def n(self) -> int:
        """Images in these groups."""
        return int((self.groups.codes >= 0).sum())

    @cached_property
    def means(self) -> Array:
        """Plain means, `[n_groups, n_traits]`: every image counts, as published."""
        return self.averaged.moments.mean[[self.averaged.groups.index(name) for name in self.groups.names]]

    @cached_property
    def widest(self) -> Array:
        """The widest gap of plain means, of every trait."""
        gap = self.means.max(axis=0) - self.means.min(axis=0)
        return np.asarray(np.where(gap < NOTHING, 0.0, gap))

    def ends(self, trait: int) -> tuple[int, int]:
        """The groups with the highest and the lowest plain mean."""
        means = self.means[:, trait]
        return int(means.argmax()), int(means.argmin())

    def compared(self, trait: int) -> Comparison:
        """The widest pair of a trait, as the family judges it."""
        higher, lower = self.ends(trait)
        if higher == lower:  # all means are equal: any pair
            higher, lower = 0, 1
        pair = self.groups.pairs().index((min(higher, lower), max(higher, lower)))
        first, second = (self.groups.names[k] for k in sorted((higher, lower)))
        found = comparison_at(self.judged[0], (pair, trait), first, second)
        return found if higher < lower else found.turned()

    def other(self, trait: int) -> Other | None:
        """The clearest difference in another pair than the widest, or within a single stratum."""
        names, pairs = self.groups.names, self.groups.pairs()
        p_values = [each.p_value[:, trait] for each in self.judged]
        p_values[0] = np.where([set(pair) == set(self.ends(trait)) for pair in pairs], np.nan, p_values[0])
        clear = np.concatenate([np.abs(each.value[:, trait]) / each.margin[:, trait] for each in self.judged])
        clear = np.where(np.isnan(np.concatenate(p_values)), np.nan, clear)
        if np.isnan(clear).all():
            return None
        place = int(np.nanargmax(clear))
        if place < len(pairs):
            first, second = (names[k] for k in pairs[place])
            found = comparison_at(self.judged[0], (place, trait), first, second)
            return Other(found.upward(), self.strata.variant, self.n)
        inner = [(names[0], names[1])] if len(names) <= MANY else [(name, REST) for name in names]
        part, place = divmod(place - len(pairs), len(inner))
        found = comparison_at(self.judged[1 + part], (place, trait), *inner[place])
        assert self.strata.crossed is not None
        inside = self.strata.crossed.mask(self.inner[part]) & (self.groups.codes >= 0)
        return Other(found.upward(), f"{WITHIN}{self.inner[part]}", int(inside.sum()))

    @cached_property
    def found(self) -> npt.NDArray[np.bool_]:
        """The traits for which a difference was found."""
        return np.asarray(np.any([each.found.any(axis=0) for each in self.judged], axis=0))

    def least(self) -> tuple[float, bool, str]:
        """The least p-value of any trait and pair, whether it is a bound, and the verdict."""
        p_values, at_most, people = (
            np.concatenate([getattr(each, name).ravel() for each in self.judged])
            for name in ("p_value", "at_most", "people")
        )
        if np.isnan(p_values).all():
            return np.nan, False, verdict_of(None, 0)
        place = int(np.nanargmin(p_values))
        return float(p_values[place]), bool(at_most[place]), verdict_of(float(p_values[place]), int(people[place]))


def gaps_of(grouped: Grouped, mean: Answers, rng: np.random.Generator, shuffles: int) -> Gaps | None:
    """One attribute's gaps, not judged yet; None where no image was asked a trait in all wordings.

    Without shuffles there are values alone.
    """
    own = Grouped(mean, grouped.attribute, grouped.people)
    if not own.comparable:
        return None
    by_valence = own.answers.by_valence()
    large = own.groups.large(own.people)
    groups, enough = (large, True) if len(large.names) > 1 else (own.groups, False)
    strata = own.strata(groups)
    parts: tuple[Part, ...] = (nothing_told(np.zeros((len(groups.pairs()), own.flat.shape[1]), dtype=int)),)
    inner: tuple[str, ...] = ()
    if enough and shuffles:
        whole = compare_groups(own.flat, groups, own.people, rng, strata=strata, shuffles=shuffles, bounds=BOUNDS)
        single = each_stratum(
            own.flat, groups, own.people, strata, rng, shuffles=shuffles, bounds=BOUNDS, against_rest=True
        )
        parts, inner = (whole, *single.values()), tuple(single)
    valence = Grouped(by_valence, grouped.attribute, grouped.people)
    over = valence.compared() if valence.comparable else None
    return Gaps(own.answers, own.compared(), over, groups, strata, by_valence.traits, parts, inner)


def judged_gaps(gaps: Sequence[Gaps | None]) -> Iterator[Gaps | None]:
    """All attributes together: one family."""
    judged = iter(judge([part for each in gaps if each is not None for part in each.parts]))
    for each in gaps:
        yield None if each is None else replace(each, judged=tuple(next(judged) for _ in each.parts))
