"""Disparity's scores: one for every concept in every image, with what the image shows and its group; and calibration.

Does a confidence mean the same for images of every group? Measured only if scores are probabilities or were converted
on request. Expected calibration error is the published measure; miscalibration is the one to compare groups by, because
it depends neither on their sizes nor on how often they show the concept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from beholder.comparison.family import FEWEST, TOO_LITTLE, Comparison, comparison_at, judge, part_from_null
from beholder.comparison.groups import Groups, People, Strata, group_by, no_strata, people_of, strata_of
from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.results import Row
from beholder.core.types import Array, Codes, Floating, Ints, Mask
from beholder.datasets.dataset import Dataset
from beholder.metrics import calibration as calibrations
from beholder.metrics.average_precision import Keys, LabelShuffles, each_concept, prevalences
from beholder.metrics.calibration import READINGS, MatchedBins, Miscalibration, cross_fitted, miscalibration
from beholder.metrics.intervals import NONE, Interval, Resampler, centred_interval, clustered_share_interval
from beholder.models.predictions import MINIMUM
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

Cells = Array
AUTO, AS_GIVEN = "auto", "scores"
CALIBRATIONS = (AUTO, AS_GIVEN, *READINGS)
GENDER, REST = "gender", "the rest"
INDICATOR = "binary indicator"  # the unit of detections that are ranked as there or not there
DETECTED = {"presence": 0.0, "area": 0.0}  # channels of detections: the score above which a concept is there
PIXEL = 0.5  # the same for the likeliest pixel of a segmenter that runs here
WITHIN = ("source", "branch")  # labels that groups are compared within, where the data has them


class Sides(NamedTuple):
    """Two sets of images that are compared: a positive gap favours the first."""

    group: str
    against: str  # the other group, or the name of the rest: never the name of a group then
    first: int  # the set of `group`: its index in `sets`
    second: int

    @property
    def both(self) -> list[int]:
        return [self.first, self.second]

    def row(self, metric: str, value: float | None, n: int, unit: str, **columns: Any) -> Row:
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
    there_above: float | None = None  # the score above which a concept is detected; None for models that do not detect

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

    def indicated(self) -> "ConceptScores":
        """With detections and segmentations as 1 (there) or 0, as the paper ranks them; other scores as they are."""
        if self.there_above is None:
            return self
        there = np.where(np.isnan(self.scores), np.nan, (self.scores > self.there_above).astype(np.float64))
        return replace(self, scores=there, unit=INDICATOR, is_probability=False)

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
    boxes = ranking.channel == "presence" and len(matrix.channels) == 1
    if boxes:  # as in the study, those below 0.1 are dropped
        cells = np.where(cells < MINIMUM, 0.0, cells)
    above = DETECTED.get(ranking.channel) if boxes or ranking.channel != "presence" else PIXEL
    scores = cells
    if len(asked) > len(concepts):  # the mean over a concept's templates; NaN where one of them was not scored
        scores = np.stack([cells[:, asked == concept].mean(axis=1) for concept in concepts], axis=1)
    blank = np.zeros(scores.shape, dtype=bool)
    data = concept_scores(matrix.images, attribute, concepts, scores, blank, dataset, person)
    data = replace(data, unit=ranking.unit, is_probability=ranking.is_probability, there_above=above)
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


ROUNDING = 1e-5  # draws are float32: intervals narrower than this are rounding
UNIT, SQUARED = "calibration error", "squared calibration error"
KINDS = ("ece", "ece_adaptive", "brier")
FEW_TO_MATCH = "fewer than two images with the concept or without it: prevalence cannot be matched"
FEW_TO_TEST = f"fewer than {FEWEST} people of one group with it or without it: not tested"
TOGETHER = "bounds hold for all concepts at once"
DRAWN = 5  # how many concepts get a reliability diagram: those with the widest gaps


def spread(draws: Floating | Cells, value: float) -> Interval:
    """The interval around a value; none where all draws are equal, because they say nothing about other images."""
    low, high = centred_interval(draws, value)
    return Interval(low, high) if high - low > ROUNDING else NONE


def calibration_rows(data: ConceptScores, confidence: Confidence, options: MeasureOptions) -> Iterator[Row]:
    """Calibration error and Brier score by concept and group, their gaps, and reliability diagrams."""
    if confidence.values is None:
        yield Row("disparity.ece", None, 0, UNIT, note=confidence.source)
        return
    values = confidence.values
    errors = _calibrations(data, values, [np.ones((len(values), 1))], 1)[..., 0]
    parts = (np.ascontiguousarray(part.T) for part in data.resampler(options).weights())
    draws = _calibrations(data, values, parts, options.draws)
    matched = MatchedCalibration(data, values, options)
    yield from _error_rows(data, errors, draws, matched.known, confidence.source)
    yield from _miscalibration_rows(matched, confidence.source)
    yield from _miscalibration_gap_rows(matched)
    yield from _diagram(data, values, np.arange(len(data.concepts)), None)
    off = np.nan_to_num(np.abs(matched.gap(data.pairs[0])))
    for column in np.argsort(-off, kind="stable")[:DRAWN].tolist():
        yield from _diagram(data, values, np.array([column]), data.concepts[column])


def _calibrations(data: ConceptScores, values: Cells, parts: Iterable[Cells], draws: int) -> Floating:
    """The three errors of every set and concept in every draw: `[n_sets, 3, n_concepts, n_draws]`."""
    errors = np.full((len(data.sets), len(KINDS), len(data.concepts), draws), np.nan, dtype=np.float32)
    known, start = ~np.isnan(values), 0
    for weights in parts:
        here = slice(start, start := start + weights.shape[1])

        def walk(column: int, weights: Floating = weights, here: slice = here) -> None:
            for index, members in enumerate(data.sets):
                rows = np.flatnonzero(members & known[:, column])
                if len(rows):
                    cells, there = values[rows, column], data.present[rows, column]
                    calibrated = calibrations.Calibrated(cells, there, rows=rows, width=len(values))
                    errors[index, :, column, here] = calibrated.errors(weights)

        each_concept(walk, len(data.concepts))
    return errors


def _error_rows(data: ConceptScores, errors: Floating, draws: Floating, known: Ints, source: str) -> Iterator[Row]:
    """The published errors of every group, and their gaps; positive: worse calibrated for the first group."""
    for index, group in enumerate(data.groups.names):
        for column, concept in enumerate(data.concepts):
            n = int(known[index, column])
            for kind, metric in enumerate(KINDS):
                value = float(errors[index, kind, column])
                low, high = spread(draws[index, kind, column], value) if n >= FEWEST else NONE
                row = Row(f"disparity.{metric}", value, n, UNIT, group=group, concept=concept)
                yield row._replace(low=max(low, 0.0), high=high, note=_note(n, source))
    for pair in data.pairs:
        for kind, metric in enumerate(KINDS):
            for column, concept in enumerate(data.concepts):
                sizes, value = known[pair.both, column], float((errors[pair.first] - errors[pair.second])[kind, column])
                row = pair.row(f"{metric}_gap", value, int(sizes.sum()), UNIT, concept=concept)
                yield row._replace(note=_note(int(sizes.min()), None))


def _note(n: int, source: str | None) -> str | None:
    """What the confidence is, or why there is no value or no interval."""
    if not n:
        return "too few images to convert scores to probabilities"
    return join((source, f"fewer than {FEWEST} images: no interval" if n < FEWEST else None))


class MatchedCalibration:
    """Miscalibration of every set and concept at the concept's common prevalence, with the test of every gap."""

    def __init__(self, data: ConceptScores, values: Cells, options: MeasureOptions) -> None:
        self.data, self._values, known = data, values, ~np.isnan(values)
        self._prevalence = prevalences(values, data.present)
        self.known = np.stack([known[members].sum(axis=0) for members in data.sets])
        self.measured = [[self._one(members, column) for column in range(known.shape[1])] for members in data.sets]
        self._fewest = fewest_people(data, known)
        self.judged = self._judged(options)

    def gap(self, pair: Sides) -> Cells:
        """First less second, of every concept."""
        first, second = (np.array([each.value for each in self.measured[index]]) for index in pair.both)
        return np.asarray(first - second)

    def _one(self, members: Mask, column: int) -> Miscalibration:
        rows = np.flatnonzero(members & ~np.isnan(self._values[:, column]))
        cells, present = self._values[rows, column], self.data.present[rows, column]
        who = self.data.people.codes[rows]
        return miscalibration(cells, present, who, prevalence=float(self._prevalence[column]))

    def _judged(self, options: MeasureOptions) -> dict[tuple[int, int], Comparison]:
        """By pair and concept: all tested gaps are one family."""
        tested = [(int(index), int(column)) for index, column in np.argwhere(self._fewest >= FEWEST)]
        if not tested:
            return {}
        shuffles = self._shuffles(np.unique([column for _, column in tested]), options)
        moved = np.stack([shuffles[column][index] for index, column in tested], axis=1)
        people = np.array([self._fewest[place] for place in tested])
        (judged,) = judge([part_from_null(moved[0], moved[1:], people=people)])
        return {place: comparison_at(judged, number) for number, place in enumerate(tested)}

    def _shuffles(self, columns: Codes, options: MeasureOptions) -> dict[int, Floating]:
        """The gap of every pair as it is and when people change groups: pairs × (1 + shuffles), by column."""
        data = self.data
        moves = LabelShuffles(data.codes, data.people.codes, data.cells)
        made: dict[int, list[Floating]] = {int(column): [] for column in columns}
        bins = {column: self._bins(column) for column in made}
        for _, keys in moves.keys(options.rng(), options.shuffles):

            def walk(place: int, keys: Keys = keys) -> None:
                column = int(columns[place])
                labels = moves.labels(data.present[:, column], bins[column][1], keys)
                if not made[column]:
                    labels = np.concatenate([data.codes[:, None].astype(labels.dtype), labels], axis=1)
                matched, known = bins[column]
                first = [(labels[known] == pair.first).astype(np.float32) for pair in data.pairs]
                gaps = [matched.miscalibrations(own) - matched.miscalibrations(1 - own) for own in first]
                made[column].append(np.stack(gaps))

            each_concept(walk, len(columns))
        return {column: np.concatenate(parts, axis=1) for column, parts in made.items()}

    def _bins(self, column: int) -> tuple[MatchedBins, Mask]:
        known = ~np.isnan(self._values[:, column])
        cells, present = self._values[known, column], self.data.present[known, column]
        return MatchedBins(cells, present, float(self._prevalence[column])), known


