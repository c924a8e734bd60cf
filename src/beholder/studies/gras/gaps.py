"""Gaps between groups: every trait by every attribute, within the other attributes and the image source, as one family.

The published number is the widest gap of plain means. What decides is the same pair within strata. Other pairs, and
pairs within a single stratum, are in the family too: a difference that the widest pair does not tell is found there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison.family import (
    Comparison,
    Judged,
    Part,
    comparison_at,
    judge,
    not_judgeable,
    part_from_null,
    verdict_of,
)
from beholder.comparison.groups import (
    REST,
    Groups,
    People,
    Strata,
    additive_strata,
    crossing,
    group_by,
    no_strata,
    strata_of,
)
from beholder.comparison.means import ShuffledGroups, compare_groups, each_stratum, units_of
from beholder.core.results import WITHIN as WITHIN_STRATA
from beholder.core.results import Row
from beholder.core.types import Array
from beholder.metrics.clustered import Pooled, partial_pooling
from beholder.studies.gras.groups import NOTHING, WITHIN, Answers, Compared, Grouped
from beholder.studies.gras.prompts import VALENCES

ALIKE = 1e-6  # means in single precision that differ by less are equal
HELD = 1 << 23  # numbers worked on at once


def above_mean(deviations: Array, valences: list[str]) -> Array:
    """Per cent of a valence's traits whose group mean lies above the overall mean in every wording.

    `deviations[..., n_groups, n_traits, n_wordings]` become `[..., n_groups, n_valences]`; traits that were not asked
    of every group in every wording do not count, and NaN is a valence without traits.
    """
    above = np.asarray((deviations > 0).all(axis=-1))
    whole = ~np.isnan(deviations).any(axis=(-3, -1))
    shares = []
    for kind in VALENCES:
        traits = np.array([valence == kind for valence in valences])
        counted = (whole & traits)[..., None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append(100 * (above & counted).sum(axis=-1) / counted.sum(axis=-1))
    return np.stack(shares, axis=-1)


def shuffled_shares(grouped: Grouped, rng: np.random.Generator, shuffles: int) -> Part:
    """The shares `[n_groups, n_valences]` against those that people's labels give, shuffled within the strata."""
    groups, people, answers, inside = grouped.groups, grouped.people, grouped.answers, grouped.inside
    values = grouped.flat[inside].astype(np.float64)
    there = (~np.isnan(values)).astype(np.float32) if np.isnan(values).any() else None
    values = np.nan_to_num(values - np.nanmean(values, axis=0)).astype(np.float32)  # only signs count
    step = max(1, HELD // (len(groups.names) * sum(values.shape)))  # groupings at once

    def shares(codes: npt.NDArray[np.intp]) -> Array:
        """`[n_groupings, n_groups, n_valences]`, from the groups' means in every (trait, wording)."""
        belongs = codes[:, None, inside] == np.arange(len(groups.names))[:, None]
        flat = belongs.astype(np.float32).reshape(-1, belongs.shape[2])
        size = flat.sum(axis=1)[:, None] if there is None else flat @ there
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = (flat @ values) / size
        deviations[np.abs(deviations) < ALIKE] = 0.0
        return above_mean(deviations.reshape(*belongs.shape[:2], *answers.p_yes.shape[1:]), answers.valences)

    moves = ShuffledGroups(groups, people, rng, grouped.strata(groups), shuffles)
    value = shares(groups.codes[None])[0]
    portions = (part[start : start + step] for part in moves.parts() for start in range(0, len(part), step))
    null = np.concatenate([np.empty((0, *value.shape)), *map(shares, portions)])
    asked = ~np.isnan(value)  # a valence without traits has no share
    sizes = np.broadcast_to(np.array(groups.sizes(people))[:, None], value.shape)
    value, null, how = np.where(asked, value, 0.0), np.where(asked, null, 0.0), moves.moves
    return part_from_null(value, null, people=sizes, arrangements=how.arrangements, exact=how.exact)


MANY = 2  # with more groups than these, each is compared with all others within a single stratum
BOUNDS = (0.0, 1.0)


@dataclass(frozen=True)
class Gaps:
    """The groups of one attribute in the mean over all wordings of every trait."""

    answers: Answers  # with the wordings averaged
    averaged: Compared
    by_valence: Compared | None  # the same over all traits of each of the `valences`
    groups: Groups  # those with at least five people; all, where only one has them
    strata: Strata
    valences: list[str]
    parts: tuple[Part, ...]  # all people, and then every single stratum
    inner: tuple[str, ...]  # the names of the single strata
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
        return found if higher < lower else found.swapped()

    def other(self, trait: int, row: Row) -> Row | None:
        """The row with the clearest difference in another pair than the widest, or within a single stratum."""
        names, pairs = self.groups.names, self.groups.pairs()
        p_values = [each.p_value[:, trait] for each in self.judged]
        p_values[0] = np.where([set(pair) == set(self.ends(trait)) for pair in pairs], np.nan, p_values[0])
        clear = np.concatenate([np.abs(each.value[:, trait]) / each.margin[:, trait] for each in self.judged])
        clear = np.where(np.isnan(np.concatenate(p_values)), np.nan, clear)
        if np.isnan(clear).all():
            return None
        place = int(np.nanargmax(clear))
        inner = [(names[0], names[1])] if len(names) <= MANY else [(name, REST) for name in names]
        part, inner_place = divmod(place - len(pairs), len(inner))
        if place < len(pairs):
            first, second = (names[k] for k in pairs[place])
            found = comparison_at(self.judged[0], (place, trait), first, second)
            variant, n = self.strata.variant, self.n
        else:
            assert self.strata.crossed is not None
            found = comparison_at(self.judged[1 + part], (inner_place, trait), *inner[inner_place])
            inside = self.strata.crossed.mask(self.inner[part]) & (self.groups.codes >= 0)
            variant, n = f"{WITHIN_STRATA}{self.inner[part]}", int(inside.sum())
        row = found.upward().on(row, least=-1.0, most=1.0)
        return row._replace(metric="gras.other_gap", variant=variant, n=n)

    @cached_property
    def found(self) -> npt.NDArray[np.bool_]:
        """The traits for which a difference was found."""
        return np.asarray(np.any([each.found.any(axis=0) for each in self.judged], axis=0))

    def least(self, row: Row) -> Row:
        """The row with the least p-value of any trait and pair, and its verdict."""
        p_values, at_most, people = (
            np.concatenate([getattr(each, name).ravel() for each in self.judged])
            for name in ("p_value", "at_most", "people")
        )
        if np.isnan(p_values).all():
            return row._replace(p_value=np.nan, verdict=verdict_of(None, 0))
        place = int(np.nanargmin(p_values))
        p_value = float(p_values[place])
        row = row._replace(p_value=p_value, verdict=verdict_of(p_value, int(people[place])))
        return row._replace(p_at_most=bool(at_most[place]) or None)


def gaps_of(grouped: Grouped, mean: Answers, rng: np.random.Generator, shuffles: int) -> Gaps | None:
    """One attribute's gaps, not judged yet (values alone without shuffles); None where no image was asked all."""
    own = Grouped(mean, grouped.attribute, grouped.people)
    if not own.comparable:
        return None
    by_valence = own.answers.by_valence()
    large = own.groups.large(own.people)
    groups, enough = (large, True) if len(large.names) > 1 else (own.groups, False)
    strata = own.strata(groups)
    parts: tuple[Part, ...] = (not_judgeable(np.zeros((len(groups.pairs()), own.flat.shape[1]), dtype=int)),)
    inner: tuple[str, ...] = ()
    if enough and shuffles:
        flat, people = own.flat, own.people
        whole = compare_groups(flat, groups, people, rng, strata=strata, shuffles=shuffles, bounds=BOUNDS)
        single = each_stratum(flat, groups, people, strata, rng, shuffles=shuffles, bounds=BOUNDS, against_rest=True)
        parts, inner = (whole, *single.values()), tuple(single)
    valence = Grouped(by_valence, grouped.attribute, grouped.people)
    over = valence.compared() if valence.comparable else None
    return Gaps(own.answers, own.compared(), over, groups, strata, by_valence.traits, parts, inner)


# Intersections of gender, race and age

CROSSED = ("gender", "race", "age")  # attributes whose intersections are measured


class Intersections(NamedTuple):
    """Cells of several attributes at once, with how much each is favoured."""

    names: list[str]
    size: npt.NDArray[np.int_]  # images
    raw: Array
    pooled: Pooled  # small cells borrow from all
    strata: Strata  # what else the cells are compared within
    from_mean: Judged
    beyond: Judged | None  # beyond what the single attributes add up to; None where nothing is left over
    departures: Array  # how far cells lie from what their attributes add up to, whatever the strata
    spread: float  # standard deviation of the true departures; 0: no more than chance


def intersections(answers: Answers, people: People, rng: np.random.Generator, shuffles: int) -> Intersections | None:
    """Gender × race × age (those that are known): positive minus negative traits."""
    images = answers.images
    known = [name for name in CROSSED if name in images.columns and images[name].drop_nulls().len()]
    if len(known) < 2:
        return None
    cells = reduce(crossing, (group_by(images, (name,)) for name in known))
    favour = answers.asked(cells.codes >= 0).favour()
    cells = cells._replace(codes=np.where(np.isnan(favour), -1, cells.codes))
    cells = cells.kept([place for place, size in enumerate(cells.sizes(people)) if size > 1])
    inside = cells.codes >= 0
    if len(cells.names) < 4 or len(people.rows(inside)) <= len(cells.names) or np.ptp(favour[inside]) < NOTHING:
        return None

    def departures(labels: list[str], count: int) -> Part:
        """How far the cells lie from what these labels add up to."""
        strata, bounds = additive_strata(images, cells, labels), (-1.0, 1.0)
        return compare_groups(favour, cells, people, rng, strata=strata, departures=True, shuffles=count, bounds=bounds)

    units = units_of(favour[:, None], cells, people, no_strata(len(favour)))
    size = np.bincount(units.groups).astype(np.float64)
    raw = np.bincount(units.groups, weights=units.values[:, 0]) / size
    within = float(((units.values[:, 0] - raw[units.groups]) ** 2).sum() / max(len(units.groups) - len(size), 1))
    strata = strata_of(images, cells, WITHIN, people)
    others = list(strata.labels)
    off = np.asarray(departures(known, 0).value[:, 0], dtype=np.float64)
    design = additive_strata(images, cells, known).design[inside]
    free = len(size) - 1 - int(np.linalg.matrix_rank(design - design.mean(axis=0)))
    parts = [departures(others, shuffles), *([departures([*known, *others], shuffles)] if free else [])]
    from_mean, *beyond = judge(parts)
    spread = np.sqrt(max(0.0, float((size * off**2).sum()) - free * within) / size.sum())
    pooled = partial_pooling(raw, np.sqrt(max(within, NOTHING**2) / size))
    counts, judged = np.bincount(cells.codes[inside], minlength=len(size)), beyond[0] if beyond else None
    return Intersections(cells.names, counts, raw, pooled, strata, from_mean, judged, off, float(spread))
