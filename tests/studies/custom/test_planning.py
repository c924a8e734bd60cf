"""A planned gap of an own prompt is found by the study as often as promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.comparison.groups import people_of
from beholder.comparison.power import noise_of
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import PROMPTS, SCORES, custom_study, plan
from beholder.studies.rows import PlanOptions
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import DESIGNS, NOISE, draw

TEXTS = prompt_set("made", [{"text": f"prompt {i}", "level": f"level {i}"} for i in range(PROMPTS)])


def people(design: str) -> pl.DataFrame:
    """The labels of a design that its audit knows of."""
    table = draw(NOISE, DESIGNS[design], 1, np.random.default_rng(0)).table
    return table.select("image_id", "uri", "person", "gender", *(["branch"] if DESIGNS[design].unbalanced else []))


def promised(table: pl.DataFrame) -> float:
    rows = plan(Dataset("made", "1", "MIT", table), PlanOptions())
    return float(next(row.value or np.nan for row in rows if row.concept == "gender"))


def is_found(table: pl.DataFrame, gap: float, seed: int) -> bool:
    """Whether the study finds the gap in one of ten prompts, each with P(yes) of its own."""
    rng, planted = np.random.default_rng(seed), SCORES.planted()
    woman = (table["gender"] == "woman").to_numpy()
    noise = noise_of(people_of(table))(PROMPTS, rng)
    beliefs = planted(noise, woman & False, 0.0)
    beliefs[:, :1] = planted(noise[:, :1], woman, gap)
    matrix = ScoreMatrix("custom", table, TEXTS.table, ("presence",), beliefs[:, :, None])
    options = MeasureOptions(draws=2, seed=seed, shuffles=299)
    options = replace(options, within=("branch",) if "branch" in table.columns else ())
    (measure,) = custom_study(TEXTS, by=("gender",)).measures.functions
    return any(row.verdict == DIFFERENCE for row in measure({"custom": matrix}, options))


@pytest.mark.slow
def test_a_difference_that_is_promised_is_mostly_found():
    table = people("30 + 30")
    gap = promised(table)
    assert sum(is_found(table, gap, seed) for seed in range(30)) >= 19


@pytest.mark.slow
@pytest.mark.parametrize("design", list(DESIGNS)[:5])
def test_eighty_per_cent_are_kept_in_every_design(design: str):
    table = people(design)
    gap = promised(table)
    share = np.mean([is_found(table, gap, seed) for seed in range(200)])
    assert 0.71 <= share <= 0.93  # 75 to 90 %, and what 200 worlds add by chance