def _miscalibration_rows(matched: MatchedCalibration, source: str) -> Iterator[Row]:
    """Miscalibration of every concept and group; notes give its root, in points."""
    data = matched.data
    for index, group in enumerate(data.groups.names):
        for column, concept in enumerate(data.concepts):
            (value, reach), n = matched.measured[index][column], int(matched.known[index, column])
            row = Row("disparity.miscalibration", value, n, SQUARED, group=group, concept=concept)
            few = FEW_TO_MATCH if n and np.isnan(value) else None
            row = row._replace(note=join((_note(n, source), few, _root(value))))
            yield row._replace(low=value - reach.below, high=value + reach.above) if n >= FEWEST else row


def _miscalibration_gap_rows(matched: MatchedCalibration) -> Iterator[Row]:
    """The gaps between groups, tested with shuffled labels, with bounds that hold for all of them at once."""
    data = matched.data
    for index, pair in enumerate(data.pairs):
        gaps = matched.gap(pair)
        for column, concept in enumerate(data.concepts):
            sizes, value = matched.known[pair.both, column], float(gaps[column])
            roots = [_root(matched.measured[side][column].value) for side in pair.both]
            notes = [_note(int(sizes.min()), None), f"{roots[0]}; {roots[1]}" if all(roots) else None]
            row = pair.row("miscalibration_gap", value, int(sizes.sum()), SQUARED, concept=concept)
            comparison = matched.judged.get((index, column))
            if comparison is None:
                verdict, few = (None, None) if np.isnan(value) else (TOO_LITTLE, FEW_TO_TEST)
                yield row._replace(note=join([*notes, few if sizes.min() >= FEWEST else None]), verdict=verdict)
                continue
            judged = comparison.rows(row._replace(note=join([*notes, TOGETHER])), data.strata)
            yield from (*judged, judged[0]._replace(metric="disparity.miscalibration_gap_simultaneous"))


def _root(value: float) -> str | None:
    if np.isnan(value):
        return None
    return f"root {100 * np.sqrt(value):.1f} points" if value > 0 else "no more than chance"


def _diagram(data: ConceptScores, values: Cells, columns: np.ndarray, concept: str | None) -> Iterator[Row]:
    """The share that shows the concept by bin of confidence. A bin can hold several cells of one image."""
    for index, group in enumerate(data.groups.names):
        rows, across = np.nonzero(data.sets[index][:, None] & ~np.isnan(values[:, columns]))
        cells, there = (table[rows, columns[across]] for table in (values, data.present))
        bins = calibrations.equal_width_bins(cells)
        for each in calibrations.reliability(cells, there):
            in_bin = bins == round(each.low * calibrations.BINS)
            low, high = clustered_share_interval(there[in_bin], data.people.codes[rows[in_bin]])
            row = Row("disparity.reliability", each.shows / each.n, each.n, PROBABILITY, group=group)
            counted = None if concept else f"n counts image × concept, of {len(np.unique(rows[in_bin]))} images"
            row = row._replace(subset=f"{each.low:.1f}–{each.high:.1f}", concept=concept, low=low, high=high)
            yield row._replace(expected=each.confidence, note=counted)
