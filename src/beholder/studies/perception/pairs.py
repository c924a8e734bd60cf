"""Every two groups of an attribute, compared within the other attributes' groups by the engine that judges all."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from beholder.comparison import TOO_LITTLE, Groups, Part, Strata, compare_groups, comparison_at
from beholder.comparison.family import Judged as Verdicts
from beholder.comparison.family import not_judgeable
from beholder.comparison.groups import natural
from beholder.core.results import Row
from beholder.studies.perception.scores import Array, Judged
from beholder.studies.study import MeasureOptions

FIRST = ("asian", "white", "male", "man")
"""Who comes first in a pair, as in the study's table: Asian before White before Black, Male before Female."""


def pairs(names: list[str]) -> list[tuple[str, str]]:
    """Every two groups, in the study's order."""

    def rank(name: str) -> tuple[int, list[tuple[float, str]]]:
        return (FIRST.index(name.lower()) if name.lower() in FIRST else len(FIRST)), natural(name)

    return list(combinations(sorted(names, key=rank), 2))


class Compared(NamedTuple):
    """Pairs of groups in several columns: a part of a family."""

    pairs: list[tuple[str, str]]
    """Of the groups that are large enough; rows of the part."""
    strata: Strata
    part: Part

    def rows(
        self, verdicts: Verdicts, row: Row, column: int, *, landmark: float = 0.0, reach: float = np.inf
    ) -> list[Row]:
        """The published row of a pair with its verdict, and the one within strata, which decided.

        `landmark` is the value without any effect, `reach` the largest that a difference can be.
        """
        pair = str(row.group), str(row.against)
        if pair not in self.pairs:
            return [row._replace(verdict=TOO_LITTLE)]
        found = comparison_at(verdicts, (self.pairs.index(pair), column))
        return found.through(lambda end: end + landmark).rows(row, self.strata, least=-reach, most=reach)


def compare_pairs(
    judged: Judged, values: Array, groups: Groups, rng: np.random.Generator, options: MeasureOptions
) -> Compared:
    """Every two groups of at least five people in every column of `values[n_images, n_columns]`."""
    people, strata = judged.people, judged.strata(groups)
    large = groups.large(people)
    compared = pairs(large.names)
    if not compared:
        return Compared([], strata, not_judgeable(np.zeros((0, values.shape[1]), dtype=int)))
    weights = np.zeros((len(compared), len(large.names)))
    for row, both in zip(weights, compared, strict=True):
        row[[large.names.index(name) for name in both]] = 1.0, -1.0
    part = compare_groups(values, large, people, rng, strata=strata, contrasts=weights, shuffles=options.shuffles)
    return Compared(compared, strata, part)
