"""Shares of traits above the mean against shuffled labels, written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder.studies.gras.groups import above_mean


def test_a_trait_counts_that_lies_above_in_every_wording_and_was_asked_everywhere() -> None:
    deviations = np.array([[[0.1, 0.2], [0.1, -0.1], [0.3, 0.1]], [[-0.1, -0.2], [-0.1, 0.1], [-0.3, np.nan]]])
    shares = above_mean(deviations, ["positive", "positive", "negative"])
    np.testing.assert_array_equal(shares[:, 0], [50.0, 0.0])
    assert np.isnan(shares[:, 1]).all(), "the only negative trait was not asked of every group"


def test_the_landmark_is_the_mean_over_shuffled_labels(world, measure) -> None:
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
    assert row.landmark == pytest.approx(np.mean(shares), abs=8)
    assert 30 < np.mean(shares) < 60
    assert all(row.p_value > 0.05 for row in rows)


def test_people_of_several_images_move_together(world, measure) -> None:
    """Ten equal images of each person tell no more than one."""
    matrix = world(40)
    many = matrix.rows(np.repeat(np.arange(40), 10))
    images = many.images.with_columns(name=many.images["image_id"])
    found = []
    for one in (matrix, replace(many, images=images)):
        rows = [row for row in measure(one) if row.metric == "gras.valence_share" and row.subset == "gender"]
        found.append([row.landmark for row in rows])
        assert {row.verdict for row in rows} == {"none found"}
    assert found[1] == pytest.approx(found[0], abs=8)


def test_labels_are_shuffled_within_the_source(world, measure) -> None:
    """A model that sees the source alone puts a group above the mean as often as shuffled labels do."""
    matrix = world(300)
    source = np.random.default_rng(2).random(300) < np.where(matrix.images["gender"] == "Female", 0.8, 0.2)
    matrix.values[source] += 0.2
    images = matrix.images.with_columns(source=pl.Series(source).cast(pl.String))
    rows = [row for row in measure(replace(matrix, images=images)) if row.metric == "gras.valence_share"]
    women = [row for row in rows if row.group == "Female"]
    assert all(row.value == pytest.approx(100) and row.landmark > 90 for row in women)
    assert not any(row.verdict == "difference found" for row in women)
