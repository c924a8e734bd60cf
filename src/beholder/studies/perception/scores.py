"""Scores: of every image for every word and dimension, and the groups that are compared.

A word's score is its mean over the templates; its Δ is the mean, template by template, of the word's prompt less the
neutral one. A dimension's is the mean over its words. Two groups are compared within the other attributes' groups.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison import groups as grouping
from beholder.comparison.family import TOO_LITTLE, Part, comparison_at, not_judgeable
from beholder.comparison.family import Judged as Verdicts
from beholder.comparison.groups import CROSSING, Groups, People, Strata, group_by
from beholder.comparison.means import compare_groups
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.types import AnyArray, Array, Codes, Mask
from beholder.metrics.clustered import Estimates
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import NEUTRAL, SCORED_DIMENSION, SCORED_WORD, Dimension
from beholder.studies.study import MeasureOptions

GROUPED = ("race", "skin_tone", "gender")  # attributes whose values are groups of people
ORDERED = ("age", "smiling", "lighting", "pose")  # attributes that are numbers
CROSSED = {CROSSING.join(names): names for count in (2, 3) for names in combinations(GROUPED, count)}  # race × gender
INTERACTIONS = {  # the attribute that varies, and the grouping whose groups are compared: `smiling × gender`
    CROSSING.join((varied, grouping)): (varied, grouping) for varied in ORDERED for grouping in (*GROUPED, *CROSSED)
}
SEED = "seed"  # the column of a design that says who is shown
EVERYONE, MEAN = "everyone", "mean"  # the group of all images, and the concept of a mean over the dimensions
AS_RELEASED = "as released"  # the variant of a number that repeats a fault of the released script
FIRST = ("asian", "white", "male", "man")  # who comes first in a pair, as in the study's table


class Compared(NamedTuple):
    """Pairs of groups in several columns: a part of a family."""

    pairs: list[tuple[str, str]]  # of the groups that are large enough; rows of the part
    strata: Strata
    part: Part

    def rows(self, verdicts: Verdicts, row: Row, column: int, landmark: float = 0, reach: float = np.inf) -> list[Row]:
        """A pair's published row and the one within strata, which decided; no difference is larger than `reach`."""
        pair = str(row.group), str(row.against)
        if pair not in self.pairs:
            return [row._replace(verdict=TOO_LITTLE)]
        found = comparison_at(verdicts, (self.pairs.index(pair), column))
        return found.through(lambda end: end + landmark).rows(row, self.strata, least=-reach, most=reach)


