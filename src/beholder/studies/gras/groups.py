"""GRAS's scores as an array of traits and wordings, its groups, and the published tests of them.

One matrix product gives every group's moments in every (trait, wording).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.groups import Groups, People, Strata, group_by, no_strata, people_of, strata_of
from beholder.comparison.means import ShuffledGroups, units_of
from beholder.core.errors import BadScores
from beholder.core.types import AnyArray, Array, Mask
from beholder.metrics.group_tests import (
    ALPHA,
    Columns,
    GroupTest,
    Moments,
    benjamini_hochberg,
    mean_margins,
    simes,
    welch,
)
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.prompts import VALENCES

QUESTIONS, STATEMENTS, DENIALS = "gras", "gras/statements", "gras/denials"
"""Names of the tasks: questions for models that answer in words, statements and denials for the others."""
ATTRIBUTES = ("gender", "race", "age", "skin_tone")
WITHIN = ("source", *ATTRIBUTES)  # labels that groups are compared within, apart from their own
NOTHING = 1e-13  # differences of probabilities below this are rounding errors
ROUNDED = 1e-6  # by how much a probability in single precision may leave 0 to 1


class Answers(NamedTuple):
    """P(Yes) of every image for every trait in every wording: `p_yes[n_images, n_traits, n_templates]`."""

    images: pl.DataFrame
    traits: list[str]
    valences: list[str]
    templates: list[str]
    p_yes: AnyArray

    def asked(self, rows: Mask) -> Answers:
        """The same, only with the traits and wordings that at least one of these images was asked about."""
        missing = np.isnan(self.p_yes)
        if rows.any() and not missing.any():
            return self
        there = ~missing[rows]
        traits, templates = (np.asarray(there.any(axis=axes)) for axes in ((0, 2), (0, 1)))
        if traits.all() and templates.all():
            return self
        axes = ((self.traits, traits), (self.valences, traits), (self.templates, templates))
        kept = [[name for name, there in zip(names, keep, strict=True) if there] for names, keep in axes]
        return Answers(self.images, kept[0], kept[1], kept[2], self.p_yes[:, traits][:, :, templates])

    def favour(self) -> Array:
        """For each image, mean P(Yes) over positive traits minus that over negative ones; NaN if either is missing."""
        positive = np.array([valence == "positive" for valence in self.valences], dtype=bool)
        if positive.all() or not positive.any():
            return np.full(len(self.p_yes), np.nan)
        by_trait = self.p_yes.mean(axis=2, dtype=np.float64)
        return np.asarray(by_trait[:, positive].mean(axis=1) - by_trait[:, ~positive].mean(axis=1))

    def averaged(self) -> Answers:
        """The same with the wordings of each trait averaged."""
        p_yes = self.p_yes.mean(axis=2, keepdims=True, dtype=np.float64)
        return self._replace(p_yes=p_yes, templates=["all"])

    def by_valence(self) -> Answers:
        """The same with all traits of a valence, in all their wordings, averaged: one column for each valence."""
        kinds = [kind for kind in VALENCES if kind in self.valences]
        by_trait = self.p_yes.mean(axis=2, dtype=np.float64)
        means = [by_trait[:, np.array(self.valences) == kind].mean(axis=1) for kind in kinds]
        p_yes = np.stack(means, axis=1)[:, :, None] if means else np.empty((len(self.p_yes), 0, 1))
        return Answers(self.images, kinds, kinds, ["all"], p_yes)


def read_answers(matrices: Mapping[str, ScoreMatrix], *, compat: bool = False) -> Answers:
    """P(Yes) from whatever the model gives, laid out by trait and wording."""
    matrix = matrices.get(QUESTIONS) or matrices[STATEMENTS]
    cells = _p_yes(matrices, compat=compat)
    asked = list(matrix.prompts.select("concept", "template").iter_rows())
    traits, templates = (list(dict.fromkeys(prompt[i] for prompt in asked)) for i in (0, 1))
    column_of = {prompt: column for column, prompt in enumerate(asked)}
    order = [column_of.get((trait, template), -1) for trait in traits for template in templates]
    if order != list(range(cells.shape[1])):  # most files come in this order already, and need no copy
        cells = np.where(np.array(order) < 0, np.nan, cells[:, order])
    p_yes = cells.reshape(len(cells), len(traits), len(templates))
    valence = dict(matrix.prompts.select("concept", "valence").iter_rows())
    whole = Answers(matrix.images, traits, [valence[trait] for trait in traits], templates, p_yes)
    return whole.asked(np.ones(len(p_yes), dtype=bool))


def _p_yes(matrices: Mapping[str, ScoreMatrix], *, compat: bool) -> AnyArray:
    """P(Yes) of every cell: imported, or of all tokens that say yes; with `compat` of `Yes` alone, as released."""
    if QUESTIONS not in matrices:  # the share of belief on a statement against its denial: a documented variant
        stated, denied = matrices[STATEMENTS].logits, matrices[DENIALS].logits
        return np.asarray(1 / (1 + np.exp(denied - stated)))
    single = matrices[QUESTIONS].single_token() if compat else None
    if single is not None:
        return single
    cells = matrices[QUESTIONS].quantity("probability").cells
    known = not np.isnan(cells).all()
    low, high = (float(np.nanmin(cells)), float(np.nanmax(cells))) if known else (0.0, 1.0)
    if low < -ROUNDED or high > 1 + ROUNDED:  # logits or percentages would give gaps in an unknown unit
        raise BadScores(
            f"GRAS reads a score as P(Yes), from 0 to 1; these go from {low:g} to {high:g}.\n"
            "Turn logits or percentages into probabilities first."
        )
    return cells


class Compared(NamedTuple):
    """The groups of one attribute: their moments and Welch's test in every (trait, wording)."""

    attribute: str
    moments: Moments
    test: GroupTest
    shape: tuple[int, int]
    by_person: Moments | None = None  # the moments with people in place of images, where somebody has several images
    everyone: Moments | None = None  # the same of all groups as one

    @property
    def groups(self) -> list[str]:
        """The groups, in order."""
        return self.moments.groups

    @property
    def independent(self) -> Moments:
        """Moments of what is independent: people where somebody has several images, else images."""
        return self.moments if self.by_person is None else self.by_person

    @property
    def overall_margins(self) -> Array:
        """Half the width of the interval of the mean over all groups, in every column."""
        if self.everyone is None:
            return mean_margins(self.moments.size.sum(axis=0), self.moments.overall_variance)
        return np.asarray(mean_margins(self.everyone.size, self.everyone.variance)[0])

    @property
    def n(self) -> int:
        """Images with a label and a score."""
        return int(self.moments.size.sum(axis=0).max())

    @property
    def adjusted(self) -> Array:
        """One p-value a trait: Simes over its wordings, Benjamini–Hochberg over the traits."""
        test = self.test if self.by_person is None else welch(self.by_person)
        return benjamini_hochberg(simes(test.p_value.reshape(self.shape)))

    @property
    def deviations(self) -> Array:
        """Group mean minus overall mean: `[n_groups, n_traits, n_templates]`; 0 where they differ only by rounding."""
        off = (self.moments.mean - self.moments.overall).reshape(-1, *self.shape)
        return np.where(np.abs(off) < NOTHING, 0.0, off)

    @property
    def biased(self) -> Mask:
        """The study's rule: a trait counts when any of its wordings has p ≤ 0.05; every image counts."""
        return np.asarray((self.test.p_value.reshape(self.shape) <= ALPHA).any(axis=1))

    @property
    def tested(self) -> Mask:
        """Traits that every group was asked about in some wording; other traits are absent, not unbiased."""
        asked = np.asarray((self.moments.size > 1).all(axis=0))
        return np.asarray(asked.reshape(self.shape).any(axis=1))

    def percent(self, calls: Mask) -> float:
        """Per cent of the tested traits that are called; NaN where none was tested."""
        return 100 * float(calls[self.tested].mean()) if self.tested.any() else np.nan


