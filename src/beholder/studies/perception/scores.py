"""Scores: the score of every image for every word and dimension, and the groups that are compared.

A word's score is its mean over the templates; its Δ is the mean, template by template, of the word's prompt less the
neutral one. A dimension's is the mean over its words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.metrics.clustered import Estimates
from beholder.metrics.person_shuffles import has_repeats
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import NEUTRAL, SCORED_DIMENSION, SCORED_WORD, Dimension

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int_]
GROUPED = ("race", "skin_tone", "gender")
"""Attributes whose values are groups of people."""
ORDERED = ("age", "smiling", "lighting", "pose")
"""Attributes that are numbers."""
CROSSING = " × "
"""Stands between attributes in the name of a grouping or of an interaction."""
CROSSED = {CROSSING.join(names): names for count in (2, 3) for names in combinations(GROUPED, count)}
"""The attributes of every grouping by more than one: `race × gender`."""
INTERACTIONS = {
    CROSSING.join((varied, grouping)): (varied, grouping) for varied in ORDERED for grouping in (*GROUPED, *CROSSED)
}
"""The attribute that varies, and the grouping whose groups are compared: `smiling × gender`."""
SEED, BLOCK = "seed", "varied"
"""Columns of a design: who is shown, and which attribute varies in this block of pictures."""
PERSON = "person"
"""The column of one's own data that says who is shown, where pictures do not come in matched sets."""
EVERYONE, MEAN = "everyone", "mean"
"""The group of all images, and the concept of a mean over the dimensions."""
MOST_DRAWS = 500
"""The most draws for rankings and effect sizes."""


class Groups(NamedTuple):
    """A grouping of images: `codes[i]` is the position of image i's group in `names`, −1 for none."""

    attribute: str
    names: list[str]
    codes: Indices

    def mask(self, name: str) -> npt.NDArray[np.bool_]:
        """Which images belong to a group."""
        return np.asarray(self.codes == self.names.index(name))


class Judged(NamedTuple):
    """Scores of images: `cosine` and `delta` are `[n_images, n_words]`, `neutral` is `[n_images]`."""

    images: pl.DataFrame
    words: list[str]
    cosine: Array
    delta: Array
    neutral: Array
    dimensions: tuple[Dimension, ...]
    unit: str
    missing: dict[str, list[str]]
    """Words of a dimension that have no score."""

    def word(self, name: str) -> Array | None:
        """One word's cosine; None where it has no score."""
        return self.cosine[:, self.words.index(name)] if name in self.words else None

    def by_dimension(self, scores: Array) -> Array:
        """Mean over each dimension's words, `[n_images, n_dimensions]`."""
        return np.stack([scores[:, self.places(d)].mean(axis=1) for d in self.dimensions], axis=1)

    def places(self, dimension: Dimension) -> list[int]:
        """Columns of a dimension's words."""
        return [self.words.index(word) for word in dimension.words if word in self.words]

    def names(self) -> list[str]:
        """The dimensions' names."""
        return [dimension.name for dimension in self.dimensions]

    def note(self, dimension: Dimension) -> str | None:
        """Which words of a dimension have no score, in words; None if all have one."""
        lacking = self.missing.get(dimension.name)
        return f"without {', '.join(map(repr, lacking))}: no score" if lacking else None

    def rows(self, keep: npt.NDArray[Any]) -> Judged:
        """Some of the images."""
        if keep.dtype == bool and keep.all():
            return self
        places = np.flatnonzero(keep) if keep.dtype == bool else keep
        parts = {name: getattr(self, name)[places] for name in ("cosine", "delta", "neutral")}
        return self._replace(images=self.images[places.tolist()], **parts)

    @property
    def clusters(self) -> Indices:
        """A number for everyone who is shown: by `seed` or `person`; an image without either shows someone else."""
        name = next((name for name in (SEED, PERSON) if name in self.images.columns), None)
        if name is None:
            return np.arange(self.images.height)
        who = self.images[name].cast(pl.String)
        alone = self.images.height + np.arange(self.images.height)
        return np.where(who.is_null().to_numpy(), alone, who.rank("dense").fill_null(0).to_numpy().astype(int))

    @property
    def has_neutral(self) -> bool:
        """Whether there are scores of the neutral prompt; without them there is no Δ."""
        return not np.isnan(self.neutral).all()

    @property
    def repeated(self) -> bool:
        """Whether anybody is shown in several images."""
        return has_repeats(self.clusters)

    @property
    def designed(self) -> bool:
        """Whether images come in matched sets: several images of a seed."""
        return SEED in self.images.columns and self.images[SEED].n_unique() < self.images.height

    def others(self, attribute: str) -> Indices | None:
        """The crossed groups of all other attributes; None where there is no other."""
        names = tuple(name for name in grouped(self.images) if name != attribute)
        return group_by(self.images, names).codes if names else None


def estimate_row(metric: str, estimates: Estimates, cell: tuple[int, ...], unit: str, n: int) -> Row:
    """One cell of estimates, with its interval."""
    value, low, high = (float(part[cell]) for part in (estimates.value, estimates.low, estimates.high))
    return Row(f"perception.{metric}", value, n, unit, low=low, high=high)


