"""Shares of traits above the mean against shuffled labels, written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beholder.studies.gras.groups import all_grouped, read_answers
from beholder.studies.gras.valence import above_mean


def test_a_trait_counts_that_lies_above_in_every_wording_and_was_asked_everywhere() -> None:
    deviations = np.array([[[0.1, 0.2], [0.1, -0.1], [0.3, 0.1]], [[-0.1, -0.2], [-0.1, 0.1], [-0.3, np.nan]]])
    shares = above_mean(deviations, ["positive", "positive", "negative"])
    np.testing.assert_array_equal(shares[:, 0], [50.0, 0.0])
    assert np.isnan(shares[:, 1]).all(), "the only negative trait was not asked of every group"


def test_the_landmark_is_the_mean_over_shuffled_labels_and_p_a_rank_among_them(world, measure) -> None:
    """The five wordings of a trait agree, so shuffled labels put about half of the traits above the mean, not 3 %."""
    matrix = world(200)
    matrix.values[:] = np.repeat(matrix.values[:, ::5], 5, axis=1) + 1e-4 * matrix.values
    rows = [row for row in measure(matrix) if row.metric == "gras.valence_share" and row.subset == "gender"]
    rng, shares = np.random.default_rng(0), []
    for _ in range(300):
        women = rng.permutation((matrix.images["gender"] == "Female").to_numpy())
        means = matrix.values[women, :, 0].mean(axis=0) > matrix.values[:, :, 0].mean(axis=0)
        shares.append(100 * means.reshape(4, 5).all(axis=1)[::2].mean())
    (row,) = [row for row in rows if (row.group, row.concept) == ("Female", "positive")]
    assert row.landmark == pytest.approx(np.mean(shares), abs=25)  # twenty shuffles of two traits
    assert 30 < np.mean(shares) < 60
    assert all(row.p_value > 0.05 for row in rows)


def test_people_of_several_images_move_together_in_the_interval(world, measure) -> None:
    """Ten equal images of each person tell no more than one."""
    matrix = world(40)
    many = matrix.rows(np.repeat(np.arange(40), 10))
    images = many.images.with_columns(person=many.images["image_id"])
    widths = []
    for one in (matrix, replace(many, images=images)):
        rows = [row for row in measure(one) if row.metric == "gras.valence_share" and row.subset == "gender"]
        widths.append(np.mean([row.high - row.low for row in rows]))
    assert widths[1] == pytest.approx(widths[0], rel=0.35)
    assert len(all_grouped(read_answers({"gras": matrix}))) == 2