class Judged(NamedTuple):
    """Scores of images: `cosine` and `delta` are `[n_images, n_words]`, `neutral` is `[n_images]`."""

    images: pl.DataFrame
    words: list[str]
    cosine: Array
    delta: Array
    neutral: Array
    dimensions: tuple[Dimension, ...]
    unit: str
    missing: dict[str, list[str]]  # words of a dimension that have no score
    person: str | None = None  # the column that says who is shown, where the user names one

    def by_dimension(self, scores: Array) -> Array:
        """Mean over each dimension's words, `[n_images, n_dimensions]`."""
        return np.stack([scores[:, self.places(d)].mean(axis=1) for d in self.dimensions], axis=1)

    def places(self, dimension: Dimension) -> list[int]:
        return [self.words.index(word) for word in dimension.words if word in self.words]

    def names(self) -> list[str]:
        return [dimension.name for dimension in self.dimensions]

    def scales(self) -> list[tuple[int, int]]:
        """The places of the positive and of the negative end of every scale with two ends."""
        names, positive = self.names(), [d for d in self.dimensions if d.valence == "positive"]
        return [(names.index(d.name), names.index(str(d.opposite))) for d in positive if d.opposite in names]

    def rows(self, keep: AnyArray) -> "Judged":
        if keep.dtype == bool and keep.all():
            return self
        places = np.flatnonzero(keep) if keep.dtype == bool else keep
        parts = {name: getattr(self, name)[places] for name in ("cosine", "delta", "neutral")}
        return self._replace(images=self.images[places.tolist()], **parts)

    @property
    def groupings(self) -> list[Groups]:
        """Everyone, the groups of each attribute, and crossed groups."""
        return groupings(self.images)

    @property
    def finest(self) -> Groups:
        """The finest groups there are: race × gender where both are known."""
        return self.groupings[-1]

    @property
    def grouped(self) -> list[str]:
        """The attributes whose values are groups, as far as the data has them."""
        return [groups.attribute for groups in self.groupings[1:] if groups.attribute in GROUPED]

    @property
    def ordered(self) -> list[str]:
        """The ordered attributes that take more than one value."""
        known = [name for name in ORDERED if name in self.images.columns and self.images[name].dtype.is_numeric()]
        return [name for name in known if self.images[name].drop_nulls().n_unique() > 1]

    def levels(self, attribute: str) -> tuple[list[float], Codes]:
        """The levels of an ordered attribute, and each image's position among them (−1: none)."""
        values = self.images[attribute].cast(pl.Float64)
        codes = values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
        return sorted(values.drop_nulls().unique()), codes

    @property
    def people(self) -> People:
        """Who is shown; someone who is shown in several groups (a seed) is compared with themselves."""
        return grouping.people_of(self.images, self.person)

    @property
    def has_neutral(self) -> bool:
        """Whether there are scores of the neutral prompt; without them there is no Δ."""
        return not np.isnan(self.neutral).all()

    @property
    def designed(self) -> bool:
        """Whether images come in matched sets: several images of a seed."""
        return SEED in self.images.columns and self.images[SEED].n_unique() < self.images.height

    def strata(self, groups: Groups) -> Strata:
        """The other compared attributes: what gender explains is not called race."""
        return grouping.strata_of(self.images, groups, GROUPED, self.people)

    def compare(self, values: Array, groups: Groups, rng: np.random.Generator, options: MeasureOptions) -> Compared:
        """Every two groups of at least five people in every column of `values[n_images, n_columns]`."""
        strata, large = self.strata(groups), groups.large(self.people)
        both = pairs(large.names)
        if not both:
            return Compared([], strata, not_judgeable(np.zeros((0, values.shape[1]), dtype=int)))
        weights = np.array([[float(name == one) - (name == two) for name in large.names] for one, two in both])
        made = partial(compare_groups, strata=strata, contrasts=weights, shuffles=options.shuffles)
        return Compared(both, strata, made(values, large, self.people, rng))

    def estimate(self, metric: str, means: Estimates, cell: tuple[int, int]) -> Row:
        """One cell of estimates, with its interval."""
        value, low, high = (float(part[cell]) for part in (means.value, means.low, means.high))
        return Row(f"perception.{metric}", value, int(means.n[cell[0]]), self.unit, low=low, high=high)

    def dimension_rows(self, metric: str, values: Array, n: int, group: str) -> list[Row]:
        """A group's row of every dimension."""
        named = zip(self.names(), values.tolist(), strict=True)
        return [Row(f"perception.{metric}", value, n, self.unit, group=group, concept=name) for name, value in named]


