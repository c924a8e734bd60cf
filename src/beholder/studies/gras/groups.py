"""GRAS's scores as an array of traits and wordings, and the comparison of its groups.

One matrix product gives every group's moments in every (trait, wording), so each shuffle of the labels costs only one
more product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import BadScores
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.group_gaps import Gaps, Pairs, clustered_moments, group_gaps
from beholder.metrics.group_tests import Columns, GroupTest, Moments, group_codes, mean_margins, welch
from beholder.metrics.multiplicity import ALPHA, benjamini_hochberg, shuffles_for, simes
from beholder.metrics.person_shuffles import PersonShuffles, has_repeats
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.prompts import VALENCES

Array = npt.NDArray[np.float64]
QUESTIONS, STATEMENTS, DENIALS = "gras", "gras/statements", "gras/denials"
"""Names of the tasks: questions for models that answer in words, statements and denials for the others."""
ATTRIBUTES = ("gender", "race", "age", "skin_tone")
NOTHING = 1e-13
"""Differences of probabilities below this are rounding errors."""
ROUNDED = 1e-6
"""By how much a probability in single precision may leave 0 to 1."""


class Answers(NamedTuple):
    """P(Yes) of every image for every trait in every wording: `p_yes[n_images, n_traits, n_templates]`."""

    images: pl.DataFrame
    traits: list[str]
    valences: list[str]
    templates: list[str]
    p_yes: npt.NDArray[Any]

    def asked(self, rows: npt.NDArray[np.bool_]) -> Answers:
        """The same, only with the traits and wordings that at least one of these images was asked about."""
        missing = np.isnan(self.p_yes)
        if rows.any() and not missing.any():
            return self
        there = ~missing[rows]
        traits, templates = there.any(axis=(0, 2)), there.any(axis=(0, 1))
        if traits.all() and templates.all():
            return self
        return Answers(
            self.images,
            [name for name, kept in zip(self.traits, traits, strict=True) if kept],
            [valence for valence, kept in zip(self.valences, traits, strict=True) if kept],
            [name for name, kept in zip(self.templates, templates, strict=True) if kept],
            self.p_yes[:, traits][:, :, templates],
        )

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Which images have any score."""
        return np.asarray(~np.isnan(self.p_yes).all(axis=(1, 2)))

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
    cells = p_yes_cells(matrices, compat=compat)
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


def p_yes_cells(matrices: Mapping[str, ScoreMatrix], *, compat: bool = False) -> npt.NDArray[Any]:
    """P(Yes) of every cell: imported, or the probability of all tokens that say yes.

    For a model that matches pictures with texts it is the share of belief on a statement against its denial: a
    documented variant, not the published measure. With `compat` it is the probability of the single token `Yes`, which
    the released scripts read, where the model gives it.
    """
    if QUESTIONS not in matrices:
        stated, denied = matrices[STATEMENTS].logits, matrices[DENIALS].logits
        return np.asarray(1 / (1 + np.exp(denied - stated)))
    matrix = matrices[QUESTIONS]
    single = matrix.single_token() if compat else None
    return _probabilities(matrix.quantity("probability").cells) if single is None else single


