"""Known weaknesses are found in the repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.calibration.summary import summary
from beholder.calibration.weaknesses import weaknesses
from beholder.studies.trial import Trial


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_score_of_gras_without_bias_is_said_not_to_be_0():
    score, corrected = (Trial(f"gras.{name}", "w", 100, 0.0) for name in ("bias_score", "bias_score_shown"))
    values = [
        np.column_stack([rng(i).normal(level, 3, 200), *[np.full(200, np.nan)] * 3])
        for i, level in enumerate((21, 0.1))
    ]
    weakness, *_ = weaknesses([summary(score, values[0]), summary(corrected, values[1])])
    assert "not 0 without bias" in weakness.title
    assert weakness.found


@pytest.mark.parametrize(("covered", "found"), [(60, True), (95, False)])
def test_intervals_over_images_alone_are_told_where_they_cover_too_seldom(covered: int, found: bool):
    low = np.where(np.arange(100) < covered, -1.0, 0.5)
    outcomes = np.stack([np.zeros(100), low, np.ones(100), np.full(100, np.nan)], axis=1)
    trials = [
        Trial("mean over prompts", "w", 100, 0.0, kind=kind) for kind in ("images and prompts drawn", "images drawn")
    ]
    (weakness,) = weaknesses([summary(trial, outcomes) for trial in trials])
    assert f"cover in {covered} of 100 worlds" in weakness.sentence
    assert weakness.found == found


def test_without_summaries_nothing_is_claimed():
    assert weaknesses([]) == []
