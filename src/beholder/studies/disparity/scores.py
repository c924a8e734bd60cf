"""Disparity, first step: one score for every concept in every image, with what the image shows and its group."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from beholder.comparison.family import FEWEST
from beholder.comparison.groups import Groups, People, Strata, group_by, no_strata, people_of, strata_of
from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.results import Row
from beholder.core.types import Array, Codes, Ints, Mask
from beholder.datasets.dataset import Dataset
from beholder.metrics.calibration import READINGS, cross_fitted
from beholder.metrics.intervals import Resampler
from beholder.models.predictions import MINIMUM
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import MeasureOptions

Cells = Array
AUTO, AS_GIVEN = "auto", "scores"
CALIBRATIONS = (AUTO, AS_GIVEN, *READINGS)
GENDER, REST = "gender", "the rest"
WITHIN = ("source", "branch")  # labels that groups are compared within, where the data has them


class Sides(NamedTuple):
    """Two sets of images that are compared: a positive gap favours the first."""

    group: str
    against: str  # the other group, or the name of the rest: never the name of a group then
    first: int  # the set of `group`: its index in `sets`
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
    source: str  # what the probabilities are, or why there are none


@dataclass(frozen=True)
class ConceptScores:
    """Scores, and what the images show: one row per image, one column per concept."""

    images: pl.DataFrame
    concepts: list[str]
    scores: Cells
    present: Mask
    groups: Groups
    people: People
    strata: Strata  # labels that groups are compared within, as far as the data has them
    dataset: Dataset
    unit: str = "score"
    is_probability: bool = False  # whether the scores are known to be probabilities

    @property
    def codes(self) -> Codes:
        """Each image's group: its index among the groups' names."""
        return self.groups.codes

    @property
    def cells(self) -> Codes | None:
        """The stratum of each image, also where strata are thin: a rank has no residual; None without strata."""
        return self.strata.crossed.codes if self.strata.labels and self.strata.crossed else None

    @cached_property
    def sets(self) -> list[Mask]:
        """The images of each group; with more than two groups, then all images outside each group."""
        own = [self.groups.mask(code) for code in range(len(self.groups.names))]
        return own if len(own) == 2 else [*own, *(~mask for mask in own)]

    @cached_property
    def pairs(self) -> list[Sides]:
        """The first of two groups against the second, or each of several groups against the rest."""
        names = self.groups.names
        if len(names) == 2:
            return [Sides(names[0], names[1], 0, 1)]
        rest = REST
        while rest in names:  # a name that no group has
            rest = f"all {rest}"
        return [Sides(group, rest, code, len(names) + code) for code, group in enumerate(names)]

    @cached_property
    def showing(self) -> Ints:
        """How many scored images of each set show each concept: `[n_sets, n_concepts]`."""
        there = self.present & ~np.isnan(self.scores)
        return np.stack([there[members].sum(axis=0) for members in self.sets])

    @cached_property
    def scored(self) -> Ints:
        """How many images of each set have a score for each concept."""
        known = ~np.isnan(self.scores)
        return np.stack([known[members].sum(axis=0) for members in self.sets])

    @cached_property
    def fewest(self) -> Ints:
        """The people of the smallest part of each pair `[n_pairs, n_concepts]`: who show a concept, or who do not."""
        return fewest_people(self, ~np.isnan(self.scores))

    def each_stratum(self) -> dict[str, "ConceptScores"]:
        """The images of each stratum in which every group has five people; none where there is one stratum."""
        parts, crossed = {}, self.strata.crossed if self.cells is not None else None
        for place, name in enumerate([] if crossed is None else crossed.names):
            keep = np.asarray(self.cells == place, dtype=np.bool_)
            groups, people = self.groups._replace(codes=self.codes[keep]), self.people.rows(keep)
            if min(groups.sizes(people)) >= FEWEST:
                cells = self.images.filter(pl.Series(keep)), self.concepts, self.scores[keep], self.present[keep]
                parts[name] = ConceptScores(*cells, groups, people, no_strata(int(keep.sum())), self.dataset)
        return parts

    def resampler(self, options: MeasureOptions) -> Resampler:
        """Draws of people within each group and stratum; every measure gets the same draws."""
        strata = self.codes if self.cells is None else self.codes * (int(self.cells.max()) + 1) + self.cells
        return Resampler(self.people.codes, options.rng(), options.draws, strata=strata)

    def objects(self) -> pl.DataFrame:
        """The annotated objects, with the row and the column of each."""
        assert self.dataset.objects is not None
        rows = self.images.select("image_id", pl.int_range(pl.len()).alias("row"))
        columns = pl.DataFrame({"concept": self.concepts}, schema={"concept": pl.String}).with_row_index("column")
        return self.dataset.objects.join(rows, on="image_id").join(columns, on="concept")


def fewest_people(data: ConceptScores, known: Mask) -> Ints:
    """As `ConceptScores.fewest`, of the cells that are `known`."""
    counts = []
    for shows in (data.present & known, ~data.present & known):
        for members in data.sets:
            who = data.people.codes[members]
            pictures = sparse.csr_array((np.ones(len(who)), (who, np.arange(len(who))))) @ shows[members]
            counts.append((pictures > 0).sum(axis=0))
    smallest = np.minimum(*np.split(np.stack(counts), 2))
    return np.stack([smallest[pair.both].min(axis=0) for pair in data.pairs])


def read_concept_scores(matrix: ScoreMatrix, by: str | None, person: str | None = None) -> ConceptScores:
    """One score per concept for each image whose group is known; `person` is the column that says who is shown."""
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
    concepts, ranking = matrix.prompts["concept"].unique(maintain_order=True).to_list(), matrix.quantity("ranking")
    cells, asked = ranking.cells, matrix.prompts["concept"].to_numpy()
    if ranking.channel == "presence" and len(matrix.channels) == 1:  # as in the study, boxes below 0.1 are dropped
        cells = np.where(cells < MINIMUM, 0.0, cells)
    scores = cells
    if len(asked) > len(concepts):  # the mean over a concept's templates; NaN where one of them was not scored
        scores = np.stack([cells[:, asked == concept].mean(axis=1) for concept in concepts], axis=1)
    blank = np.zeros(scores.shape, dtype=bool)
    data = concept_scores(matrix.images, attribute, concepts, scores, blank, dataset, person)
    data = replace(data, unit=ranking.unit, is_probability=ranking.is_probability)
    objects = data.objects()
    blank[objects["row"].to_numpy(), objects["column"].to_numpy()] = True
    return data


def concept_scores(
    images: pl.DataFrame, by: str, concepts: list[str], cells: Cells, shown: Mask, dataset: Dataset, person: str | None
) -> ConceptScores:
    """Scores of images that all have a group, with whom they show."""
    groups, people = group_by(images, (by,)), people_of(images, person)
    if len(groups.names) < 2:
        there = f"only '{groups.names[0]}'" if groups.names else "none"
        raise DataError(f"{dataset.name}: disparity needs two groups of '{by}', and there is {there}.")
    strata = strata_of(images, groups, WITHIN, people)
    return ConceptScores(images, concepts, cells, shown, groups, people, strata, dataset)


def read_confidence(data: ConceptScores, calibration: str, options: MeasureOptions) -> Confidence:
    """The scores as probabilities: as they are if they already are, else only if `calibration` converts them."""
    if calibration in READINGS:  # concept by concept; NaN where there are too few images to fit a curve
        rng, fitted = options.rng(), np.full(data.scores.shape, np.nan)
        for column, known in enumerate(~np.isnan(data.scores.T)):
            cells = data.scores[known, column], data.present[known, column]
            if (converted := cross_fitted(*cells, calibration, rng)) is not None:
                fitted[known, column] = converted
        return Confidence(fitted, f"{calibration} calibration, cross-validated")
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
