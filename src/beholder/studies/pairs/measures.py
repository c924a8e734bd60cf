"""What changes in a scene when only the person changes, and whether that is more than chance.

The unit is the scene: if the person did not matter, any two people of a scene could change places, so that the scene's
difference would change its sign. Scenes that show the same person flip together. All parts, labels and questions are
one family.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, Judged, comparison_at, judge
from beholder.comparison.groups import CROSSING, group_by, people_of
from beholder.comparison.shuffles import compare_pairs
from beholder.core.errors import BeholderError
from beholder.core.read import column_in
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.metrics.association import softmax
from beholder.metrics.intervals import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import PROBABILITY, mean_row
from beholder.studies.study import Matrices, MeasureOptions

LABELS = ("gender", "race")
CHOICE, UNCLEAR = OUTCOMES = ("choice", "unclear")
ANSWERED = "answered"
LEAST, MUTE = 0.5, 0.1  # of its belief on letters: with less, "none found" is no all-clear; and what is found, nothing
ROUNDING = 1e-7  # differences of probabilities below this are rounding
FEWEST_SCENES = 6  # scenes of a question below which it is not compared by itself


class Contrast(NamedTuple):
    """Two people of a scene: the values of one label, or of two labels that are crossed."""

    labels: tuple[str, ...]
    group: tuple[str, ...]
    against: tuple[str, ...]

    def row(self, ending: str, part: str | None, question: str | None, n: int) -> Row:
        """Its place in the results."""
        subset, group, against = map(CROSSING.join, self)
        return Row(f"pairs.{ending}", 0.0, n, PROBABILITY, subset, group, against, question, part)


def answers_of(matrix: ScoreMatrix) -> Iterator[pl.DataFrame]:
    """For every question, each image with how often it gets the favourable option, and how often it is unclear."""
    for question in matrix.prompts["level"].unique(maintain_order=True):
        own = matrix.level(question)
        orders, answers = own.prompts["template"].to_list(), own.answers()
        if answers is not None:  # the letters A and B of all six orders
            read = {
                sign: [answers[order.index(sign)][:, k] for k, order in enumerate(orders) if order[2] != sign]
                for sign in "+-?"
            }
            favourable, other, unclear = (np.mean(cells, axis=0) for cells in read.values())
            whole = np.maximum(favourable + other + unclear, 1.0)  # more than 1 for a model that prefers a place
            letters = np.minimum(favourable + other + unclear, 1.0)
            choice, unclear = (1 + (favourable - other) / whole) / 2, unclear / whole
        elif {*orders} == {"+", "-"} and len(own.prompts) == 2:
            choice = softmax(own.logits)[:, orders.index("+")]
            unclear = letters = np.full(len(choice), np.nan)
        else:
            raise BeholderError(
                "pairs reads the probabilities of two letters, or a score for each of two statements.\n"
                "Imported scores need a column for every statement, such as 'a photo of a pilot'."
            )
        values = {CHOICE: choice, UNCLEAR: unclear, ANSWERED: letters}
        yield matrix.images.with_columns(
            question=pl.lit(question), **{k: pl.Series(v).fill_nan(None) for k, v in values.items()}
        )


def pair_rows(by: Sequence[str], matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Means of every group, then every two people of a scene: in all parts, in each, and in frequent questions."""
    answers = pl.concat([table for matrix in matrices.values() for table in answers_of(matrix)], how="diagonal_relaxed")
    part = pl.col("part") if "part" in answers.columns else pl.lit(None)
    answers = answers.with_columns(pl.col("pair").cast(pl.String), part=part.cast(pl.String).fill_null("all scenes"))
    labels = [column_in(answers, name) for name in by] or [name for name in LABELS if name in answers.columns]
    answers = answers.with_columns(pl.col(name).cast(pl.String) for name in labels)
    labels = [name for name in labels if answers[name].drop_nulls().n_unique() > 1]
    parts = answers["part"].unique(maintain_order=True).to_list()
    units, compared = _units(answers, options.person), []
    for name in [None, *parts] if len(parts) > 1 else parts:
        own = answers if name is None else answers.filter(part=name)
        yield from _means(own, name, labels, options)
        columns = list(_columns(own, name, labels))
        shares, weights = _shares([values for _, values in columns], units)
        compared.append((columns, compare_pairs(shares, weights, options.rng(), options.shuffles)))
    known = answers.group_by("image_id", maintain_order=True).agg(pl.col(ANSWERED).mean())[ANSWERED].drop_nulls()
    answered = float(known.mean()) if len(known) else 1.0  # type: ignore[arg-type]
    unsaid = [NONE_FOUND] * (answered < LEAST) + [DIFFERENCE] * (answered < MUTE)
    if len(known):
        drawn = Resampler(np.arange(len(known)), options.rng(), options.draws)
        yield mean_row(f"pairs.{ANSWERED}", known.to_numpy(), drawn)
    for (columns, _), judged in zip(compared, judge([part for _, part in compared]), strict=True):
        yield from _judged([row for row, _ in columns], judged, unsaid)


