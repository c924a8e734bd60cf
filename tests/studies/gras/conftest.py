"""Small made-up worlds whose answer is known, and what reads their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.core.results import Row
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

TRAITS = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})


def world(n: int = 400, effect: float = 0.0, seed: int = 1, channels=("score",)) -> ScoreMatrix:
    """Noise, and an effect of gender on the trait `kind`."""
    rng = np.random.default_rng(seed)
    prompts = gras_prompts(TRAITS).table
    images = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "part": ["fairface"] * n,
            "gender": rng.choice(["Female", "Male"], n),
            "skin_tone": rng.choice([str(tone) for tone in range(1, 11)], n),
        }
    )
    values = rng.normal(0.5, 0.05, (n, prompts.height, 1))
    values[(images["gender"] == "Female").to_numpy(), :5, 0] += effect
    layers = [np.log(values / k) for k in (1, 2, 4)] if len(channels) > 1 else [values]
    return ScoreMatrix("gras", images, prompts, channels, np.concatenate(layers, axis=2))


def measure(matrix: ScoreMatrix, **options) -> list[Row]:
    """The study's rows, with few shuffles."""
    return list(
        GRAS.measures.functions[0]({"gras": matrix}, MeasureOptions(permutations=20, **{"shuffles": 499, **options}))
    )


def one(rows: list[Row], metric: str, **where: str) -> Row:
    """The only row of a metric with these values."""
    (row,) = [
        row for row in rows if row.metric == f"gras.{metric}" and all(getattr(row, k) == v for k, v in where.items())
    ]
    return row


def only(matrix: ScoreMatrix, *templates: str, rows=slice(None)) -> ScoreMatrix:
    """The matrix with nothing but these wordings, of all images or of some."""
    other = ~np.isin(matrix.prompts["template"], templates)
    values = matrix.values.copy()
    values[rows] = np.where(other[None, :, None], np.nan, values[rows])
    return replace(matrix, values=values)


def crossed(n: int = 600, favoured: float = 0.0) -> ScoreMatrix:
    """Three attributes, and an intersection that gets the trait `kind` more often."""
    rng = np.random.default_rng(6)
    matrix = world(n)
    images = matrix.images.with_columns(
        race=pl.Series(rng.choice(["A", "B", "C"], n)), age=pl.Series(rng.choice(["20", "40"], n))
    )
    cell = ((images["gender"] == "Male") & (images["race"] == "C") & (images["age"] == "40")).to_numpy()
    matrix.values[cell, :5, 0] += favoured
    return replace(matrix, images=images)


@pytest.fixture(scope="session", name="world")
def world_fixture():
    return world


@pytest.fixture(scope="session", name="measure")
def measure_fixture():
    return measure


@pytest.fixture(scope="session", name="one")
def one_fixture():
    return one


@pytest.fixture(scope="session", name="only")
def only_fixture():
    return only


@pytest.fixture(scope="session", name="crossed")
def crossed_fixture():
    return crossed


@pytest.fixture(scope="session")
def without():
    """Makes the run that there would be if an attribute had no images."""

    def run_without(run: Run, attribute: str) -> Run:
        return Run(run.results.filter((pl.col("subset") != attribute) | pl.col("subset").is_null()), run.record)

    return run_without