class Grouped:
    """One attribute's images and groups of two images or more."""

    def __init__(self, answers: Answers, attribute: str, people: People) -> None:
        groups = group_by(answers.images, (attribute,))
        rows = (groups.codes >= 0) & ~np.isnan(answers.p_yes).all(axis=(1, 2))
        self.answers = answers = answers.asked(rows)
        self.attribute, self.people = attribute, people
        self.flat = answers.p_yes.reshape(len(answers.p_yes), len(answers.traits) * len(answers.templates))
        """`[n_images, n_traits × n_wordings]`, of all images."""
        sizes = np.bincount(groups.codes[rows], minlength=len(groups.names))
        self.alone = [name for name, size in zip(groups.names, sizes, strict=True) if size == 1]  # left out
        self.groups = groups._replace(codes=np.where(rows, groups.codes, -1)).kept(np.flatnonzero(sizes > 1).tolist())
        self.inside = np.flatnonzero(self.groups.codes >= 0)
        self.repeated = people.rows(self.inside).repeated  # whether somebody has several images
        self._columns = Columns(self.flat, self.inside) if self.comparable else None

    @property
    def comparable(self) -> bool:
        """Whether at least two groups have images and a trait was asked."""
        return len(self.groups.names) > 1 and self.flat.shape[1] > 0

    def strata(self, groups: Groups) -> Strata:
        """What the groups are compared within."""
        return strata_of(self.answers.images, groups, WITHIN, self.people)

    def compared(self) -> Compared:
        """The comparison of the groups, as published; margins are those of people."""
        assert self._columns is not None
        moments = self._columns.moments(self.groups.codes[self.inside], self.groups.names)
        compared = Compared(self.attribute, moments, welch(moments), self.answers.p_yes.shape[1:])
        if not self.repeated:
            return compared
        everyone = self.groups._replace(names=["all"], codes=np.minimum(self.groups.codes, 0))
        by_person, all_of_them = (self._of_people(groups) for groups in (self.groups, everyone))
        return compared._replace(by_person=by_person, everyone=all_of_them)

    def shuffled(self, rng: np.random.Generator, shuffles: int) -> Iterator[Compared]:
        """The comparison after each shuffle of people, image by image."""
        assert self._columns is not None
        for part in ShuffledGroups(self.groups, self.people, rng, None, shuffles).parts():
            for moments in self._columns.moments_of_each(part[:, self.inside], self.groups.names):
                yield Compared(self.attribute, moments, welch(moments), self.answers.p_yes.shape[1:])

    def _of_people(self, groups: Groups) -> Moments:
        units = units_of(self.flat, groups, self.people, no_strata(len(self.flat)))
        return Columns(units.values).moments(units.groups, groups.names)


def all_grouped(answers: Answers, person: str | None = None) -> list[Grouped]:
    """Every attribute that can be compared."""
    people, there = people_of(answers.images, person), answers.images.columns
    every = (Grouped(answers, attribute, people) for attribute in ATTRIBUTES if attribute in there)
    return [grouped for grouped in every if grouped.comparable]
