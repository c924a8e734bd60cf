"""Made-up images and scores that Perception's tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from beholder.chapter.finding import deciding_rows
from beholder.core.results import PLAIN, results_table
from beholder.glasshouse.world import design
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import DIMENSIONS, POSITIVE, Dimension, perception_prompts
from beholder.studies.perception.scores import Judged
from beholder.studies.perception.study import PERCEPTION
from beholder.studies.study import MeasureOptions, Study

OPTIONS = MeasureOptions(draws=200, permutations=30, shuffles=399)
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


WORDS = ("warm", "friendly", "honest", "likable")
DIMENSION = Dimension("warmth", "Warmth", WORDS, POSITIVE)
MEN, WOMEN = "man", "woman"


def two_groups(n: int, effect: float, seed: int) -> Judged:
    """Men, then women, who differ in noise of the picture and of the word; men score `effect` higher on every word."""
    draw, men = rng(seed), np.repeat([1.0, 0.0], n)
    cells = draw.normal(size=(2 * n, 1)) + draw.normal(size=(2 * n, len(WORDS))) + effect * men[:, None]
    images = pl.DataFrame({"image_id": [str(i) for i in range(2 * n)], "gender": np.repeat([MEN, WOMEN], n)})
    return Judged(images, list(WORDS), cells, cells, np.zeros(2 * n), (DIMENSION,), "cosine", {})


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
    rows = [row for measure in study.measures.functions for row in measure({sheet.task: sheet}, options)]
    return results_table(rows, study="perception", model="a model", dataset=dataset)


def one(results: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
    """The only published row of a metric with these values."""
    (row,) = results.filter(pl.col("metric") == f"perception.{metric}", PLAIN, **where).to_dicts()
    return row


def decided(results: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
    """The only row of a metric with these values that decides."""
    (row,) = deciding_rows(results, metric).filter(**where).to_dicts()
    return row
