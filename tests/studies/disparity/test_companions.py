"""What stands beside a concept, and how good the pictures are: the gap that remains without that difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image, ImageFilter

from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.companions import quality, together
from beholder.studies.disparity.scores import read_concept_scores
from beholder.studies.disparity.study import Choices

PAIR = {"group": "man", "against": "woman"}
One = Callable[..., dict[str, Any]]
Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def test_shares_of_companions_are_counted_in_the_pictures(matrix: ScoreMatrix):
    data = read_concept_scores(matrix, None)
    shares, chosen = together(data, data.pairs[0])
    shows = {
        concept: set(matrix.dataset.objects.filter(concept=concept)["image_id"])
        for concept in ("tie", "handbag", "dog")
    }
    men = set(matrix.images.filter(gender="man")["image_id"])
    ties = shows["tie"] & men
    assert shares[0, data.concepts.index("tie"), data.concepts.index("dog")] == pytest.approx(
        len(ties & shows["dog"]) / len(ties)
    )
    assert data.concepts[chosen[data.concepts.index("tie")][0]] == "dog"  # men are shown with dogs more often


@pytest.fixture(scope="module")
def beside_dogs(object_world: World) -> ScoreMatrix:
    """Ties are missed where a dog is beside them, whoever is shown; men are shown with dogs far more often."""
    world = object_world(1200, rare={("man", "dog"): 0.7, ("woman", "dog"): 0.15})
    present = {
        concept: world.images["image_id"].is_in(world.dataset.objects.filter(concept=concept)["image_id"].implode())
        for concept in ("tie", "dog")
    }
    cells = world.values.copy()
    lost = (present["tie"] & present["dog"]).to_numpy()
    cells[lost, world.prompts["concept"].to_list().index("tie"), 0] *= 0.15
    return replace(world, values=cells)


def test_a_gap_that_companions_explain_is_gone_when_these_are_mixed_alike(
    beside_dogs: ScoreMatrix, measure: Measure, one: One
):
    results = measure(beside_dogs)
    before = one(results, "ap_gap_matched", concept="tie", **PAIR)["value"]
    row = one(results, "ap_gap_same_companions", concept="tie", **PAIR)
    assert before < -0.1
    assert abs(row["value"]) < 0.4 * abs(before)
    assert (row["verdict"], row["p_value"]) == (None, None)
    assert row["note"].startswith(f"{100 * before:+.1f} points before")
    dog = one(results, "companion_gap", concept="tie", template="dog", **PAIR)
    assert dog["value"] > 0.3


def test_brightness_and_sharpness_are_those_of_the_picture(tmp_path: Path):
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 200, (300, 400, 3), dtype=np.uint8))
    noise.save(tmp_path / "sharp.png")
    noise.filter(ImageFilter.GaussianBlur(4)).save(tmp_path / "soft.png")
    Image.new("RGB", (400, 300), (60, 60, 60)).save(tmp_path / "plain.png")
    sharp, soft, plain = (quality(str(tmp_path / f"{name}.png")) for name in ("sharp", "soft", "plain"))
    assert sharp[1] > soft[1] > plain[1] == pytest.approx(0.0, abs=1e-9)
    assert plain[0] == pytest.approx(60, abs=0.01)
    assert sharp[0] == pytest.approx((np.asarray(noise) @ np.array([0.2989, 0.5870, 0.1140])).mean())
    assert np.isnan(quality(str(tmp_path / "absent.png"))).all()


def test_a_gap_that_dark_pictures_explain_is_gone_when_brightness_weighs_alike(
    object_world: World, measure: Measure, one: One, tmp_path: Path
):
    """Ties are missed in the dark, whoever is shown; women's pictures are dark more often."""
    world, rng = object_world(1200), np.random.default_rng(2)
    for shade in (40, 200):
        Image.new("RGB", (8, 8), (shade, shade, shade)).save(tmp_path / f"{shade}.png")
    dark = rng.random(1200) < np.where(world.images["gender"] == "woman", 0.75, 0.25)
    images = world.images.with_columns(uri=pl.Series([str(tmp_path / f"{40 if d else 200}.png") for d in dark]))
    shows = world.images["image_id"].is_in(world.dataset.objects.filter(concept="tie")["image_id"].implode()).to_numpy()
    cells = world.values.copy()
    cells[shows & dark, world.prompts["concept"].to_list().index("tie"), 0] *= 0.15
    seen = replace(world, values=cells, images=images, dataset=replace(world.dataset, table=images))
    results = measure(seen, Choices(quality=True))
    before = one(results, "ap_gap_matched", concept="tie", **PAIR)["value"]
    assert before > 0.1
    assert abs(one(results, "ap_gap_same_brightness", concept="tie", **PAIR)["value"]) < 0.4 * before
    assert measure(seen).filter(metric="disparity.ap_gap_same_brightness").is_empty()
