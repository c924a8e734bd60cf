"""Markedness: the neutral prompt above the group's own word."""

from __future__ import annotations

import numpy as np

from beholder.metrics.association import unmarked


def test_an_image_counts_where_the_neutral_prompt_scores_higher():
    assert np.nanmean(unmarked(np.array([0.3, 0.1, 0.2]), np.array([0.2, 0.2, 0.1]))) == 2 / 3


def test_a_tie_is_no_win_and_a_missing_score_no_answer():
    found = unmarked(np.array([0.2, np.nan]), np.array([0.2, 0.1]))
    assert found[0] == 0
    assert np.isnan(found[1])
