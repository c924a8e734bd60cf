"""Models that know nothing, or labels alone: no finding says more than they know."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import PROMPTS, designed, matrix, measured, photographs, rng

from beholder.chapter.finding import Finding
from beholder.studies.perception.charts import DENSITIES, perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.study import MeasureOptions

DRAWS = MeasureOptions(draws=200)


def unequal(count: int = 400, seed: int = 1) -> pl.DataFrame:
    """Photographs in which most Black people are women and most White people are men, and the pool is unequal."""
    draw = rng(seed)
    race = draw.choice(["White", "Black", "Asian"], count, p=[0.6, 0.25, 0.15])
    women = {"White": 0.2, "Black": 0.8, "Asian": 0.5}
    gender = np.where(draw.random(count) < [women[name] for name in race], "Female", "Male")
    balance = draw.random(count) < 0.7
    return photographs(count).with_columns(
        race=pl.Series(race), gender=pl.Series(gender), released_balance=pl.Series(balance)
    )


def shown(images: pl.DataFrame, cells: np.ndarray, *, compat: bool = False) -> list[Finding]:
    results = measured(
        matrix(images, cells), options=MeasureOptions(draws=200, compat=compat), dataset="fairface-adults"
    )
    return [finding for finding in perception_findings(results) if finding.shown]


def knows(images: pl.DataFrame, *names: str, noise: float = 0.0, seed: int = 3) -> np.ndarray:
    """Scores that depend on these labels and the prompt, and on nothing else but noise."""
    draw = rng(seed)
    codes = images.select(pl.struct(names).rank("dense"))[names[0]].to_numpy().astype(int) if names else 0
    levels = draw.normal(0.2, 0.02, (int(np.max(codes)) + 1, PROMPTS.height))
    return levels[codes] + noise * draw.normal(size=(images.height, PROMPTS.height))


def attributes(findings: list[Finding]) -> set[str]:
    return {str(row["subset"]) for finding in findings for row in finding.rows}


@pytest.mark.slow
@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_model_that_knows_gender_alone_is_told_nothing_of_race(compat: bool, noise: float):
    """Without noise all scores of a gender are alike: ties, and no spread."""
    images = unequal()
    found = shown(images, knows(images, "gender", noise=noise), compat=compat)
    told = [finding for finding in found if finding.kind != "neutral"]  # that one is about genders crossed with races
    assert attributes(told) <= {"gender"}


@pytest.mark.slow
def test_pictures_nearly_alike_can_be_drawn():
    """Their densities are spikes between the points of a grid: the chart divided by 0, and no page was written."""
    images = unequal()
    results = measured(matrix(images, knows(images, "gender", noise=1e-6)), options=DRAWS, dataset="fairface-adults")
    densities = results.filter(metric="perception.density").filter(pl.col("subset").is_in([*DENSITIES, *CONTROLS]))
    assert densities.group_by("subset").agg(pl.col("value").max())["value"].min() == 0
    assert list(perception_figures(results))


@pytest.mark.slow
@pytest.mark.parametrize("compat", [False, True])
def test_a_model_that_scores_every_picture_alike_is_told_nothing(compat: bool):
    """It has a score for each prompt: words differ, pictures do not."""
    images = unequal()
    cells = np.tile(rng(5).normal(0.2, 0.05, PROMPTS.height), (images.height, 1))
    assert not shown(images, cells, compat=compat)
    assert not shown(images, cells + 1e-4 * rng(6).normal(size=cells.shape), compat=compat)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_noise_is_told_to_be_anything_no_more_often_than_by_chance(several: bool):
    """Each of a page's findings is wrong in 5 of 100; with several pictures a person no more often."""
    told = total = 0
    for seed in range(8):
        images = unequal(240, seed)
        who = rng(seed).normal(0, 0.02, (240, PROMPTS.height))
        if several:
            person = np.arange(240) // 4
            images = images[(person * 4).tolist()].with_columns(
                image_id=photographs(240)["image_id"], person=pl.Series(person)
            )
            who = who[person * 4]
        results = measured(matrix(images, 0.2 + who + rng(seed + 50).normal(0, 0.01, who.shape)), options=DRAWS)
        every = perception_findings(results)
        told, total = told + sum(finding.shown for finding in every), total + len(every)
    assert told <= 6, f"{told} of {total}"  # 5 % of 56 and what goes with a false gap


@pytest.mark.slow
def test_a_model_that_knows_labels_alone_is_told_nothing_of_what_is_varied():
    """Smiles, light and pose move nothing: no effect and no curve of theirs is found."""
    images = designed(6, pose=0, lighting=0)
    cells = knows(images, "gender", "skin_tone", noise=0.005)
    results = measured(matrix(images, cells), options=DRAWS, dataset="glasshouse-design")
    every = perception_findings(results)
    found = [finding for finding in every if finding.shown]
    moved = {str(finding.rows[0]["subset"]).split(" × ")[0] for finding in found}
    assert not moved & {"smiling", "age"}
    titles = {figure.name: figure.titled(every).title for figure in perception_figures(results)}
    for name in ("smiling", "age"):
        assert titles[f"curves-{name}"] == f"Over {name}, no group's curve is found to stand out from the others"
