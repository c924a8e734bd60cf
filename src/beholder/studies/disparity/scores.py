"""Disparity, first step: one score for every concept in every image, with what the image shows and its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.bootstrap import Resampler
from beholder.metrics.calibration import READINGS, cross_fitted
from beholder.models.predictions.importing import MINIMUM
from beholder.scores.quantity import Quantity
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import people_shown
from beholder.studies.study import MeasureOptions

Cells = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
AUTO, AS_GIVEN = "auto", "scores"
CALIBRATIONS = (AUTO, AS_GIVEN, *READINGS)
GENDER, REST = "gender", "the rest"


class Comparison(NamedTuple):
    """Two sets of images that are compared: a positive gap favours the first."""

    group: str
    against: str
    """The other group, or the name of the rest: never the name of a group then."""
    first: int
    """The set of `group`: its index in `sets`."""
    second: int

    @property
    def both(self) -> list[int]:
        """The two sets, by their index."""
        return [self.first, self.second]

    def row(self, metric: str, value: float | None, n: int, unit: str, **columns: Any) -> Row:
        """A row that compares the two groups."""
        return Row(f"disparity.{metric}", value, n, unit, group=self.group, against=self.against, **columns)


class Confidence(NamedTuple):
    """Scores as probabilities; None where they are not probabilities."""

    values: Cells | None
    source: str
    """What the probabilities are, or why there are none."""


@dataclass(frozen=True)
class ConceptScores:
    """Scores, and what the images show: one row per image, one column per concept."""

    images: pl.DataFrame
    concepts: list[str]
    scores: Cells
    present: Mask
    groups: list[str]
    codes: npt.NDArray[np.intp]
    """Each image's group: its index in `groups`."""
    unit: str
    is_probability: bool
    """Whether the scores are known to be probabilities."""
    dataset: Dataset

    @cached_property
    def sets(self) -> list[Mask]:
        """The images of each group; with more than two groups, then all images outside each group."""
        own = [self.codes == code for code in range(len(self.groups))]
        return own if len(own) == 2 else [*own, *(~mask for mask in own)]

    @cached_property
    def pairs(self) -> list[Comparison]:
        """The first of two groups against the second, or each of several groups against the rest."""
        if len(self.groups) == 2:
            return [Comparison(self.groups[0], self.groups[1], 0, 1)]
        many, rest = len(self.groups), rest_name(self.groups)
        return [Comparison(group, rest, code, many + code) for code, group in enumerate(self.groups)]

    @cached_property
    def showing(self) -> npt.NDArray[np.int_]:
        """How many scored images of each set show each concept: `[n_sets, n_concepts]`."""
        there = self.present & ~np.isnan(self.scores)
        return np.stack([there[members].sum(axis=0) for members in self.sets])

    @cached_property
    def scored(self) -> npt.NDArray[np.int_]:
        """How many images of each set have a score for each concept."""
        known = ~np.isnan(self.scores)
        return np.stack([known[members].sum(axis=0) for members in self.sets])

    @cached_property
    def people(self) -> npt.NDArray[np.intp]:
        """A number for the person in each image: images of one person belong together."""
        return np.unique(people_shown(self.images), return_inverse=True)[1]

    def resampler(self, options: MeasureOptions) -> Resampler:
        """Draws of images within each group; every measure gets the same draws."""
        return Resampler(self.people, options.rng(), options.draws, strata=self.codes)

    def objects(self) -> pl.DataFrame:
        """The annotated objects, with the row and the column of each."""
        assert self.dataset.objects is not None
        rows = self.images.select("image_id", pl.int_range(pl.len()).alias("row"))
        columns = pl.DataFrame({"concept": self.concepts}).with_row_index("column")
        return self.dataset.objects.join(rows, on="image_id").join(columns, on="concept")


def rest_name(groups: Sequence[str]) -> str:
    """What all other groups together are called: a name that no group has.

    >>> rest_name(["a", "b"]), rest_name(["a", "the rest"])
    ('the rest', 'all the rest')
    """
    name = REST
    while name in groups:
        name = f"all {name}"
    return name


