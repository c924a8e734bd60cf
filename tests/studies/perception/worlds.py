"""Made-up images and scores that Perception's tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from beholder.core.results import results_table
from beholder.glasshouse.design import design
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import DIMENSIONS, perception_prompts
from beholder.studies.perception.study import PERCEPTION
from beholder.studies.study import MeasureOptions, Study

OPTIONS = MeasureOptions(draws=200, permutations=30)
RACES, GENDERS = ("White", "Black", "Asian"), ("Male", "Female")
PROMPTS = perception_prompts().table


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def photographs(
    count: int = 240, *, races: tuple[str, ...] = RACES, genders: tuple[str, ...] = GENDERS
) -> pl.DataFrame:
    """A table like that of FairFace's adults."""
    draw = rng(5)
    return pl.DataFrame(
        {
            "image_id": [f"train/{i}.jpg" for i in range(count)],
            "uri": [f"/nowhere/train/{i}.jpg" for i in range(count)],
            "split": ["train"] * count,
            "race": draw.choice(races, count),
            "gender": draw.choice(genders, count),
            "age": draw.choice([25.0, 35.0, 45.0, 55.0], count),
        }
    )


def designed(identities: int = 6, **fixed: int) -> pl.DataFrame:
    """The drawn design, with some attributes at one value; without pictures, so that no brightness map is drawn."""
    return pl.DataFrame(design(identities)).filter(**fixed).with_columns(uri="/nowhere/" + pl.col("image_id"))


def words_of(name: str, prompts: pl.DataFrame = PROMPTS) -> np.ndarray:
    """Which prompts have a word of the dimension."""
    (words,) = [dimension.words for dimension in DIMENSIONS if dimension.name == name]
    return prompts["concept"].is_in(words).to_numpy()


def noise(images: pl.DataFrame, *, seed: int = 1, spread: float = 0.01, prompts: pl.DataFrame = PROMPTS) -> np.ndarray:
    """Scores of every image and prompt around 0.2."""
    return rng(seed).normal(0.2, spread, (images.height, prompts.height))


def matrix(
    images: pl.DataFrame, cells: np.ndarray | None = None, *, channel: str = "cosine", prompts: pl.DataFrame = PROMPTS
) -> ScoreMatrix:
    cells = noise(images, seed=2, spread=0.02, prompts=prompts) if cells is None else cells
    return ScoreMatrix("perception", images, prompts, (channel,), cells[:, :, None])


def measured(
    sheet: ScoreMatrix, study: Study = PERCEPTION, options: MeasureOptions = OPTIONS, *, dataset: str = "d"
) -> pl.DataFrame:
    rows = [row for measure in study.measures for row in measure({sheet.task: sheet}, options)]
    return results_table(rows, benchmark="perception", model="a model", dataset=dataset)


def one(results: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
    """The only row of a metric with these values."""
    (row,) = results.filter(pl.col("metric") == f"perception.{metric}", **where).to_dicts()
    return row
