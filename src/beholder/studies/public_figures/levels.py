"""One level of prompts for one or several branches: images, shares of belief, and which cells are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.metrics.association import softmax
from beholder.prompts.prompt_set import correct_cells
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import Matrices

Array = npt.NDArray[np.float64]
LEVELS = ("category", "occupation", "specialty")
GROUPS = ("woman", "man")
ASSOCIATION = "association"
"""The kind of the tasks that ask what people are."""


class Level(NamedTuple):
    """One level of one or several branches: images, shares of belief, and which cells are right."""

    images: pl.DataFrame
    concepts: list[str]
    shares: Array
    correct: npt.NDArray[np.bool_]
    left_out: str | None


def scored_branches(matrices: Matrices) -> dict[str, ScoreMatrix]:
    """The scores of what people are, by branch."""
    return {matrix.part: matrix for matrix in matrices.values() if matrix.kind == ASSOCIATION}


def read_level(matrices: Sequence[ScoreMatrix], name: str) -> Level:
    """One level of several branches: the images for which all its prompts were scored."""
    parts = [matrix.level(name).complete_rows() for matrix in matrices if matrix.level(name).prompts.height]
    parts = [part for part in parts if part.images.height]
    if not parts:
        return Level(pl.DataFrame(), [], np.empty((0, 0)), np.empty((0, 0), bool), None)
    total = sum(matrix.images.height for matrix in matrices)
    images = pl.concat([part.images for part in parts], how="diagonal")
    left_out = f"{total - images.height} of {total} images lack a score" if images.height < total else None
    return Level(
        images,
        parts[0].prompts["concept"].to_list(),
        np.concatenate([softmax(part.logits) for part in parts]),
        np.concatenate([correct_cells(part.prompts, part.images) for part in parts]),
        left_out,
    )
