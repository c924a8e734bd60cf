"""Disparity, first step: what a model said of every concept in every picture, beside what is there and who is shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.datasets.dataset import Dataset
from beholder.metrics.bootstrap import Resampler
from beholder.metrics.calibration import READINGS, cross_fitted
from beholder.models.predictions.predictions import MINIMUM
from beholder.scores.quantity import Quantity
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import people_shown
from beholder.studies.study import MeasureOptions

Cells = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
AUTO, AS_GIVEN = "auto", "scores"
CALIBRATIONS = (AUTO, AS_GIVEN, *READINGS)
READ_AS = {"presence": "score of the best box or pixel", "log_p_yes": "probability of yes"}
"""What a confidence is, by the channel it comes from."""
GENDER, REST, LESS = "gender", "the rest", " less "


class Pair(NamedTuple):
    """Two sets of images that are compared: positive gaps are in favour of the first."""

    names: tuple[str, str]
    first: int
    second: int

    @property
    def name(self) -> str:
        """As the column `group` has it: `man less woman`."""
        return LESS.join(self.names)


class Confidence(NamedTuple):
    """Scores as probabilities, and what they are; None, with the reason, where they are none."""

    values: Cells | None
    reading: str


@dataclass(frozen=True)
class Seen:
    """Images down, concepts across."""

    images: pl.DataFrame
    concepts: list[str]
    scores: Cells
    present: Mask
    groups: list[str]
    codes: npt.NDArray[np.intp]
    """Each image's group, by its place in `groups`."""
    channel: str
    dataset: Dataset

    @cached_property
    def sets(self) -> list[Mask]:
        """The images of each group; with more than two groups then those besides each."""
        own = [self.codes == code for code in range(len(self.groups))]
        return own if len(own) == 2 else [*own, *(~mask for mask in own)]

    @cached_property
    def pairs(self) -> list[Pair]:
        """The first group against the second, or each of several against all others."""
        if len(self.groups) == 2:
            return [Pair((self.groups[0], self.groups[1]), 0, 1)]
        many = len(self.groups)
        return [Pair((group, REST), code, many + code) for code, group in enumerate(self.groups)]

    @cached_property
    def showing(self) -> npt.NDArray[np.int_]:
        """Of every set and concept, how many images with a score show it: `[n_sets, n_concepts]`."""
        there = self.present & ~np.isnan(self.scores)
        return np.stack([there[members].sum(axis=0) for members in self.sets])

    @cached_property
    def scored(self) -> npt.NDArray[np.int_]:
        """Of every set and concept, how many images have a score."""
        known = ~np.isnan(self.scores)
        return np.stack([known[members].sum(axis=0) for members in self.sets])

    @cached_property
    def people(self) -> npt.NDArray[np.intp]:
        """A number for whom each image shows: those of one person belong together."""
        return np.unique(people_shown(self.images), return_inverse=True)[1]

    def resampler(self, options: MeasureOptions) -> Resampler:
        """Draws of images, group by group; the same for every measure that asks."""
        return Resampler(self.people, options.rng(), options.draws, strata=self.codes)

    def objects(self) -> pl.DataFrame:
        """What is in the images, with the row and the column of each object here."""
        assert self.dataset.objects is not None
        rows = self.images.select("image_id", pl.int_range(pl.len()).alias("row"))
        columns = pl.DataFrame({"concept": self.concepts}).with_row_index("column")
        return self.dataset.objects.join(rows, on="image_id").join(columns, on="concept")


def read_seen(matrix: ScoreMatrix, by: str | None) -> Seen:
    """The images whose group is known, with one score for each concept."""
    dataset = matrix.dataset
    if dataset is None or dataset.objects is None:
        name = dataset.name if dataset else matrix.task
        raise DataError(
            f"{name} does not say what is in its pictures.\n"
            "Disparity needs annotated objects: use coco, visual-genome or glasshouse-objects."
        )
    attribute = by or (dataset.group_words.attribute if dataset.group_words else GENDER)
    if attribute not in matrix.images.columns:
        raise UnknownName("attribute", attribute, dataset.attributes, where=dataset.name)
    matrix = matrix.rows(matrix.images[attribute].is_not_null().to_numpy())
    labels = matrix.images[attribute].cast(pl.String)
    groups = sorted(labels.unique())
    if len(groups) < 2:
        found = f"only '{groups[0]}'" if groups else "none"
        raise DataError(f"{dataset.name}: two groups of '{attribute}' are needed, and there is {found}.")
    for group in groups:
        if LESS in group or group == REST:
            raise DataError(
                f"{dataset.name}: a group of '{attribute}' is called '{group}', which is how results name comparisons."
                "\nCall it otherwise."
            )
    codes = labels.replace_strict({group: code for code, group in enumerate(groups)}, return_dtype=pl.Int64)
    concepts = matrix.prompts["concept"].unique(maintain_order=True).to_list()
    ranking = matrix.quantity("ranking")
    scores = _by_concept(matrix, ranking_cells(matrix, ranking), concepts)
    blank = np.zeros(scores.shape, dtype=bool)
    seen = Seen(matrix.images, concepts, scores, blank, groups, codes.to_numpy(), ranking.channel, dataset)
    objects = seen.objects()
    blank[objects["row"].to_numpy(), objects["column"].to_numpy()] = True
    return seen


def ranking_cells(matrix: ScoreMatrix, ranking: Quantity) -> Cells:
    """What ranks the pictures; a detector's boxes under 0.1 are dropped, as in the study."""
    boxes = ranking.channel == "presence" and len(matrix.channels) == 1
    return np.where(ranking.cells < MINIMUM, 0.0, ranking.cells) if boxes else ranking.cells


def _by_concept(matrix: ScoreMatrix, cells: Cells, concepts: list[str]) -> Cells:
    """The mean over a concept's templates; none where one of them was not scored."""
    of = matrix.prompts["concept"].to_numpy()
    if len(of) == len(concepts):
        return cells
    return np.stack([cells[:, of == concept].mean(axis=1) for concept in concepts], axis=1)


def read_confidence(seen: Seen, calibration: str, options: MeasureOptions) -> Confidence:
    """The scores as probabilities: as they are where they are some, else only if a reading was asked for."""
    if calibration in READINGS:
        return Confidence(_cross_fitted(seen, calibration, options), f"{calibration} reading, cross-validated")
    if calibration == AUTO and seen.channel not in READ_AS:
        note = f"a {seen.channel} is no probability: --calibration platt or isotonic reads it as one"
        return Confidence(None, note)
    known = seen.scores[~np.isnan(seen.scores)]
    if known.size and (known.min() < 0 or known.max() > 1):
        raise UsageError(
            f"--calibration {calibration} takes scores as probabilities, and these lie between {known.min():.3g} and "
            f"{known.max():.3g}.\nUse --calibration platt or isotonic, which read any score as one."
        )
    return Confidence(seen.scores, READ_AS.get(seen.channel, "scores as given"))


def _cross_fitted(seen: Seen, calibration: str, options: MeasureOptions) -> Cells:
    """Concept by concept; NaN where there are too few pictures to fit a curve to."""
    rng, read = options.rng(), np.full(seen.scores.shape, np.nan)
    for column in range(len(seen.concepts)):
        known = ~np.isnan(seen.scores[:, column])
        fitted = cross_fitted(seen.scores[known, column], seen.present[known, column], calibration, rng)
        if fitted is not None:
            read[known, column] = fitted
    return read
