"""What the wording changes, against worlds whose truth is known and against plain formulas."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.studies.gras.groups import Answers, Grouped
from beholder.studies.gras.wordings import WordingShares, wording_ranges

ALL = np.ones(4, dtype=bool)


def grouped(gaps: np.ndarray, n: int = 400, noise: float = 0.1, seed: int = 1, images: int = 1) -> Grouped:
    """Two groups of `n` that differ by `gaps[n_wordings]` in each of four traits."""
    rng = np.random.default_rng(seed)
    first = np.repeat([1.0, 0.0], n)
    people = np.arange(2 * n) // images
    own = rng.normal(0, noise, (2 * n, 4, len(gaps)))[people]
    p_yes = 0.5 + first[:, None, None] * gaps + own
    table = pl.DataFrame({"gender": np.where(first > 0, "a", "b"), "person": people.astype(str)})
    names = [f"T{k}" for k in range(len(gaps))]
    return Grouped(Answers(table, list("klmn"), ["positive"] * 4, names, p_yes), "gender")


@pytest.mark.parametrize("gaps", [(0.1, 0.1, 0.1), (0.1, 0.0, 0.05), (0.1, -0.1, 0.0)])
def test_the_share_is_the_true_one_and_inside_its_interval(gaps: tuple[float, ...]) -> None:
    truth = np.var(gaps) / np.mean(np.square(gaps))
    share = WordingShares(grouped(np.array(gaps)), np.random.default_rng(0)).share(ALL)
    assert share.value == pytest.approx(truth, abs=0.1)
    assert share.low <= truth <= share.high
    assert share.high - share.low < 0.4


def test_noise_is_not_counted_as_wording() -> None:
    """Few images: differences between wordings are mostly noise, which the plain share counts in full."""
    values = []
    for seed in range(30):
        groups = grouped(np.full(3, 0.1), n=40, noise=0.3, seed=seed)
        values.append(WordingShares(groups, np.random.default_rng(seed)).share(ALL).value)
    deviations = groups.compared().deviations
    plain = 1 - 3 * (deviations.mean(axis=2) ** 2).sum() / (deviations**2).sum()
    assert plain > 0.1
    assert np.nanmean(values) < 0.08


def test_copies_of_people_make_no_share_surer() -> None:
    alone, copied = (
        WordingShares(grouped(np.array([0.1, 0.0, 0.05]), n=60 * k, images=k), np.random.default_rng(0)).share(ALL)
        for k in (1, 5)
    )
    assert copied.high - copied.low > 0.5 * (alone.high - alone.low)


def test_without_any_difference_there_is_no_share() -> None:
    share = WordingShares(grouped(np.zeros(3), noise=0.0), np.random.default_rng(0)).share(ALL)
    assert np.isnan(share.value)


def test_ranges_have_paired_errors_and_bounds_for_all_traits() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(0.5, 0.1, (300, 20, 3)) + np.array([0.0, 0.02, 0.05])
    found = wording_ranges(scores, np.arange(300), rng)
    means = scores.mean(axis=0)
    np.testing.assert_allclose(found.value, np.ptp(means, axis=1))
    for trait in range(20):
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        lows = [
            stats.ttest_rel(scores[:, trait, i], scores[:, trait, j]).confidence_interval(0.95).low for i, j in pairs
        ]
        assert found.low[trait] < max(lows), "wider than for one trait and one pair"
    assert (found.low <= 0.05).all()
    assert (found.high >= 0.05).all()


def test_fewer_than_five_people_have_no_bounds() -> None:
    found = wording_ranges(np.random.default_rng(1).random((8, 2, 3)), np.arange(8) // 2, np.random.default_rng(2))
    assert np.isnan(found.low).all()
