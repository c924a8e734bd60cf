"""Does the model know people by name? Given an image, find the name; given a name, find the image.

A model that sees gender alone puts a person's name among half as many and so gets twice 1/n. The landmark is therefore
what the same scores give when names are shuffled among people with the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.metrics.association import chance, correct_rank, correct_share, first, half_precision_mean, softmax
from beholder.metrics.bootstrap import Resampler
from beholder.metrics.multiplicity import holm, shuffles_for
from beholder.prompts.prompt_set import correct_cells
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import PROBABILITY, join, mean_row
from beholder.studies.study import Matrices, MeasureOptions

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.integer]
IDENTITY = "identity"
"""The kind of the tasks that ask for names."""
LABELS = ("gender", "race", "ethnicity", "party", "sport", "academy_award")
"""What a model may know of a person without knowing who it is: names are shuffled within all that the data has."""
DIRECTIONS = ("image", "name")
"""What is given."""


def identity_rows(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Both directions of every branch; p-values are corrected over all of them."""
    branches = [whole for whole in matrices.values() if whole.kind == IDENTITY]
    shuffles = shuffles_for(len(DIRECTIONS) * len(branches))
    measured = [row for whole in branches for row in _branch(prefix, whole, options, shuffles)]
    tested = [place for place, row in enumerate(measured) if row.p_value is not None]
    corrected = holm(np.array([measured[place].p_value for place in tested], dtype=np.float64).reshape(1, -1))[0]
    for place, p_value in zip(tested, corrected, strict=True):
        note = f"{measured[place].note}, Holm over {len(tested)} tests"
        measured[place] = measured[place]._replace(p_value=float(p_value), note=note)
    yield from measured


def _branch(prefix: str, whole: ScoreMatrix, options: MeasureOptions, shuffles: int) -> Iterator[Row]:
    scored, left_out = scored_people(whole)
    matrix = _one_column_a_name(scored)
    if matrix.images.height < 2 or matrix.prompts.height < 2:
        return
    names, people = (matrix.prompts["concept"].to_numpy().astype(str), matrix.images["name"].to_numpy().astype(str))
    cells, correct = matrix.logits, correct_cells(matrix.prompts, matrix.images)
    shuffled = same_labels(matrix.images, names)
    for given, view, right, clusters, axis in (
        ("image", cells, correct, people, 1),
        ("name", cells.T, correct.T, names, 0),
    ):
        resampler = Resampler(clusters, options.rng(), options.draws)
        for row in _rows_given(f"{prefix}.identity_given_{given}", view, right, resampler):
            share = row.metric.endswith(given)
            if share and row.value is not None:
                gains = _gains(softmax(view), correct, shuffled.names, given)
                row = _against_shuffled(row, shuffled_names(gains, shuffled.groups, shuffles, options.rng()), shuffled)
            value = identity_as_published(scored, axis=axis) if options.compat and share else row.value
            yield row._replace(subset=whole.part, value=value, note=join((left_out, row.note)))


def _rows_given(metric: str, cells: Array, correct: npt.NDArray[np.bool_], resampler: Resampler) -> Iterator[Row]:
    shares, ranks = correct_share(softmax(cells), correct), correct_rank(cells, correct)
    by_chance = chance(correct)
    for name, values, unit, expected in (
        (metric, shares, PROBABILITY, by_chance.share),
        (f"{metric}_top1", first(ranks), PROBABILITY, by_chance.share),
        (f"{metric}_mrr", 1 / ranks, "reciprocal rank", by_chance.reciprocal_rank),
    ):
        yield mean_row(name, values, resampler)._replace(unit=unit, chance=expected)


# Names shuffled among people with the same labels


class SameLabels(NamedTuple):
    """The people who have both a name and a picture, and who of them have all labels in common."""

    labels: list[str]
    """The labels that the data has."""
    names: npt.NDArray[np.intp]
    """The column of each such person's name."""
    groups: Labels
    """A number for each person: equal where all labels are."""

    @property
    def alone(self) -> int:
        """How many share all labels with nobody: their names cannot be shuffled."""
        return int((np.bincount(self.groups)[self.groups] == 1).sum())


def same_labels(images: pl.DataFrame, names: npt.NDArray[np.str_]) -> SameLabels:
    """Whose names may be exchanged. A label that a person does not have is a value of its own."""
    labels = [name for name in LABELS if name in images.columns and images[name].n_unique() > 1]
    of_person = images.unique("name", keep="first", maintain_order=True).select(
        pl.col("name").cast(pl.String),
        group=pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in labels], separator="\0").rank(
            "dense"
        )
        if labels
        else pl.lit(1),
    )
    groups = dict(of_person.iter_rows())
    columns = [column for column, name in enumerate(names) if name in groups]
    return SameLabels(
        labels, np.array(columns, dtype=int), np.array([groups[names[c]] - 1 for c in columns], dtype=int)
    )


def _gains(shares: Array, correct: npt.NDArray[np.bool_], names: npt.NDArray[np.intp], given: str) -> Array:
    """`[person, name]`: what a person's pictures add to the mean when the person bears that name."""
    own = correct[:, names].astype(np.float64)
    if given == "image":
        return np.asarray(own.T @ shares[:, names] / own.sum())
    return np.asarray((shares[names] @ own).T / len(names))


