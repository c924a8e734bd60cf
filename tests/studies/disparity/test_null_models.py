"""Scorers that know nothing, only the group, or only what is there: no finding says more than they know.

Labels are COCO's real ones: 910 images, 28 % of them of women, 43 concepts that can be tested, unequal prevalences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from beholder.chapter.finding import Finding
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.scorer import NullScorer
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.prompts import disparity_prompts
from beholder.studies.disparity.study import Choices

pytestmark = pytest.mark.real
BOXES = "instances_val2017_from_yolo_boxes_3200.json"
Measure = Callable[..., pl.DataFrame]
Cells = np.ndarray


@cache
def coco(data: Path) -> tuple[Dataset, Cells, Cells]:
    """The data set, who is in each image, and what it shows."""
    dataset = load_dataset("coco", data, {"instances": BOXES})
    rows = {image: place for place, image in enumerate(dataset.table["image_id"])}
    present = np.zeros((len(rows), len(dataset.concepts)), dtype=bool)
    for image, concept in dataset.objects.select("image_id", "concept").iter_rows():
        present[rows[image], dataset.concepts.index(concept)] = True
    return dataset, (dataset.table["gender"] == "woman").to_numpy(), present


def found(data: Path, measure: Measure, values: Cells, channel: str, **choices: object) -> list[Finding]:
    dataset, _, _ = coco(data)
    prompts = disparity_prompts(dataset.concepts).table
    cells = values[:, :, None].astype(np.float32)
    matrix = ScoreMatrix("disparity", dataset.table, prompts, (channel,), cells, {}, dataset)
    return disparity_findings(measure(matrix, Choices(**choices), draws=150))


def said(findings: list[Finding]) -> set[str]:
    """The kinds of finding that are claimed."""
    return {each.kind for each in findings if each.shown}


@pytest.mark.slow
def test_labels_and_noise_make_no_more_claims_than_chance(data: Path, measure: Measure, vectors_of_news: Path):
    """A calibrated probability that knows what is there and nothing of the group. One claim in twenty is wrong."""
    _, _, present = coco(data)
    share, claims = present.mean(axis=0).clip(0.001, 0.999), Counter[str]()
    for seed in (1, 2, 3):
        scores = np.random.default_rng(seed).standard_normal(present.shape) + 1.5 * present
        confidence = expit(logit(share) + 1.5 * scores - 1.5**2 / 2)
        findings = found(data, measure, confidence, "presence", word_vectors=vectors_of_news)
        assert {"gaps", "together", "mean", "calibration", "words"} <= {each.kind for each in findings}
        claims.update(said(findings))
    assert claims.total() <= 2  # of fifteen
    assert max(claims.values(), default=0) <= 1  # of three


def test_noise_makes_no_claim(data: Path, measure: Measure):
    dataset, _, present = coco(data)
    model = NullScorer()
    prepared = [image.encode() for image in dataset.table["image_id"]]
    values = model.score_prepared(prepared, disparity_prompts(dataset.concepts).texts)[:, :, 0]
    assert said(found(data, measure, values, "cosine", calibration="platt")) == set()
    assert values.shape == present.shape


def test_one_score_for_every_image_makes_no_claim(data: Path, measure: Measure):
    """All images are ranked alike: what single precision leaves of a gap is no gap."""
    _, _, present = coco(data)
    constant = np.tile(np.random.default_rng(1000).normal(size=present.shape[1]), (len(present), 1))
    assert said(found(data, measure, expit(constant), "presence")) == set()


def test_a_scorer_that_knows_only_the_group_is_not_said_to_recognise_anything_unequally(data: Path, measure: Measure):
    """It gives women's images higher scores. Its confidence may be said to be worse for one group: that it knows."""
    _, women, present = coco(data)
    noise = np.random.default_rng(4).normal(0, 0.02, present.shape)
    values = 0.3 + 0.4 * women[:, None] + noise
    assert said(found(data, measure, values, "presence")) <= {"calibration"}
    assert said(found(data, measure, values, "cosine")) == set()


def test_a_real_gap_is_still_found(data: Path, measure: Measure):
    """The same labels, and chairs are not seen with women."""
    dataset, women, present = coco(data)
    scores = np.random.default_rng(5).standard_normal(present.shape) + 2.5 * present
    chair = dataset.concepts.index("chair")
    scores[women, chair] -= 2.5 * present[women, chair]
    (gaps,) = [each for each in found(data, measure, scores, "cosine") if each.kind == "gaps"]
    assert gaps.shown
    assert "“chair” is recognised worse in images labelled “woman”: average precision" in gaps.sentence


@pytest.fixture
def vectors_of_news(data: Path) -> Path:
    return next((data / "word2vec").glob("*.bin"))
