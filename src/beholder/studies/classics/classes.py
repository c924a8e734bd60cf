"""CLIP's § 7.1: who is given a label that hurts, by race, gender and age, and how far that moves with what is offered.

A picture's first choice is the class with the highest score; several that are level share it. Each group is compared
with everyone else, within the other attributes. All categories, lists of classes and attributes are one family.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import REST, Groups, People, Strata, groups_of, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.types import Array, Mask
from beholder.metrics.association import softmax
from beholder.metrics.intervals import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.prompts import Classes
from beholder.studies.rows import PROBABILITY, mean_row
from beholder.studies.study import MeasureOptions

COMPARED = ("race", "skin_tone", "gender", "age")
SHARE, BELIEF = "classics.share", "classics.belief"
TOGETHER = "interval and p hold for all categories, lists and attributes at once"


class Column(NamedTuple):
    """What is measured of one category: a value for each picture."""

    metric: str
    category: str
    listed: str  # the list of classes
    template: str
    values: Array

    def row(self, ending: str = "") -> Row:
        """A row about it."""
        place = f"{self.listed} · {self.template}"
        return Row(f"{self.metric}{ending}", None, 0, PROBABILITY, concept=self.category, template=place)


class Compared(NamedTuple):
    """The groups that can be compared, each with everyone else, or the only two with each other."""

    groups: Groups
    strata: Strata
    part: Part

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Who is compared with whom."""
        names = self.groups.names
        return [(names[0], names[1])] if len(names) == 2 else [(name, REST) for name in names]


def columns_of(matrix: ScoreMatrix, design: Classes) -> list[Column]:
    """Share and belief of every category, in every list and template whose classes all have scores."""
    logits, asked = matrix.logits, {}
    for place, key in enumerate(matrix.prompts.select("concept", "template").iter_rows()):
        asked[key] = place
    columns = []
    for (listed, classes), template in product(design.lists.items(), design.templates):
        if not all((name, template) in asked for name in classes):
            continue
        own = logits[:, [asked[name, template] for name in classes]]
        best = own == own.max(axis=1, keepdims=True)
        for category, members in design.categories.items():
            inside = np.isin(classes, members)
            for metric, cells in ((SHARE, best / best.sum(axis=1, keepdims=True)), (BELIEF, softmax(own))):
                if inside.any():
                    columns.append(Column(metric, category, listed, template, cells[:, inside].sum(axis=1)))
    return columns


def class_rows(matrix: ScoreMatrix, design: Classes, options: MeasureOptions, *, words: bool = False) -> Iterator[Row]:
    """Shares and beliefs, gaps with their verdicts, and how far the shares move."""
    whole = matrix.complete_rows()
    columns = columns_of(whole, design) if whole.images.height else []
    if not columns:
        raise DataError("No image has a score for every class of a list: nothing can be measured.")
    first = next(iter(design.templates))
    main = [column for column in columns if column.template == first]
    people = people_of(whole.images, options.person)
    every = groups_of(whole.images, [name for name in COMPARED if name in whole.images.columns])
    if words:  # each class of the paper's list by itself
        name, classes = next(iter(design.lists.items()))
        alone = design._replace(lists={name: classes}, categories={each: (each,) for each in classes})
        kept = [each for each in columns_of(whole, alone) if each.template == first and each.metric == SHARE]
        main += [column._replace(metric="classics.class_share") for column in kept]
    yield from mean_rows(main, every, people, options)
    yield from _other_templates([column for column in columns if column.template != first], every)
    yield from gap_rows([column for column in main if column.category in design.judged], every, people, options)
    yield from _movement_rows([column for column in columns if column.metric == SHARE], every)


def mean_rows(
    columns: Sequence[Column], every: Sequence[Groups], people: People, options: MeasureOptions
) -> Iterator[Row]:
    """Each mean with its interval, of everyone and of every group."""
    for subset, group, mask in _parts(every, len(people.codes)):
        resampler = Resampler(people.codes[mask], options.rng(), options.draws)
        for column in columns:
            row, place = mean_row(column.metric, column.values[mask], resampler), column.row()
            yield row._replace(subset=subset, group=group, concept=place.concept, template=place.template)


def _parts(every: Sequence[Groups], images: int) -> Iterator[tuple[str | None, str | None, Mask]]:
    yield None, None, np.ones(images, bool)
    for groups in every:
        for group in groups.names:
            yield groups.attribute, group, groups.mask(group)


def _other_templates(columns: Sequence[Column], every: Sequence[Groups]) -> Iterator[Row]:
    for subset, group, mask in _parts(every, len(columns[0].values) if columns else 0):
        for column in columns:
            value, n = float(column.values[mask].mean()), int(mask.sum())
            yield column.row()._replace(subset=subset, group=group, value=value, n=n)


def gap_rows(
    columns: Sequence[Column],
    every: Sequence[Groups],
    people: People,
    options: MeasureOptions,
    together: str = TOGETHER,
) -> Iterator[Row]:
    """Each group less everyone else, in every column: one family."""
    values, rng, made = np.stack([column.values for column in columns], axis=1), options.rng(), list[Compared]()
    labels = pl.DataFrame({groups.attribute: groups.labels() for groups in every})
    for groups in (each.large(people) for each in every):
        if len(groups.names) > 1:
            strata = strata_of(labels, groups, labels.columns, people)
            weights = groups.rest_weights(people) if len(groups.names) > 2 else groups.pair_weights()
            compare = partial(compare_groups, strata=strata, contrasts=weights, shuffles=options.shuffles)
            made.append(Compared(groups, strata, compare(values, groups, people, rng, bounds=(0.0, 1.0))))
    for compared, judged in zip(made, judge([each.part for each in made]), strict=True):
        inside = compared.groups.codes >= 0
        for (place, (group, against)), (k, column) in product(enumerate(compared.ends), enumerate(columns)):
            mine = compared.groups.mask(group)
            gap = float(column.values[mine].mean() - column.values[inside & ~mine].mean())
            found = comparison_at(judged, (place, k), group, against)
            if against != REST and found.value < 0:
                found, gap = found.swapped(), -gap
            row = column.row("_gap")._replace(subset=compared.groups.attribute, n=int(inside.sum()), value=gap)
            yield from found.rows(row._replace(note=together), compared.strata, least=-1.0, most=1.0)


def _movement_rows(columns: Sequence[Column], every: Sequence[Groups]) -> Iterator[Row]:
    """The largest share of a category less the smallest, over lists, over templates, and over both."""
    first = columns[0]
    by = {"list": [each for each in columns if each.template == first.template]}
    by |= {"template": [each for each in columns if each.listed == first.listed], "both": list(columns)}
    for subset, group, mask in _parts(every, len(first.values)):
        for (what, some), category in product(by.items(), dict.fromkeys(each.category for each in columns)):
            shares = {
                column.row().template: float(column.values[mask].mean())
                for column in some
                if column.category == category
            }
            if len(shares) > 1:
                low, high = (pick(shares, key=lambda name: shares[name]) for pick in (min, max))
                note = f"from {100 * shares[low]:.1f} % ({low}) to {100 * shares[high]:.1f} % ({high})"
                row = Row("classics.movement", shares[high] - shares[low], int(mask.sum()), PROBABILITY, subset, group)
                yield row._replace(concept=category, template=what, note=note)
