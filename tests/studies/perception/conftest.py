"""Results that several of Perception's tests read, measured once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import designed, matrix, measured, noise, photographs, words_of

from beholder.chapter.charts import Figure
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.charts import perception_figures


@pytest.fixture(scope="session")
def faces() -> ScoreMatrix:
    """Noise: photographs that the model judges alike."""
    return matrix(photographs())


@pytest.fixture(scope="session")
def results(faces: ScoreMatrix) -> pl.DataFrame:
    return measured(faces, dataset="fairface-adults")


@pytest.fixture(scope="session")
def matched() -> pl.DataFrame:
    """Drawn people whose smile is warm, that of women twice as warm."""
    images = designed(10, lighting=0, pose=0)
    women = (images["gender"] == "woman").to_numpy()
    warmth = np.outer((0.02 + 0.02 * women) * images["smiling"].to_numpy() / 4, words_of("warmth"))
    return measured(matrix(images, noise(images) + warmth), dataset="glasshouse-design")


@pytest.fixture(scope="session")
def drawn(matched: pl.DataFrame) -> dict[str, Figure]:
    return {figure.name: figure for figure in perception_figures(matched)}