def read_judged(matrix: ScoreMatrix, dimensions: Sequence[Dimension], person: str | None = None) -> Judged:
    """The scores by word, of the images that have a score for every prompt."""
    columns, words = _columns(matrix)
    means = set(matrix.prompts["template"]) & {SCORED_WORD, SCORED_DIMENSION}
    if NEUTRAL not in words and not means:
        needed = "Perception needs scores of the neutral prompt ('A photo of a person.' and the like)"
        raise DataError(f"{needed}, and there are none.")
    if SCORED_DIMENSION in means:
        dimensions = [dimension._replace(words=(dimension.name,)) for dimension in dimensions]
    known = [place for place, word in enumerate(words) if word != NEUTRAL]
    neutral = columns[words.index(NEUTRAL)] if NEUTRAL in words else np.full(columns.shape[1], -1)

    def laid() -> Iterator[tuple[slice, Array, Array]]:
        """By word and template, some images at a time; NaN where a template has no score."""
        for part, scores in matrix.quantities("cosine"):
            cells = np.pad(scores.cells, ((0, 0), (0, 1)), constant_values=np.nan)
            yield part, cells[:, columns[known]], cells[:, None, neutral]

    # A template that a word lacks is left out of the neutral prompt's mean too: like is compared with like.
    both = np.zeros((len(known), columns.shape[1]), bool)
    for _, scored, plainly in laid():
        both |= ~np.isnan(scored - plainly).all(axis=0)
    cosine, delta = (np.empty((matrix.images.height, len(known))) for _ in range(2))
    plain = np.empty((matrix.images.height, 1))
    for part, scored, plainly in laid():
        cosine[part] = _template_mean(scored, columns[known] >= 0)
        delta[part] = _template_mean(scored - plainly, both)
        plain[part] = _template_mean(plainly, (neutral >= 0)[None])
    complete = np.asarray(~np.isnan(cosine).any(axis=1))
    if NEUTRAL in words:
        complete &= ~np.isnan(delta).any(axis=1)
    named = [words[column] for column in known]
    missing = {d.name: absent for d in dimensions if (absent := [word for word in d.words if word not in named])}
    kept = tuple(d for d in dimensions if len(missing.get(d.name, ())) < len(d.words))
    if not kept:
        check = "Check the prompts: beholder list prompts -s perception"
        raise DataError(f"None of the dimensions' words has a score. {check}")
    channel = next(matrix.quantities("cosine"))[1]
    unit = "cosine" if channel.channel == "score" else channel.unit  # imported scores are read as cosines
    # Ordered attributes are made numbers where a table (a user's CSV) has them as text; bands of ages stay text.
    texts = [matrix.images[name] for name in ORDERED if matrix.images.schema.get(name) == pl.String]
    numbers = [(text, text.cast(pl.Float64, strict=False)) for text in texts]
    images = matrix.images.with_columns(made for text, made in numbers if made.null_count() == text.null_count())
    return Judged(images, named, cosine, delta, plain[:, 0], kept, unit, missing, person).rows(complete)


def _columns(matrix: ScoreMatrix) -> tuple[Codes, list[str]]:
    """`[n_words, n_templates]`: the column of each, −1 where it has no score; and the words that have any."""
    words, templates = (list(dict.fromkeys(matrix.prompts[name])) for name in ("concept", "template"))
    there = np.zeros(matrix.prompts.height, bool)
    for _, scores in matrix.quantities("cosine"):
        there |= ~np.isnan(scores.cells).all(axis=0)
    columns = np.full((len(words), len(templates)), -1)
    for column, (word, template) in enumerate(matrix.prompts.select("concept", "template").iter_rows()):
        if there[column]:  # of several names for one column, the one that is there
            columns[words.index(word), templates.index(template)] = column
    asked = np.any(columns >= 0, axis=1)
    return columns[asked], [word for word, known in zip(words, asked.tolist(), strict=True) if known]


def _template_mean(cells: Array, asked: Mask) -> Array:
    """Mean over the templates that have scores; NaN for an image that lacks one of them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(asked, cells, 0.0).sum(axis=2) / asked.sum(axis=1))


def groupings(images: pl.DataFrame) -> list[Groups]:
    """Everyone; each attribute whose values are groups; and race × gender (or skin tone × gender)."""
    known = [name for name in GROUPED if name in images.columns and images[name].null_count() < images.height]
    crossed = [tuple(known)] if len(known) > 1 else []
    everyone = Groups(EVERYONE, [EVERYONE], np.zeros(images.height, dtype=int))
    return [everyone, *(group_by(images, names) for names in (*((name,) for name in known), *crossed))]


def pairs(names: list[str]) -> list[tuple[str, str]]:
    """Every two groups, in the study's order: Asian before White before Black, Male before Female."""
    ranked = sorted(names, key=lambda name: ((*FIRST, name.lower()).index(name.lower()), grouping.natural(name)))
    return list(combinations(ranked, 2))


def rated_scores(judged: Judged) -> dict[str, Array]:
    """What people may have rated: Δ of every dimension (by name or title) and of every word."""
    places = {word.lower(): [place] for place, word in enumerate(judged.words)}
    places |= {key.lower(): judged.places(each) for each in judged.dimensions for key in (each.name, each.title)}
    return {name: judged.delta[:, columns].mean(axis=1) for name, columns in places.items()}
