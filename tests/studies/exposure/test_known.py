"""Who is known by name: what labels, the number of names and a liking for some names explain is no knowledge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.exposure.measures import EVERYONE, UNADJUSTED, identity_rows
from beholder.studies.public_figures.identity import known_by_name
from beholder.studies.study import MeasureOptions

WOMEN, MEN = 12, 36
WOMAN = np.arange(WOMEN + MEN) < WOMEN


def faces(cells: np.ndarray, gender: np.ndarray | None = None) -> pl.DataFrame:
    """What is known of people of one branch, with captions at random."""
    n, genders = len(cells), np.where(WOMAN if gender is None else gender, "woman", "man")
    names = [f"person {i}" for i in range(n)]
    images = pl.DataFrame({"image_id": names, "name": names, "gender": genders})
    prompts = identity_prompts("names", "{}", names).table
    known = known_by_name(ScoreMatrix("x", images, prompts, ("logit_true",), cells[:, :, None], part="x"))
    captions = np.random.default_rng(1).poisson(9, n)
    people = images.with_columns(branch=pl.lit("x"), ambiguous=pl.lit(None, pl.String), captions=captions)
    return people.join(known, on="name", maintain_order="left")


def noise(seed: int = 0, size: int = WOMEN + MEN) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((size, size))


def gap(cells: np.ndarray) -> tuple[float | None, str | None]:
    rows = identity_rows(faces(cells), MeasureOptions(shuffles=299))
    return next((row.value, row.verdict) for row in rows if row.concept == UNADJUSTED)


def test_a_gain_is_over_the_names_of_others_with_the_same_labels():
    cells = noise()
    for row, gain in enumerate(faces(cells)["gain"]):
        others = [other for other in range(len(cells)) if other != row and WOMAN[other] == WOMAN[row]]
        assert gain == pytest.approx(cells[row, row] - cells[row, others].mean())


def test_what_a_name_gets_whoever_is_shown_is_not_known():
    liked, seen = np.random.default_rng(2).standard_normal((2, WOMEN + MEN))
    table = faces(liked[None, :] + seen[:, None] + 1.5 * np.eye(WOMEN + MEN))
    np.testing.assert_allclose(table["known"], 1.5)
    assert table["gain"].std() > 0.5


def test_a_model_that_knows_gender_alone_does_not_know_women_better():
    """There are fewer names of women, so that each of them gets more probability."""
    cells = 3.0 * (WOMAN[:, None] == WOMAN[None, :]) + 0.1 * noise()
    shares = np.exp(cells) / np.exp(cells).sum(axis=1, keepdims=True)
    assert np.diag(shares)[WOMAN].mean() > 2 * np.diag(shares)[~WOMAN].mean()
    assert gap(cells)[1] == NONE_FOUND


def test_equal_knowledge_is_equal_however_many_names_there_are():
    value, verdict = gap(noise() + 2 * np.eye(WOMEN + MEN))
    assert verdict == NONE_FOUND
    assert 0.5 < value < 2


def test_a_model_that_knows_women_alone_is_found():
    value, verdict = gap(0.1 * noise() + 2 * np.diag(WOMAN))
    assert verdict == DIFFERENCE
    assert value == pytest.approx(np.exp(2), rel=0.1)


def test_who_shares_all_labels_with_nobody_has_no_gain():
    table = faces(noise(size=4), np.array([True, False, False, False]))
    assert table["gain"].is_null().to_list() == [True, False, False, False]


@pytest.mark.slow
def test_gender_alone_raises_no_alarm_about_captions_or_names():
    """Women are named more often, and the model sees gender alone."""
    called = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        people = faces(3.0 * (WOMAN[:, None] == WOMAN[None, :]) + noise(seed)).with_columns(
            captions=pl.Series(rng.poisson(np.where(WOMAN, 20, 2)))
        )
        rows = identity_rows(people, MeasureOptions(shuffles=199))
        called += any(row.verdict == DIFFERENCE for row in rows if row.subset in ("x", EVERYONE))
    assert called <= 9  # two claims at 5 % each
