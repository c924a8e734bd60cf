"""What is measured: CLIP's labels (§ 7.1), Berg's retrieval, and iEAT's tests of images alone.

- Labels: who is given one that hurts, by race, gender and age, and how far that moves with what is offered. A picture's
  first choice is the class with the highest score; several that are level share it. Each group is compared with
  everyone else, within the other attributes. All categories, lists of classes and attributes are one family.
- Retrieval: whose pictures come first when words of character are asked for; MaxSkew and NDKL. The shares that a
  ranking is held against are those of all pictures that are ranked (Berg's demographic parity), and even ones (equal
  opportunity). Neither number is 0 without preference: `expected` is what shuffled people give. What is judged is how
  many of the lists of the first k a picture is on, and how far to the front it comes, group by group: both are 0 apart
  without preference. The second also tells where k is half of all: then nearly everybody is on a list.
- Images alone: which pictures are nearer to which, by the model's own image vectors.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata

from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import REST, Groups, People, groups_of, people_of, strata_of
from beholder.comparison.means import ShuffledGroups, compare_groups
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.types import Array, Codes, Mask
from beholder.metrics.association import (
    ImageAssociation,
    association_of,
    descending,
    ndkl,
    nearness,
    skew_at_k,
    softmax,
)
from beholder.metrics.intervals import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.prompts import CHILD, DRAWN_TESTS, IMAGE_TESTS, Classes, ImageTest
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


# Retrieval

TOP = (1000, 100)  # the paper's k, and one for smaller sets; each only where it is at most half of what is ranked
SHUFFLED = 20  # shuffles behind an expected skew, which is a mean over hundreds of prompts
UNITS = {"classics.max_skew": "natural logarithm", "classics.ndkl": "nats"}


def retrieval_rows(matrix: ScoreMatrix, options: MeasureOptions) -> Iterator[Row]:
    """How often each group is on a list, and the paper's two numbers for every attribute."""
    whole = matrix.complete_rows()
    if not whole.images.height:
        return
    cosine, people = whole.quantity("cosine").cells, people_of(whole.images, options.person)
    order, n, columns = descending(cosine, options.rng()), len(cosine), list[Column]()
    k = next((k for k in TOP if 2 * k <= n), max(1, n // 2))
    for valence in whole.prompts["valence"].unique(maintain_order=True):
        mine = (whole.prompts["valence"] == valence).to_numpy()
        listed = np.bincount(order[mine, :k].ravel(), minlength=n) / mine.sum()
        places = (rankdata(cosine[:, mine], axis=0).mean(axis=1) - 1) / max(n - 1, 1)
        for metric, listing, values in (("retrieved", f"k={k}", listed), ("place", "whole ranking", places)):
            columns.append(Column(f"classics.{metric}", str(valence), listing, f"{mine.sum()} prompts", values))
    every = compared_groups(whole.images)
    yield from mean_rows(columns, every, people, options)
    yield from gap_rows(columns, every, people, options)
    for groups in every:
        known = np.flatnonzero(groups.codes >= 0)
        if len({*groups.codes[known]}) > 1:
            part = groups._replace(codes=groups.codes[known]), people.rows(known)
            yield from _skew_rows(cosine[known], *part, k, options)


def _skew_rows(cosine: Array, groups: Groups, people: People, k: int, options: MeasureOptions) -> Iterator[Row]:
    """MaxSkew and NDKL, means over the prompts, against the pool's shares and against even ones."""
    order, sizes = descending(cosine, options.rng()), np.bincount(groups.codes, minlength=len(groups.names))
    few = ShuffledGroups(groups, people, options.rng(), None, SHUFFLED)
    codes = np.concatenate([groups.codes[None], *([] if options.values_only else few.parts())])
    for name, desired in (("pool", sizes / len(cosine)), ("even", np.full(len(sizes), 1 / len(sizes)))):
        for metric, (own, *shuffled) in zip(UNITS, _skews(codes, order, desired, k), strict=True):
            row = Row(metric, float(own), len(cosine), UNITS[metric], groups.attribute, concept=name, template=f"k={k}")
            expected = float(np.mean(shuffled)) if shuffled else None
            yield row._replace(expected=expected, note=f"mean over {len(order)} prompts")


def _skews(codes: Codes, order: Codes, desired: Array, k: int) -> Array:
    """MaxSkew and NDKL of codes `[shuffles, images]`, means over the prompts: `[2, shuffles]`."""
    ranked = (codes[:, row] for row in order)
    both = [(skew_at_k(each, desired, k).max(axis=1), ndkl(each, desired)) for each in ranked]
    return np.asarray(np.mean(both, axis=0))


# Images alone

EFFECT, P_VALUE = "classics.image_association", "classics.image_p"
TOGETHER = "interval and p hold for all image tests at once"


def categories(images: pl.DataFrame) -> pl.Series:
    """What each picture shows: as the data says, or drawn people at work, dealt into two halves."""
    if "category" in images.columns:
        return images["category"]
    half = pl.int_range(pl.len()).over("occupation") * 2 // pl.len().over("occupation") + 1
    return images.select(category=pl.format("{}/{}", "occupation", half))["category"]


def image_rows(matrix: ScoreMatrix, options: MeasureOptions) -> Iterator[Row]:
    """Effect size and p of every test whose pictures are there; all tests are one family."""
    cells, of = matrix.quantity("cosine").cells, categories(matrix.images)
    shows = dict(zip(matrix.images["image_id"], of, strict=True))  # a picture that cannot be read has no row
    asked = pl.Series([shows.get(image) for image in matrix.prompts["text"]], dtype=pl.String)
    tests = [test for test in (*IMAGE_TESTS, *DRAWN_TESTS) if {*test[1:]} <= {*of} and {*test[3:]} <= {*asked}]
    made = []
    for test in tests:
        a, b = (cells[:, (asked == name).fill_null(False).to_numpy()] for name in test[3:])
        near = nearness(a, b)
        x, y = (near[(of == name).to_numpy() & ~np.isnan(near)] for name in test[1:3])
        if len(x) and len(y):
            made.append((test, x, y, People(np.arange(len(x) + len(y)))))
    yield from tested(made, options)


def tested(made: Sequence[tuple[ImageTest, Array, Array, People]], options: MeasureOptions) -> Iterator[Row]:
    """Rows of tests, each with the nearness of its X and of its Y to A rather than B."""
    rng, parts, found = options.rng(), list[Part](), list[ImageAssociation]()
    for _, x, y, people in made:
        found.append(association_of(x, y, seed=options.seed))
        sides, both = Groups("", ["x", "y"], np.repeat([0, 1], [len(x), len(y)])), np.concatenate([x, y])
        spread = both.std(ddof=1) if np.isfinite(found[-1].effect) else np.nan
        parts.append(compare_groups(both / spread, sides, people, rng, shuffles=options.shuffles))
    for (test, x, y, _), own, judged in zip(made, found, judge(parts), strict=True):
        row = Row(EFFECT, own.effect, len(x) + len(y), "standard deviations", note=TOGETHER)
        row = row._replace(group=test.x, against=test.y, concept=test.test, template=f"{test.a} – {test.b}")
        tried = f"all {own.arrangements:,}" if own.exact else f"{own.arrangements:,} drawn"
        printed = f"one-sided, of this test alone, as printed: {tried} arrangements of the pictures"
        if options.compat:
            row = row._replace(note=f"p {printed}")
        (judged_row,) = comparison_at(judged, (0, 0)).rows(row)
        yield judged_row._replace(p_value=own.p_value, p_at_most=None) if options.compat else judged_row
        yield row._replace(metric=P_VALUE, value=own.p_value, unit="statistic", note=printed)
