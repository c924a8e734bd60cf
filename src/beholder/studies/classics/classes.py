"""CLIP's § 7.1: who is given a label that hurts, by race, gender and age, and how far that moves with what is offered.

A picture's first choice is the class with the highest score; several that are level share it. Each group is compared
with everyone else, within the other attributes. All categories, lists of classes and attributes are one family.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.family import comparison_at, judge
from beholder.comparison.groups import REST, Groups, People, groups_of, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.types import Array, Mask
from beholder.metrics.association import softmax
from beholder.metrics.intervals import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.prompts import CHILD, Classes
from beholder.studies.rows import PROBABILITY, mean_row
from beholder.studies.study import MeasureOptions

COMPARED = ("race", "skin_tone", "gender", "age")
SHARE, BELIEF = "classics.share", "classics.belief"


class Column(NamedTuple):
    """What is measured of one category: a value for each picture."""

    metric: str
    category: str
    listed: str  # the list of classes
    template: str
    values: Array

    @property
    def asked(self) -> str:
        """The list and the template."""
        return f"{self.listed} · {self.template}"


def columns_of(matrix: ScoreMatrix, design: Classes) -> Iterator[Column]:
    """Share and belief of every category, in every list and template whose classes all have scores."""
    logits, asked = matrix.logits, list(matrix.prompts.select("concept", "template").iter_rows())
    for (listed, classes), template in product(design.lists.items(), design.templates):
        if {(name, template) for name in classes} <= {*asked}:
            own = logits[:, [asked.index((name, template)) for name in classes]]
            best = own == own.max(axis=1, keepdims=True)
            cells = {SHARE: best / best.sum(axis=1, keepdims=True), BELIEF: softmax(own)}
            for (category, members), metric in product(design.categories.items(), cells):
                inside = np.isin(classes, members)
                if inside.any():
                    yield Column(metric, category, listed, template, cells[metric][:, inside].sum(axis=1))


def class_rows(matrix: ScoreMatrix, design: Classes, options: MeasureOptions, *, words: bool = False) -> Iterator[Row]:
    """Shares and beliefs, gaps with their verdicts, and how far the shares move."""
    whole = matrix.complete_rows()
    columns = list(columns_of(whole, design)) if whole.images.height else []
    if not columns:
        raise DataError("No image has a score for every class of a list: nothing can be measured.")
    main = [column for column in columns if column.template == columns[0].template]
    people, every = people_of(whole.images, options.person), compared_groups(whole.images)
    if words:  # each class of the paper's list by itself
        name, classes = next(iter(design.lists.items()))
        alone = design._replace(lists={name: classes}, categories={each: (each,) for each in classes})
        kept = [each for each in columns_of(whole, alone) if each.metric == SHARE and each.asked == columns[0].asked]
        yield from mean_rows([each._replace(metric="classics.class_share") for each in kept], every, people, options)
    yield from mean_rows(main, every, people, options)
    yield from gap_rows([column for column in main if column.category != CHILD], every, people, options)
    yield from _movement_rows([column for column in columns if column.metric == SHARE], every)


def compared_groups(images: pl.DataFrame) -> list[Groups]:
    """The groups of the attributes that there are."""
    return groups_of(images, [name for name in COMPARED if name in images.columns])


def _parts(every: Sequence[Groups], images: int) -> Iterator[tuple[str | None, str | None, Mask]]:
    """Everyone, and the groups of every attribute."""
    yield None, None, np.ones(images, bool)
    yield from ((groups.attribute, group, groups.mask(group)) for groups in every for group in groups.names)


def mean_rows(
    columns: Sequence[Column], every: Sequence[Groups], people: People, options: MeasureOptions
) -> Iterator[Row]:
    """Each mean with its interval, of everyone and of every group."""
    for subset, group, mask in _parts(every, len(people.codes)):
        resampler = Resampler(people.codes[mask], options.rng(), options.draws)
        for column in columns:
            row = mean_row(column.metric, column.values[mask], resampler)
            yield row._replace(subset=subset, group=group, concept=column.category, template=column.asked)


def gap_rows(
    columns: Sequence[Column], every: Sequence[Groups], people: People, options: MeasureOptions
) -> Iterator[Row]:
    """Each group less everyone else, or the higher of only two less the other, in every column: one family."""
    values, rng, made = np.stack([column.values for column in columns], axis=1), options.rng(), []
    labels = pl.DataFrame({groups.attribute: groups.labels() for groups in every})
    for groups in (each.large(people) for each in every):
        if len(groups.names) > 1:
            strata, two = strata_of(labels, groups, labels.columns, people), len(groups.names) == 2
            weights = groups.pair_weights() if two else groups.rest_weights(people)
            own = {"strata": strata, "contrasts": weights, "shuffles": options.shuffles, "bounds": (0.0, 1.0)}
            ends = [tuple(groups.names)] if two else [(name, REST) for name in groups.names]
            made.append((groups, strata, ends, compare_groups(values, groups, people, rng, **own)))  # type: ignore[arg-type]
    for (groups, strata, ends, _), judged in zip(made, judge([each[-1] for each in made]), strict=True):
        inside = groups.codes >= 0
        for (place, (group, against)), (k, column) in product(enumerate(ends), enumerate(columns)):
            mine = groups.mask(group)
            gap = float(column.values[mine].mean() - column.values[inside & ~mine].mean())
            found = comparison_at(judged, (place, k), group, against)
            if against != REST and found.value < 0:
                found, gap = found.swapped(), -gap
            row = Row(f"{column.metric}_gap", gap, int(inside.sum()), PROBABILITY, subset=groups.attribute)
            row = row._replace(concept=column.category, template=column.asked)
            together = "interval and p hold for all groups, attributes and what is asked here at once"
            yield from found.rows(row._replace(note=together), strata, least=-1.0, most=1.0)


def _movement_rows(columns: Sequence[Column], every: Sequence[Groups]) -> Iterator[Row]:
    """The largest share of a category less the smallest: over lists, over templates, and over both."""
    first = columns[0]
    by = {"list": [each for each in columns if each.template == first.template]}
    by |= {"template": [each for each in columns if each.listed == first.listed], "both": list(columns)}
    for subset, group, mask in _parts(every, len(first.values)):
        for (what, some), category in product(by.items(), dict.fromkeys(each.category for each in columns)):
            shares = [(float(each.values[mask].mean()), each.asked) for each in some if each.category == category]
            if len(shares) > 1:
                (low, lowest), (high, highest) = min(shares), max(shares)
                note = f"from {100 * low:.1f} % ({lowest}) to {100 * high:.1f} % ({highest})"
                row = Row("classics.movement", high - low, int(mask.sum()), PROBABILITY, subset, group)
                yield row._replace(concept=category, template=what, note=note)