class ShuffledNames(NamedTuple):
    """What shuffled names give on average, and how often as much as the right ones."""

    expected: float
    p_value: float
    at_most: bool
    """Whether no shuffle reached the right names: p is the smallest that the shuffles could give."""


def shuffled_names(gains: Array, groups: Labels, shuffles: int, rng: np.random.Generator) -> ShuffledNames:
    """The exact mean over all exchanges of names within groups, and how often shuffles reach what the right names give.

    >>> shuffled_names(np.array([[0.5, 0.1], [0.1, 0.5]]), np.array([0, 0]), 99, np.random.default_rng(0)).expected
    0.6
    """
    same = groups[:, None] == groups[None, :]
    expected = float((np.where(same, gains, 0.0).sum(axis=1) / same.sum(axis=1)).sum())
    order = np.argsort(groups, kind="stable")
    places = np.lexsort((rng.random((shuffles, len(groups))), np.broadcast_to(groups, (shuffles, len(groups)))))
    totals = gains[order, places].sum(axis=1)
    right = float(np.trace(gains))
    reached = int((totals >= right - ROUNDING * max(1.0, abs(right))).sum())
    return ShuffledNames(expected, (1 + reached) / (1 + shuffles), reached == 0)


ROUNDING = 1e-12
"""Sums of the same numbers in another order may differ by so much."""


def _against_shuffled(row: Row, shuffled: ShuffledNames, people: SameLabels) -> Row:
    """The row with its landmark and p; without a landmark where nobody shares all labels with anybody."""
    within = " and ".join(people.labels) or "the branch"
    if people.alone == len(people.names):
        note = f"no two people have the same {within}: names cannot be shuffled"
        return row._replace(note=join((row.note, note)))
    alone = f"{people.alone} people share {within} with nobody" if people.alone else None
    notes = join((row.note, alone, f"landmark and p: names shuffled within {within}"))
    return row._replace(
        landmark=shuffled.expected, p_value=shuffled.p_value, p_at_most=shuffled.at_most or None, note=notes
    )


# Scored people


def known_by_name(matrix: ScoreMatrix) -> pl.DataFrame:
    """For every scored person: `name`, and how much more likely the right name is than the labels explain, in e-folds.

    `gain` is the logit of the right name less those of the names of other people with the same labels, on average: how
    many names there are, and what they get together, does not matter. `known` is the same without what a name gets
    whoever is shown. Null for people who share their labels with nobody.
    """
    matrix = _one_column_a_name(scored_people(matrix)[0])
    names = matrix.prompts["concept"].to_numpy().astype(str)
    same = same_labels(matrix.images, names)
    gain, known = np.full((2, len(same.names)), np.nan)
    if len(same.names):
        own = correct_cells(matrix.prompts, matrix.images)[:, same.names].astype(np.float64)
        logits = own.T @ matrix.logits[:, same.names] / own.sum(axis=0)[:, None]
        for mine in (np.flatnonzero(same.groups == group) for group in np.unique(same.groups)):
            if (size := len(mine)) > 1:
                left = logits[np.ix_(mine, mine)]
                left = (left - left.mean(axis=1, keepdims=True)) * size / (size - 1)
                gain[mine] = np.diag(left)
                known[mine] = np.diag(left - left.mean(axis=0))
    return pl.DataFrame({"name": names[same.names], "gain": gain, "known": known}).fill_nan(None)


def scored_people(matrix: ScoreMatrix) -> tuple[ScoreMatrix, str | None]:
    """The names and images that have scores, and a note on those that have none."""
    all_images, all_names = matrix.images.height, matrix.prompts["concept"].n_unique()
    matrix = matrix.columns(np.asarray(~np.isnan(matrix.values).all(axis=(0, 2))))
    matrix = matrix.complete_rows() if matrix.prompts.height else matrix.rows(np.zeros(all_images, dtype=bool))
    images, names = matrix.images.height, matrix.prompts["concept"].n_unique()
    if (images, names) == (all_images, all_names):
        return matrix, None
    return matrix, f"among {images} of {all_images} images and {names} of {all_names} names"


def _one_column_a_name(matrix: ScoreMatrix) -> ScoreMatrix:
    """A name is one option: of a name with two columns (a person with two rows in the source) the last one is kept."""
    last = {name: column for column, name in enumerate(matrix.prompts["concept"].to_list())}
    return matrix.columns(np.array(sorted(last.values()), dtype=int))


def identity_as_published(matrix: ScoreMatrix, *, axis: int) -> float:
    """Mean diagonal as the released scripts take it.

    There is one column per image row, so a person with two photographs is two options. The diagonal is then keyed by
    name, so only the last of the two counts. Values and mean are float16. Images whose name has no scores are left out.
    """
    columns = matrix.prompts["concept"].to_list()
    matrix = matrix.rows(matrix.images["name"].is_in(columns).to_numpy())
    people = matrix.images["name"].to_list()
    if not people:
        return float("nan")
    of_name = {name: [c for c, other in enumerate(columns) if other == name] for name in columns}
    seen: dict[str, int] = {}
    chosen = []
    for name in people:
        own, nth = of_name[name], seen.get(name, 0)
        chosen.append(own[min(nth, len(own) - 1)])
        seen[name] = nth + 1
    diagonal = np.diag(softmax(matrix.logits[:, chosen], axis=axis))
    last = {name: row for row, name in enumerate(people)}
    return half_precision_mean(diagonal[sorted(last.values())])