def _probabilities(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Imported scores, which must be P(Yes): logits or percentages would give gaps in an unknown unit."""
    known = not np.isnan(cells).all()
    low, high = (float(np.nanmin(cells)), float(np.nanmax(cells))) if known else (0.0, 1.0)
    if low < -ROUNDED or high > 1 + ROUNDED:
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
    by_person: Moments | None = None
    """The moments with people in place of images, where somebody has several images."""
    everyone: Moments | None = None
    """The same of all groups as one."""

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
    def p_values(self) -> Array:
        """`[n_traits, n_templates]`, as published: every image counts."""
        return self.test.p_value.reshape(self.shape)

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
    def biased(self) -> npt.NDArray[np.bool_]:
        """The study's rule: a trait counts when any of its wordings has p ≤ 0.05."""
        return np.asarray((self.p_values <= ALPHA).any(axis=1))

    @property
    def tested(self) -> npt.NDArray[np.bool_]:
        """Traits that every group was asked about in some wording; other traits are absent, not unbiased."""
        asked = np.asarray((self.moments.size > 1).all(axis=0))
        return np.asarray(asked.reshape(self.shape).any(axis=1))

    def percent(self, calls: npt.NDArray[np.bool_]) -> float:
        """Per cent of the tested traits that are called; NaN where none was tested."""
        return 100 * float(calls[self.tested].mean()) if self.tested.any() else np.nan


class WidestGaps(NamedTuple):
    """The widest gap of every column between any two of some groups."""

    groups: list[str]
    n: int
    """Images in these groups."""
    higher: npt.NDArray[np.intp]
    lower: npt.NDArray[np.intp]
    pairs: Pairs
    gaps: Gaps

    @property
    def shown(self) -> npt.NDArray[np.bool_]:
        """Where the corrected p-value is at most 0.05 and the interval, which holds for all columns, leaves out 0."""
        return np.asarray((self.pairs.p_value <= ALPHA) & (self.pairs.low > 0))


class Grouped:
    """One attribute's images and labels, prepared for comparisons with its own labels and with shuffled ones."""

    def __init__(self, answers: Answers, attribute: str) -> None:
        labels = _labels(answers.images, attribute)
        rows = labels.is_not_null().to_numpy() & answers.scored
        known = labels.filter(rows)
        self.answers = answers = answers.asked(rows)
        self._flat = answers.p_yes.reshape(len(answers.p_yes), len(answers.traits) * len(answers.templates))
        self.attribute, self._shape, self._rows = attribute, answers.p_yes.shape[1:], np.flatnonzero(rows)
        sizes = {group: int((known == group).sum()) for group in ordered(known)}
        self.groups = [group for group, size in sizes.items() if size > 1]
        self.alone = [group for group, size in sizes.items() if size == 1]
        """Groups of one image, which cannot be compared and are left out."""
        self.codes = group_codes(known.to_numpy(), self.groups)
        self.people = people_of(answers.images)[rows]
        self.repeated = has_repeats(self.people[self.codes >= 0])
        """Whether somebody has several images."""
        ready = len(self.groups) > 1 and self._flat.shape[1] > 0
        self._columns = Columns(self._flat, self._rows) if ready else None

    @property
    def comparable(self) -> bool:
        """Whether at least two groups have images and a trait was asked."""
        return self._columns is not None

    @property
    def values(self) -> Array:
        """The scores of these images, `[n_images, n_columns]`."""
        return np.asarray(self._flat[self._rows], dtype=np.float64)

    def moments(self, codes: npt.NDArray[np.int_], groups: list[str]) -> Moments:
        """Moments of any grouping of these images."""
        assert self._columns is not None
        return self._columns.moments(codes, groups)

    def compared(self) -> Compared:
        """The comparison of the groups."""
        return self._compared(self.moments(self.codes, self.groups), self.codes)

    def shuffled(self, rng: np.random.Generator, shuffles: int, *, by_person: int) -> Iterator[Compared]:
        """The comparison after each shuffle of people; of the first `by_person` also with people in place of images."""
        assert self._columns is not None
        done = 0
        for part in PersonShuffles(self.codes, self.people).parts(shuffles, rng):
            for codes, moments in zip(part, self._columns.moments_of_each(part, self.groups), strict=True):
                yield self._compared(moments, codes if done < by_person else None)
                done += 1

    def _compared(self, moments: Moments, codes: npt.NDArray[np.int_] | None) -> Compared:
        compared = Compared(self.attribute, moments, welch(moments), self._shape)
        if not self.repeated or codes is None:
            return compared
        people = clustered_moments(self.values, codes, self.groups, self.people)
        all_of_them = clustered_moments(self.values, np.minimum(codes, 0), ["all"], self.people)
        return compared._replace(by_person=people, everyone=all_of_them)

    def widest_gaps(self, rng: np.random.Generator, tests: int, shuffles: int | None = None) -> WidestGaps:
        """The widest gap in every column, judged among `tests` attributes by as many shuffles as that takes.

        Groups with fewer than five people are left out. Where that leaves less than two groups, all are compared,
        without intervals and p-values.
        """
        kept = self._large_groups()
        shuffles = shuffles_for(tests) if shuffles is None else shuffles
        return self._widest(kept or list(range(len(self.groups))), rng, shuffles if kept else 0, tests)

    def gaps_by_source(self, rng: np.random.Generator, tests: int, shuffles: int | None = None) -> WidestGaps | None:
        """The same at the same mix of image sources; None where there are no sources, or a group lacks one."""
        kept = self._large_groups()
        sources = self._sources(kept) if kept else None
        shuffles = shuffles_for(tests) if shuffles is None else shuffles
        return None if sources is None else self._widest(kept, rng, shuffles, tests, sources)

    def _large_groups(self) -> list[int]:
        """The groups with at least five people; none where only one has them."""
        people = [len(np.unique(self.people[self.codes == k])) for k in range(len(self.groups))]
        large = [k for k, count in enumerate(people) if count >= FEWEST]
        return large if len(large) > 1 else []

    def _widest(
        self,
        kept: list[int],
        rng: np.random.Generator,
        shuffles: int,
        tests: int,
        sources: npt.NDArray[np.int_] | None = None,
    ) -> WidestGaps:
        codes = self._codes_of(kept)
        own = {"people": self.people, "strata": sources, "tests": tests}
        gaps = group_gaps(self.values, codes, len(kept), rng, shuffles, **own)  # type: ignore[arg-type]
        higher, lower = gaps.widest()
        groups = [self.groups[k] for k in kept]
        return WidestGaps(groups, int((codes >= 0).sum()), higher, lower, gaps.pair(higher, lower), gaps)

    def _codes_of(self, kept: list[int]) -> npt.NDArray[np.int_]:
        """Each image's place among some of the groups, −1 for none of them."""
        place = np.full(len(self.groups) + 1, -1)
        place[kept] = np.arange(len(kept))
        return place[self.codes]

    def _sources(self, kept: list[int]) -> npt.NDArray[np.int_] | None:
        """Where each image was taken from, as numbers; None unless every group has two people of each source."""
        codes, names = self._codes_of(kept), _labels(self.answers.images, "source").gather(self._rows)
        inside = codes >= 0
        if names.filter(inside).null_count() or names.filter(inside).n_unique() < 2:
            return None
        known = names.filter(inside).unique().sort()
        sources = group_codes(names.to_numpy(), known.to_list())
        triples = np.unique(np.stack([codes, sources, self.people])[:, inside], axis=1)
        people = np.bincount(triples[0] * len(known) + triples[1], minlength=len(kept) * len(known))
        return np.maximum(sources, 0) if people.min() > 1 else None


def people_of(images: pl.DataFrame) -> npt.NDArray[np.int_]:
    """Who is shown, as numbers: the column `person`; an image without one shows someone else."""
    own = pl.format("image {}", pl.int_range(pl.len()))
    person = pl.col("person").cast(pl.String) if "person" in images.columns else pl.lit(None, pl.String)
    names = images.select(pl.coalesce(person, own).alias("who"))["who"].to_numpy().astype(str)
    return np.unique(names, return_inverse=True)[1]


def _labels(images: pl.DataFrame, attribute: str) -> pl.Series:
    if attribute not in images.columns:
        return pl.Series(attribute, [None] * images.height, dtype=pl.String)
    return images[attribute].cast(pl.String)


def ordered(labels: pl.Series) -> list[str]:
    """Groups in order: numbers by size (skin tones 1 to 10), words by alphabet."""
    return sorted(labels.unique(), key=lambda group: (int(group) if group.isdecimal() else -1, group))


def all_grouped(answers: Answers) -> list[Grouped]:
    """Every attribute that can be compared."""
    every = (Grouped(answers, attribute) for attribute in ATTRIBUTES)
    return [grouped for grouped in every if grouped.comparable]