def read_concept_scores(matrix: ScoreMatrix, by: str | None) -> ConceptScores:
    """One score per concept for each image whose group is known."""
    dataset = matrix.dataset
    if dataset is None or dataset.objects is None:
        name = dataset.name if dataset else matrix.task
        raise DataError(
            f"{name} does not say what its images show.\n"
            "Disparity needs annotated objects: use coco, visual-genome or glasshouse-objects."
        )
    attribute = by or (dataset.group_words.attribute if dataset.group_words else GENDER)
    if attribute not in matrix.images.columns:
        raise UnknownName("attribute", attribute, dataset.attributes, where=dataset.name)
    matrix = matrix.rows(matrix.images[attribute].is_not_null().to_numpy())
    labels = matrix.images[attribute].cast(pl.String)
    groups = sorted(labels.unique())
    if len(groups) < 2:
        present = f"only '{groups[0]}'" if groups else "none"
        raise DataError(f"{dataset.name}: disparity needs two groups of '{attribute}', and there is {present}.")
    codes = labels.replace_strict({group: code for code, group in enumerate(groups)}, return_dtype=pl.Int64)
    concepts = matrix.prompts["concept"].unique(maintain_order=True).to_list()
    ranking = matrix.quantity("ranking")
    scores = _by_concept(matrix, ranking_cells(matrix, ranking), concepts)
    blank = np.zeros(scores.shape, dtype=bool)
    what = ranking.unit, ranking.is_probability
    data = ConceptScores(matrix.images, concepts, scores, blank, groups, codes.to_numpy(), *what, dataset)
    objects = data.objects()
    blank[objects["row"].to_numpy(), objects["column"].to_numpy()] = True
    return data


def ranking_cells(matrix: ScoreMatrix, ranking: Quantity) -> Cells:
    """The scores that rank the images; boxes of a detector below 0.1 are dropped, as in the study."""
    boxes = ranking.channel == "presence" and len(matrix.channels) == 1
    return np.where(ranking.cells < MINIMUM, 0.0, ranking.cells) if boxes else ranking.cells


def _by_concept(matrix: ScoreMatrix, cells: Cells, concepts: list[str]) -> Cells:
    """The mean over a concept's templates; NaN where one of them was not scored."""
    asked = matrix.prompts["concept"].to_numpy()
    if len(asked) == len(concepts):
        return cells
    return np.stack([cells[:, asked == concept].mean(axis=1) for concept in concepts], axis=1)


def read_confidence(data: ConceptScores, calibration: str, options: MeasureOptions) -> Confidence:
    """The scores as probabilities: as they are if they already are, else only if `calibration` converts them."""
    if calibration in READINGS:
        return Confidence(_cross_fitted(data, calibration, options), f"{calibration} calibration, cross-validated")
    if calibration == AUTO and not data.is_probability:
        reason = f"a {data.unit} is not a probability; --calibration platt or isotonic converts it to one"
        return Confidence(None, reason)
    known = data.scores[~np.isnan(data.scores)]
    if known.size and (known.min() < 0 or known.max() > 1):
        raise UsageError(
            f"--calibration {calibration} takes scores as probabilities, and these lie between {known.min():.3g} and "
            f"{known.max():.3g}.\nUse --calibration platt or isotonic: they convert any score."
        )
    return Confidence(data.scores, f"confidence: {data.unit}")


def _cross_fitted(data: ConceptScores, calibration: str, options: MeasureOptions) -> Cells:
    """Concept by concept; NaN where there are too few images to fit a curve."""
    rng, calibrated = options.rng(), np.full(data.scores.shape, np.nan)
    for column in range(len(data.concepts)):
        known = ~np.isnan(data.scores[:, column])
        fitted = cross_fitted(data.scores[known, column], data.present[known, column], calibration, rng)
        if fitted is not None:
            calibrated[known, column] = fitted
    return calibrated
