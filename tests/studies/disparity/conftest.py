"""Made-up worlds of objects whose answer is known, measured once for all tests of disparity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder._steps import measure as audit_measure
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.study import Choices, disparity_study
from beholder.studies.inquiry import Inquiry
from beholder.studies.study import MeasureOptions

VECTORS = "tie 1 0\nhandbag 0 1\ndog 1 0\nchair 0.2 1\nman 1 0.1\nwoman 0.1 1\n"
Measure = Callable[..., pl.DataFrame]


@pytest.fixture(scope="session")
def measure() -> Measure:
    """`measure(matrix, choices)`: the results of disparity, from few draws."""

    def measured(matrix: ScoreMatrix, choices: Choices | None = None, *, model: str = "m", **options: Any) -> Any:
        inquiry = Inquiry(disparity_study(choices), matrix.dataset)
        return audit_measure(inquiry, [matrix], MeasureOptions(**{"draws": 200, **options}), model=model)

    return measured


@pytest.fixture(scope="session")
def one() -> Callable[..., dict[str, Any]]:
    """`one(results, metric, concept="tie")`: the one row that fits."""

    def only(results: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
        (row,) = results.filter(pl.col("metric") == f"disparity.{metric}", **where).to_dicts()
        return row

    return only


@pytest.fixture(scope="session")
def matrix(object_world: Callable[..., ScoreMatrix]) -> ScoreMatrix:
    """A detector that sees ties worse with women; men are shown with dogs more often."""
    rare = {("man", "dog"): 0.5, ("woman", "dog"): 0.1}
    return object_world(600, worse={("woman", "tie"): 1.4}, rare=rare)


@pytest.fixture(scope="session")
def results(matrix: ScoreMatrix, measure: Measure) -> pl.DataFrame:
    return measure(matrix)


@pytest.fixture(scope="session")
def quiet(object_world: Callable[..., ScoreMatrix], measure: Measure) -> pl.DataFrame:
    """A detector that sees everything equally well with everybody."""
    return measure(object_world(300))


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Word vectors that put ties and dogs nearer to men."""
    path = tmp_path_factory.mktemp("words") / "vectors.txt"
    path.write_text(VECTORS)
    return path


@pytest.fixture(scope="session")
def full(object_world: Callable[..., ScoreMatrix], measure: Measure, vectors: Path) -> pl.DataFrame:
    """Everything that disparity can measure: gaps in both directions, word vectors, a second data set."""
    choices = Choices(word_vectors=vectors)
    worse = {("woman", "tie"): 1.4, ("man", "handbag"): 1.2}
    rare = {("man", "dog"): 0.5, ("woman", "dog"): 0.1}
    here, there = (
        measure(object_world(600, worse=worse, rare=rare, name=name, seed=seed), choices, model="Detic", draws=150)
        for seed, name in enumerate(("coco", "visual-genome"), 1)
    )
    study = disparity_study(Choices(beside=there))
    return pl.concat([here, study.measures.across(here, False)])


@pytest.fixture(scope="session")
def three_groups(object_world: Callable[..., ScoreMatrix], measure: Measure) -> pl.DataFrame:
    """Three groups; ties are seen worse with b."""
    return measure(object_world(900, groups=("a", "b", "c"), worse={("b", "tie"): 1.5}, seed=4))
