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
from beholder.metrics.simultaneous import simultaneous_band
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
        value, draws = people.gaps(), people.draws(options.rng(), options.draws)
        band = simultaneous_band(value, draws)
        p_values = people.p_values(options.rng(), shuffles_for(tests))
        raw += p_values.tolist()
        few = people.few
        note = f"{people.women.sum()} women, {(~people.women).sum()} men; within branches; interval: for all at once"
        for place, concept in enumerate(people.concepts):
            row = Row(f"{prefix}.occupation_gap", float(value[place]), len(people.women), PROBABILITY, subset=pool)
            row = row._replace(group=GROUPS[0], against=GROUPS[1], concept=concept)
            if few:
                rows.append(row._replace(note=join((note, f"fewer than {FEWEST} in a group: no interval"))))
            else:
                rows.append(row._replace(low=float(band.low[place]), high=float(band.high[place]), note=note))
    smallest = 1 / (1 + shuffles_for(tests))
    for row, alone, p_value in zip(rows, raw, holm(np.array(raw)) if raw else [], strict=True):
        if row.low is None:
            yield row
        else:
            family = f"p: shuffled genders, Holm over {tests} occupations"
            at_most = True if alone <= smallest * 1.001 else None
            yield row._replace(p_value=float(p_value), p_at_most=at_most, note=join((row.note, family)))


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

    def gaps(self) -> Array:
        """Women minus men, averaged over branches."""
        return np.asarray(self._gaps(np.ones((1, len(self.women))))[0])

    def draws(self, rng: np.random.Generator, draws: int) -> Array:
        """The same with other people of each branch and gender, `[draws, occupation]`."""
        weights = np.zeros((draws, len(self.women)))
        for mine in self._strata():
            weights[:, mine] = rng.multinomial(len(mine), np.full(len(mine), 1 / len(mine)), size=draws)
        return self._gaps(weights)

    def _strata(self) -> Iterator[npt.NDArray[np.intp]]:
        for branch in np.unique(self.branch):
            for sex in (True, False):
                mine = np.flatnonzero((self.branch == branch) & (self.women == sex))
                if len(mine):
                    yield mine

    def _gaps(self, weights: Array) -> Array:
        total = np.zeros((len(weights), len(self.concepts)))
        for branch, share in self._weights():
            women, men = (np.flatnonzero((self.branch == branch) & (self.women == sex)) for sex in (True, False))
            means = [weights[:, each] @ self.shares[each] / len(each) for each in (women, men)]
            total += share * (means[0] - means[1])
        return total

    def _weights(self) -> list[tuple[int, float]]:
        """How much each branch with women and men counts: by how well it tells them apart (Mantel and Haenszel)."""
        sizes = [
            (int(branch), int((there & self.women).sum()), int((there & ~self.women).sum()))
            for branch in np.unique(self.branch)
            if (there := self.branch == branch).any()
        ]
        power = {branch: women * men / (women + men) for branch, women, men in sizes if women and men}
        return [(branch, each / sum(power.values())) for branch, each in power.items()]

    def p_values(self, rng: np.random.Generator, shuffles: int) -> Array:
        """How often genders that are shuffled within branches give as large a difference, in its standard errors."""
        observed = np.abs(self._t(self.women[None].astype(np.float64)))
        reached, size = np.zeros(len(self.concepts)), max(1, CELLS // len(self.women))
        for start in range(0, shuffles, size):
            many = min(size, shuffles - start)
            order = np.lexsort(
                (rng.random((many, len(self.women))), np.broadcast_to(self.branch, (many, len(self.women))))
            )
            shuffled = np.empty((many, len(self.women)))
            shuffled[:, np.argsort(self.branch, kind="stable")] = self.women[order]
            reached += (np.abs(self._t(shuffled)) >= observed - ROUNDING).sum(axis=0)
        return np.asarray((1 + reached) / (1 + shuffles))

    def _t(self, women: Array) -> Array:
        """The difference over its standard error, for each row of labels; 0 where nothing varies."""
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
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(variance > TINY, gap / np.sqrt(variance), 0.0))


ROUNDING, TINY = 1e-9, 1e-24
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