def read_judged(matrix: ScoreMatrix, dimensions: Sequence[Dimension]) -> Judged:
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
    missing = _missing_words(dimensions, named)
    kept = tuple(d for d in dimensions if len(missing.get(d.name, ())) < len(d.words))
    channel = next(matrix.quantities("cosine"))[1]
    unit = "cosine" if channel.channel == "score" else channel.unit  # imported scores are read as cosines
    return Judged(with_numbers(matrix.images), named, cosine, delta, plain[:, 0], kept, unit, missing).rows(complete)


def with_numbers(images: pl.DataFrame) -> pl.DataFrame:
    """Ordered attributes as numbers where a table (a user's CSV) has them as text; bands of ages stay text."""
    texts = [images[name] for name in ORDERED if images.schema.get(name) == pl.String]
    numbers = [(text, text.cast(pl.Float64, strict=False)) for text in texts]
    return images.with_columns(made for text, made in numbers if made.null_count() == text.null_count())


def _columns(matrix: ScoreMatrix) -> tuple[Indices, list[str]]:
    """`[n_words, n_templates]`: the column of each, −1 where it has no score; and the words that have any."""
    words = list(dict.fromkeys(matrix.prompts["concept"]))
    templates = list(dict.fromkeys(matrix.prompts["template"]))
    there = np.zeros(matrix.prompts.height, bool)
    for _, scores in matrix.quantities("cosine"):
        there |= ~np.isnan(scores.cells).all(axis=0)
    columns = np.full((len(words), len(templates)), -1)
    for column, (word, template) in enumerate(matrix.prompts.select("concept", "template").iter_rows()):
        if there[column]:  # of several names for one column, the one that is there
            columns[words.index(word), templates.index(template)] = column
    asked = np.any(columns >= 0, axis=1)
    return columns[asked], [word for word, known in zip(words, asked.tolist(), strict=True) if known]


def _template_mean(cells: Array, asked: npt.NDArray[np.bool_]) -> Array:
    """Mean over the templates that have scores; NaN for an image that lacks one of them."""
    total = np.where(asked, cells, 0.0).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(total / asked.sum(axis=1))


def _missing_words(dimensions: Sequence[Dimension], words: list[str]) -> dict[str, list[str]]:
    """The words that lack a score, by dimension; an error where none has one."""
    if not any(word in words for dimension in dimensions for word in dimension.words):
        check = "Check the prompts: beholder list prompts -b perception"
        raise DataError(f"None of the dimensions' words has a score. {check}")
    lacking = {d.name: [word for word in d.words if word not in words] for d in dimensions}
    return {name: absent for name, absent in lacking.items() if absent}


# Groups


def grouped(images: pl.DataFrame) -> list[str]:
    """The attributes whose values are groups, as far as the data has them."""
    return [name for name in GROUPED if name in images.columns and images[name].null_count() < images.height]


def groupings(images: pl.DataFrame) -> list[Groups]:
    """Everyone; each attribute whose values are groups; and race × gender (or skin tone × gender)."""
    known = grouped(images)
    single = [group_by(images, (name,)) for name in known]
    crossed = [group_by(images, tuple(known))] if len(known) > 1 else []
    return [Groups(EVERYONE, [EVERYONE], np.zeros(images.height, dtype=int)), *single, *crossed]


def group_by(images: pl.DataFrame, attributes: tuple[str, ...]) -> Groups:
    """Groups of one attribute, or of several crossed, which are named by all their values (`Black Female`)."""
    values = list(zip(*(images[name].cast(pl.String) for name in attributes), strict=True))
    known = sorted({each for each in values if None not in each}, key=lambda each: [natural(part) for part in each])
    code_of = {each: code for code, each in enumerate(known)}
    codes = np.array([code_of.get(each, -1) for each in values], dtype=int)
    return Groups(CROSSING.join(attributes), _names(known), codes)


def _names(known: list[tuple[str, ...]]) -> list[str]:
    """The values of each group with a blank between them; in quotes where two groups would read alike.

    >>> _names([("A B", "C"), ("A", "B C")]), _names([("A", "B")])
    (['"A B" "C"', '"A" "B C"'], ['A B'])
    """
    plain = [" ".join(each) for each in known]
    if len(set(plain)) == len(plain):
        return plain
    return [" ".join(json.dumps(part, ensure_ascii=False) for part in each) for each in known]


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers by size and words by alphabet: skin tone 2 before 10.

    >>> sorted(["10 man", "2 man"], key=natural)
    ['2 man', '10 man']
    """
    return [(int(part) if part.isdecimal() else -1, part) for part in name.split()]


def finest(images: pl.DataFrame) -> Groups:
    """The finest groups there are: race × gender where both are known."""
    return groupings(images)[-1]


def levels_of(images: pl.DataFrame, attribute: str) -> tuple[list[float], Indices]:
    """The levels of an ordered attribute, and each image's position among them (−1: none)."""
    values = images[attribute].cast(pl.Float64)
    known = sorted(values.drop_nulls().unique())
    code_of = {level: code for code, level in enumerate(known)}
    return known, np.array([-1 if value is None else code_of[value] for value in values], dtype=int)


def ordered_attributes(images: pl.DataFrame) -> Iterator[str]:
    """The ordered attributes that take more than one value."""
    for name in ORDERED:
        if name in images.columns and images[name].dtype.is_numeric() and images[name].drop_nulls().n_unique() > 1:
            yield name
