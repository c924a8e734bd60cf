"""One level of prompts for one or several branches: images, shares of belief, and which cells are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import Exchanged, Groups, People, Strata, comparison_at, judge, people_of, strata_of
from beholder.core.results import WITHIN, Row
from beholder.metrics.association import softmax
from beholder.prompts.prompt_set import correct_cells
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import Matrices, MeasureOptions

Array = npt.NDArray[np.float64]
LEVELS = ("category", "occupation", "specialty")
GROUPS = ("woman", "man")
ASSOCIATION = "association"
"""The kind of the tasks that ask what people are."""
Pools = Mapping[str, tuple[str, ...]]
"""The branches of each pool."""


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
    images = pl.concat([part.images.with_columns(branch=pl.lit(part.part)) for part in parts], how="diagonal")
    left_out = f"{total - images.height} of {total} images lack a score" if images.height < total else None
    return Level(
        images,
        parts[0].prompts["concept"].to_list(),
        np.concatenate([softmax(part.logits) for part in parts]),
        np.concatenate([correct_cells(part.prompts, part.images) for part in parts]),
        left_out,
    )


# Women and men


class Pool(NamedTuple):
    """The occupations of a pool of branches, and the women and men who are compared within the branches."""

    name: str
    level: Level
    people: People
    groups: Groups
    strata: Strata

    @property
    def both(self) -> bool:
        """Whether there are women and men."""
        return bool(self.groups.mask(0).any() and self.groups.mask(1).any())

    def branches(self) -> Iterator[tuple[str, Groups]]:
        """The women and men of every branch; none where there is one branch only."""
        branch = self.level.images["branch"].to_numpy().astype(str)
        names = list(dict.fromkeys(branch.tolist()))
        for name in names if len(names) > 1 else ():
            yield name, self.groups._replace(codes=np.where(branch == name, self.groups.codes, -1))


def women_and_men(images: pl.DataFrame) -> Groups:
    """Women first: a ratio is women over men, a difference women less men."""
    place = {group: code for code, group in enumerate(GROUPS)}
    return Groups("gender", list(GROUPS), np.array([place.get(each, -1) for each in images["gender"]], dtype=np.intp))


def scored_pools(pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Pool]:
    """Every pool whose occupations were scored."""
    scored = scored_branches(matrices)
    for name, branches in pools.items():
        level = read_level([scored[branch] for branch in branches if branch in scored], "occupation")
        if level.concepts:
            people, groups = people_of(level.images, options.person), women_and_men(level.images)
            yield Pool(name, level, people, groups, strata_of(level.images, groups, ("branch",), people))


# Right answers against exchanged ones


class Tested(NamedTuple):
    """A mean belief in right answers, and what exchanged answers give; None where there is no contrast: no claim."""

    row: Row
    made: Exchanged | None = None
    within: Sequence[str] = ()
    """The labels of the people among whom answers are exchanged."""


def tested_rows(family: Sequence[Tested]) -> Iterator[Row]:
    """The published rows with landmark and verdict; after each, the one with value, bounds and p that decided."""
    judged = iter(judge([each.made.part for each in family if each.made is not None]))
    for row, made, within in family:
        if made is None:
            yield row
            continue
        excess = comparison_at(next(judged), 0)
        row = row._replace(landmark=made.expected, verdict=excess.verdict)
        yield row
        whole = excess._replace(value=made.value, low=made.expected + excess.low, high=made.expected + excess.high)
        decided = whole.on(row, least=0.0, most=1.0)
        yield decided._replace(variant=f"{WITHIN}{', '.join(within)}")
