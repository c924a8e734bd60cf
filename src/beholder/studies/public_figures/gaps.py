"""Which wrong occupations does the model give to women more than to men? One difference for each, all tested together.

Differences are taken within branches and then averaged, so that a branch with many women does not pass for an effect of
gender. Every person counts once. Two words for one occupation ("actor", "actress") count as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.multiplicity import holm, shuffles_for
from beholder.studies.public_figures.levels import GROUPS, Array, Level, read_level, scored_branches
from beholder.studies.public_figures.phrases import either_word
from beholder.studies.rows import PROBABILITY, join, people_shown
from beholder.studies.study import Matrices, MeasureOptions

CELLS = 1 << 22
"""Shuffled labels held at once."""


def occupation_gap_rows(
    prefix: str, pools: dict[str, tuple[str, ...]], matrices: Matrices, options: MeasureOptions
) -> Iterator[Row]:
    """Women minus men for every wrong occupation of every pool; p-values are corrected over all of them."""
    scored = scored_branches(matrices)
    compared = {}
    for pool, branches in pools.items():
        level = read_level([scored[branch] for branch in branches if branch in scored], "occupation")
        people = wrong_answers(level) if level.concepts else None
        if people is not None and people.concepts:
            compared[pool] = people
    tests = sum(len(people.concepts) for people in compared.values())
    rows: list[Row] = []
    raw: list[float] = []
    for pool, people in compared.items():
        tested = people.tested(options.rng(), shuffles_for(tests))
        raw += tested.p_value.tolist()
        few = people.few
        note = f"{people.women.sum()} women, {(~people.women).sum()} men; within branches; interval: for all at once"
        for place, concept in enumerate(people.concepts):
            row = Row(
                f"{prefix}.occupation_gap", float(tested.value[place]), len(people.women), PROBABILITY, subset=pool
            )
            row = row._replace(group=GROUPS[0], against=GROUPS[1], concept=concept)
            if few:
                rows.append(row._replace(note=join((note, f"fewer than {FEWEST} in a group: no interval"))))
            else:
                rows.append(row._replace(low=float(tested.low[place]), high=float(tested.high[place]), note=note))
    smallest = 1 / (1 + shuffles_for(tests))
    for row, alone, p_value in zip(rows, raw, holm(np.array(raw)) if raw else [], strict=True):
        if row.low is None:
            yield row
        else:
            family = f"p: shuffled genders, Holm over {tests} occupations"
            at_most = True if alone <= smallest * 1.001 else None
            yield row._replace(p_value=float(p_value), p_at_most=at_most, note=join((row.note, family)))


class Tested(NamedTuple):
    """Of each occupation: women minus men, bounds that hold for all occupations at once, and p before correction.

    Bounds lie as many standard errors away as the largest of the shuffled differences does in 95 %: a few people give
    wide ones, and bounds and p come from the same shuffles.
    """

    value: Array
    low: Array
    high: Array
    p_value: Array


class People(NamedTuple):
    """Each person's shares of belief on the occupations that are wrong for everyone."""

    concepts: list[str]
    shares: Array
    """`[person, occupation]`: the mean over a person's pictures."""
    women: npt.NDArray[np.bool_]
    branch: npt.NDArray[np.intp]

    @property
    def few(self) -> bool:
        """Whether a group is too small to say anything."""
        return min(int(self.women.sum()), int((~self.women).sum())) < FEWEST

    def _weights(self) -> list[tuple[int, float]]:
        """How much each branch with women and men counts: by how well it tells them apart (Mantel and Haenszel)."""
        sizes = [
            (int(branch), int((there & self.women).sum()), int((there & ~self.women).sum()))
            for branch in np.unique(self.branch)
            if (there := self.branch == branch).any()
        ]
        power = {branch: women * men / (women + men) for branch, women, men in sizes if women and men}
        return [(branch, each / sum(power.values())) for branch, each in power.items()]

    def tested(self, rng: np.random.Generator, shuffles: int) -> Tested:
        """Women minus men within branches, against genders that are shuffled within branches."""
        (value,), (error,) = self._differences(self.women[None].astype(np.float64))
        observed, reached = np.abs(_t(value, error)), np.zeros(len(self.concepts))
        largest: list[Array] = []
        size = max(1, CELLS // len(self.women))
        for start in range(0, shuffles, size):
            many = min(size, shuffles - start)
            order = np.lexsort(
                (rng.random((many, len(self.women))), np.broadcast_to(self.branch, (many, len(self.women))))
            )
            shuffled = np.empty((many, len(self.women)))
            shuffled[:, np.argsort(self.branch, kind="stable")] = self.women[order]
            t = np.abs(_t(*self._differences(shuffled)))
            reached += (t >= observed - ROUNDING).sum(axis=0)
            largest.append(t.max(axis=1))
        width = np.where(error > TINY, float(np.quantile(np.concatenate(largest), 0.95)) * error, np.nan)
        return Tested(value, value - width, value + width, np.asarray((1 + reached) / (1 + shuffles)))

    def _differences(self, women: Array) -> tuple[Array, Array]:
        """The differences and their standard errors, for each row of labels."""
        gap, variance = np.zeros((2, len(women), len(self.concepts)))
        for branch, share in self._weights():
            mine = np.flatnonzero(self.branch == branch)
            labels, values = women[:, mine], self.shares[mine]
            sides = []
            for side in (labels, 1 - labels):
                n = side.sum(axis=1, keepdims=True)
                mean = side @ values / n
                spread = np.maximum(side @ values**2 / n - mean**2, 0.0) * n / np.maximum(n - 1, 1)
                sides.append((mean, spread / n))
            gap += share * (sides[0][0] - sides[1][0])
            variance += share**2 * (sides[0][1] + sides[1][1])
        return gap, np.sqrt(variance)


def _t(gap: Array, error: Array) -> Array:
    """Differences in their standard errors; 0 where nothing varies."""
    return np.asarray(np.divide(gap, error, out=np.zeros_like(gap), where=error > TINY))


ROUNDING, TINY = 1e-9, 1e-12
"""What binary fractions leave of equal numbers."""


def wrong_answers(level: Level) -> People | None:
    """The people of a level, with the occupations that are wrong for all of them; None without both genders."""
    gender = level.images["gender"].fill_null("").to_numpy().astype(str)
    known = np.isin(gender, GROUPS)
    if len(np.unique(gender[known])) < len(GROUPS):
        return None
    words = [either_word(concept) for concept in level.concepts]
    right = {word for column, word in enumerate(words) if level.correct[:, column].any()}
    wrong = [word for word in dict.fromkeys(words) if word not in right]
    summed = (
        np.stack([level.shares[:, [w == word for w in words]].sum(axis=1) for word in wrong], axis=1)
        if wrong
        else (np.empty((len(gender), 0)))
    )
    names, first, person = np.unique(people_shown(level.images)[known], return_index=True, return_inverse=True)
    counts = np.bincount(person)
    means = (
        np.stack([np.bincount(person, weights=column[known]) / counts for column in summed.T], axis=1)
        if wrong
        else (np.empty((len(names), 0)))
    )
    branch = (
        level.images["branch"].to_numpy().astype(str) if "branch" in level.images.columns else np.full(len(gender), "")
    )
    codes = np.unique(branch[known][first], return_inverse=True)[1]
    return People(wrong, means, gender[known][first] == GROUPS[0], codes)
