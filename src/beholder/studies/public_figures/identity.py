"""Does the model know people by name? Given an image, find the name; given a name, find the image.

A model that sees gender alone puts a person's name among half as many and so gets twice 1/n. The landmark is therefore
what the same scores give when names are exchanged among people with the same labels.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.shuffles import exchanged
from beholder.core.results import Row
from beholder.core.types import Codes
from beholder.metrics.association import chance, correct_rank, correct_share, first, half_precision_mean, softmax
from beholder.metrics.intervals import Resampler
from beholder.prompts.prompt_set import correct_cells
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.measures import POOL, Tested, tested_rows
from beholder.studies.rows import PROBABILITY, join, mean_row
from beholder.studies.study import Matrices, MeasureOptions

IDENTITY = "identity"  # the kind of the tasks that ask for names
LABELS = ("gender", "race", "ethnicity", "party", "sport", "academy_award")  # names are exchanged within all of these
DECLARED = ("occupation", "specialty")  # and, where the data declares what its people are, within these


def identity_rows(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Both directions of every branch: all are one family."""
    rng, asked = options.rng(), [matrix for matrix in matrices.values() if matrix.kind == IDENTITY]
    yield from tested_rows([each for whole in asked for each in _branch(prefix, whole, rng, options)])


def _branch(prefix: str, whole: ScoreMatrix, rng: np.random.Generator, options: MeasureOptions) -> Iterator[Tested]:
    scored, left_out = scored_people(whole)
    matrix = _one_column_a_name(scored)
    if matrix.images.height < 2 or matrix.prompts.height < 2:
        return
    names, people = (matrix.prompts["concept"].to_numpy().astype(str), matrix.images["name"].to_numpy().astype(str))
    cells, correct = matrix.logits, correct_cells(matrix.prompts, matrix.images)
    same = same_labels(matrix.images, names, options.within)
    own = correct[:, same.names].astype(np.float64)
    for given, view, right, clusters, axis in (
        ("image", cells, correct, people, 1),
        ("name", cells.T, correct.T, names, 0),
    ):
        metric, resampler = f"{prefix}.identity_given_{given}", Resampler(clusters, options.rng(), options.draws)
        shares, ranks, by_chance = softmax(view), correct_rank(view, right), chance(right)
        row = mean_row(metric, correct_share(shares, right), resampler)
        row = row._replace(subset=whole.part, chance=by_chance.share, note=join((left_out, row.note, same.note)))
        # `[person, name]`: the mean that the published measure would be if all were like this person, so called.
        beliefs = own.T @ shares[:, same.names] / own.sum() * len(same.names) if axis else (shares[same.names] @ own).T
        made = exchanged(beliefs, np.arange(len(same.names)), same.groups, rng, options.shuffles)
        row = row._replace(value=identity_as_published(scored, axis=axis)) if options.compat else row
        yield Tested(row, made, same.labels or ["branch"])
        for ending, values, unit, expected in (
            ("_top1", first(ranks), PROBABILITY, by_chance.share),
            ("_mrr", 1 / ranks, "reciprocal rank", by_chance.reciprocal_rank),
        ):
            row = mean_row(f"{metric}{ending}", values, resampler)._replace(unit=unit, chance=expected)
            yield Tested(row._replace(subset=whole.part, note=join((left_out, row.note))))


class SameLabels(NamedTuple):
    """The people who have both a name and a picture, and who of them have all labels in common."""

    labels: list[str]  # that the data has
    names: Codes  # the column of each such person's name
    groups: Codes  # a number for each person: equal where all labels are

    @property
    def note(self) -> str | None:
        """How many share all labels with nobody: their names cannot be exchanged."""
        alone, within = int((np.bincount(self.groups)[self.groups] == 1).sum()), " and ".join(self.labels)
        if alone == len(self.names):
            return f"no two people have the same {within}: names cannot be exchanged"
        return f"{alone} people share {within} with nobody" if alone else None


def same_labels(images: pl.DataFrame, names: npt.NDArray[np.str_], within: Sequence[str] = ()) -> SameLabels:
    """Whose names may be exchanged. A label that a person does not have is a value of its own."""
    every = dict.fromkeys((*LABELS, *(DECLARED if POOL in images.columns else ()), *within))
    labels = [name for name in every if name in images.columns and images[name].n_unique() > 1]
    values = [pl.lit(""), *(pl.col(name).cast(pl.String).fill_null("") for name in labels)]
    of_person = images.unique("name", keep="first", maintain_order=True)
    same = pl.concat_str(values, separator="\0").rank("dense") - 1
    groups = dict(of_person.select(pl.col("name").cast(pl.String), same).iter_rows())
    columns = [column for column, name in enumerate(names) if name in groups]
    return SameLabels(labels, np.array(columns, dtype=int), np.array([groups[names[c]] for c in columns], dtype=int))


def known_by_name(matrix: ScoreMatrix) -> pl.DataFrame:
    """For every scored person: `name`, and how much more likely the right name is than the labels explain, in e-folds.

    `gain` is the logit of the right name less those of others with the same labels, on average; `known` is the same
    without what a name gets whoever is shown. Null for people who share their labels with nobody.
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
    """Mean diagonal as the released scripts take it."""
    # There is one column per image row, so a person with two photographs is two options. The diagonal is then keyed by
    # name, so only the last of the two counts. Values and mean are float16. Images whose name has no scores are left
    # out.
    columns = matrix.prompts["concept"].to_list()
    matrix = matrix.rows(matrix.images["name"].is_in(columns).to_numpy())
    people = matrix.images["name"].to_list()
    if not people:
        return float("nan")
    of_name = {name: [c for c, other in enumerate(columns) if other == name] for name in columns}
    turn = [people[:row].count(name) for row, name in enumerate(people)]
    chosen = [of_name[name][min(number, len(of_name[name]) - 1)] for name, number in zip(people, turn, strict=True)]
    diagonal = np.diag(softmax(matrix.logits[:, chosen], axis=axis))
    last = {name: row for row, name in enumerate(people)}
    return half_precision_mean(diagonal[sorted(last.values())])