def _judged(rows: Sequence[Row], judged: Judged, unsaid: Sequence[str]) -> Iterator[Row]:
    for place, row in enumerate(rows):
        one = comparison_at(judged, place)
        if one.verdict in unsaid:
            one = one._replace(verdict=NOT_MEASURED)
        note = "interval and p hold for all parts, labels and questions together"
        if np.isfinite(one.value):
            yield from one.rows(row._replace(value=one.value, note=note), least=-2.0, most=2.0)


def _asked(own: pl.DataFrame) -> list[str | None]:
    """All questions together; and those of a part that are asked of many of its scenes."""
    scenes = own.group_by("question", maintain_order=True).agg(pl.col("pair").n_unique())
    many = scenes.filter(pl.col("pair") >= FEWEST_SCENES)["question"].to_list()
    return [None, *(many if own["part"].n_unique() == 1 < scenes.height else [])]


def _means(own: pl.DataFrame, part: str | None, labels: Sequence[str], options: MeasureOptions) -> Iterator[Row]:
    """Each group's mean; scenes are drawn for the interval."""
    for question in _asked(own):
        some = own if question is None else own.filter(question=question)
        for label, outcome in ((label, outcome) for label in labels for outcome in OUTCOMES):
            groups = group_by(some, (label,))
            for name in groups.names:
                images = some.filter(groups.mask(name)).group_by("image_id", "pair", maintain_order=True)
                mine = images.agg(pl.col(outcome).mean())
                values = mine[outcome].cast(pl.Float64).fill_null(np.nan).to_numpy()
                if not np.isnan(values).all():
                    scenes = mine["pair"].rank("dense").to_numpy().astype(np.intp) - 1
                    row = mean_row(f"pairs.{outcome}", values, Resampler(scenes, options.rng(), options.draws))
                    yield row._replace(subset=label, group=name, template=part, concept=question)


def _columns(own: pl.DataFrame, part: str | None, labels: Sequence[str]) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Every number that is compared: its row, and the difference of every scene that has one."""
    cells = own.group_by(["pair", "question", *labels], maintain_order=True).agg(pl.col(OUTCOMES).mean())
    pairs = {label: list(combinations(group_by(own, (label,)).names, 2)) for label in labels}
    single = [Contrast((a,), (i,), (j,)) for a in labels for i, j in pairs[a]]
    crossed = [
        Contrast(two, (one[0], other[0]), (one[1], other[1]))
        for two in combinations(labels, 2)
        for one, other in product(pairs[two[0]], pairs[two[1]])
    ]
    for contrast in (*single, *crossed):
        of_question = (
            reduce(_less, zip(*contrast, strict=True), cells)
            .group_by(["pair", "question"])
            .agg(pl.col(OUTCOMES).mean())
        )
        for outcome in OUTCOMES if len(contrast.labels) == 1 else (CHOICE,):
            kind = "interaction" if len(contrast.labels) > 1 else "gap" if outcome == CHOICE else "unclear_gap"
            known = of_question.select("pair", "question", value=outcome).drop_nulls()
            for question in _asked(own) if kind == "gap" else [None]:
                some = known if question is None else known.filter(question=question)
                scenes = some.group_by("pair", maintain_order=True).agg(pl.col("value").mean())
                if scenes.height:
                    yield contrast.row(kind, part, question, scenes.height), scenes


def _less(cells: pl.DataFrame, contrast: tuple[str, str, str]) -> pl.DataFrame:
    """The first value of a label less the second, in every cell of the other labels that has both."""
    label, *values = contrast
    one, other = (cells.filter(pl.col(label) == value).drop(label) for value in values)
    keys = [name for name in one.columns if name not in OUTCOMES]
    both = one.join(other, on=keys, suffix=" of other", nulls_equal=True, maintain_order="left")
    return both.select(*keys, *(pl.col(name) - pl.col(f"{name} of other") for name in OUTCOMES))


def _units(answers: pl.DataFrame, person: str | None) -> dict[str, int]:
    """By scene, the number of its unit: scenes that show the same person are one."""
    names = answers["pair"].unique(maintain_order=True)
    scenes: Codes = answers["pair"].replace_strict(names, pl.int_range(len(names), eager=True)).to_numpy()
    images = answers.unique("image_id", maintain_order=True)
    people = people_of(images, person)
    of_image = dict(zip(images["image_id"], people.codes, strict=True))
    shown = np.array([of_image[image] for image in answers["image_id"]])
    size = len(names) + len(people)
    edges = coo_array((np.ones(len(scenes)), (scenes, len(names) + shown)), shape=(size, size))
    return dict(zip(names, connected_components(edges, directed=False)[1][: len(names)].tolist(), strict=True))


def _shares(columns: Sequence[pl.DataFrame], units: dict[str, int]) -> tuple[Array, Array]:
    """What every unit adds to each mean difference, and its weight: `[n_units, n_columns]`."""
    there = sorted({units[pair] for values in columns for pair in values["pair"]})
    rows = {unit: row for row, unit in enumerate(there)}
    shares, weights = np.zeros((2, len(there), len(columns)))
    for column, scenes in enumerate(columns):
        at = [rows[units[pair]] for pair in scenes["pair"]]
        values = scenes["value"].to_numpy()
        np.add.at(shares[:, column], at, np.where(np.abs(values) > ROUNDING, values, 0.0) / len(at))
        np.add.at(weights[:, column], at, 1 / len(at))
    return shares, weights
