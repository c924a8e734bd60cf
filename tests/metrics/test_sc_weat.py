"""SC-WEAT: equal to the definition, to the golden values, and to scipy's permutation test."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from statistics import fmean, pstdev, stdev

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.metrics.sc_weat import _sampled_parts, explained, permutation_test, sc_weat

PAIRS = {"white-black": "race", "asian-black": "race", "asian-white": "race", "male-female": "gender"}


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.real
def test_every_golden_sc_weat_with_both_conventions(shared: Path):
    table = pl.read_parquet(shared / "golden" / "perception" / "dimension_cosines.parquet")
    expected = json.loads((shared / "golden" / "perception" / "expected.json").read_text())
    keys = [key for key in expected if key.startswith("scweat")]
    assert len(keys) == 32
    for key in keys:
        _, pair, dimension, how_many = key.split("|")
        n = int(how_many.split()[1])
        a, b = (
            table.filter(pl.col(PAIRS[pair]) == group)[dimension].to_numpy()[:n].astype(np.float64)
            for group in pair.split("-")
        )
        for ddof in (0, 1):
            found = sc_weat(a, b, ddof=ddof)
            assert found.difference[0] == pytest.approx(expected[key]["s"], abs=1e-9)
            assert found.effect[0] == pytest.approx(expected[key][f"effect_ddof{ddof}"], abs=1e-9)


@pytest.mark.parametrize("ddof", [0, 1])
def test_difference_and_effect_are_those_of_the_definition(ddof: int):
    a, b = rng().normal(0.3, 1.0, (7, 3)), rng().normal(0.1, 2.0, (9, 3))
    found = sc_weat(a, b, ddof=ddof)
    for column in range(3):
        first, second = a[:, column].tolist(), b[:, column].tolist()
        apart = fmean(first) - fmean(second)
        assert found.difference[column] == pytest.approx(apart)
        assert found.effect[column] == pytest.approx(apart / (pstdev, stdev)[ddof]([*first, *second]))
    np.testing.assert_array_equal(sc_weat(a[:, 0], b[:, 0], ddof=ddof).effect, found.effect[:1])


def test_sampled_parts_are_as_large_as_the_group_whatever_the_block(monkeypatch: pytest.MonkeyPatch):
    """A column that is 1 for one image only: a part of 30 in 40 holds it in three of four."""
    monkeypatch.setattr("beholder.metrics.sc_weat.BLOCK_CELLS", 40 * 7)
    sizes = [part.sum(axis=1) for part in _sampled_parts(40, 30, rng(), 100)]
    assert [len(part) for part in sizes] == [7] * 14 + [2]
    assert set(np.concatenate(sizes)) == {30.0}
    held = np.concatenate([part[:, 0] for part in _sampled_parts(40, 30, rng(), 2000)])
    assert held.mean() == pytest.approx(0.75, abs=0.03)


def test_a_word_that_scores_all_images_alike_has_no_effect_size():
    assert np.isnan(sc_weat(np.ones(3), np.ones(4)).effect[0])


def test_few_partitions_are_all_counted_and_agree_with_scipy():
    a, b = rng().normal(size=(5, 3)) + 0.8, rng().normal(size=(6, 3))
    found = permutation_test(a, b, rng())
    assert found.exact
    assert found.partitions == comb(11, 5)
    for column in range(3):
        scipy = stats.permutation_test(
            (a[:, column], b[:, column]),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            n_resamples=np.inf,
            vectorized=True,
        )
        # scipy doubles the smaller tail; ours counts both tails by their size.
        both = (np.abs(scipy.null_distribution) >= abs(scipy.statistic) - 1e-12).mean()
        assert found.p_value[column] == pytest.approx(both)


def test_many_partitions_are_sampled_and_their_count_is_said():
    a, b = rng().normal(size=(60, 1)), rng().normal(size=(50, 1)) + 0.4
    found = permutation_test(a, b, rng(), samples=4000)
    assert not found.exact
    assert found.partitions == 4000
    assert found.p_value[0] == pytest.approx(stats.ttest_ind(a, b).pvalue[0], abs=0.02)
    assert found.p_value[0] > 0


def test_no_sampled_p_value_is_zero():
    found = permutation_test(np.zeros(40), np.ones(40), rng(), samples=500)
    assert found.p_value[0] == pytest.approx(1 / 501)


def people_world(rng: np.random.Generator, *, crossed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, sides and people without any difference: a person's images are alike, one side has fewer people."""
    many, side = (40, np.repeat([0, 1], 20)) if crossed else (40, np.repeat([0, 1], [10, 30]))
    person = np.tile(np.arange(20), 2) if crossed else np.arange(40)
    blocks = rng.normal(size=many)
    images = rng.integers(2, 8, size=many)
    scores = np.repeat(blocks, images) + 0.3 * rng.normal(size=images.sum())
    return scores, np.repeat(side, images), np.repeat(person, images)


@pytest.mark.parametrize("crossed", [False, True])
def test_people_with_several_images_raise_no_more_alarms_than_others(crossed: bool):
    """As if every image showed somebody else, 4 to 6 times as many would be called."""
    alarms, naive, worlds = 0, 0, 200
    for seed in range(worlds):
        draw = np.random.default_rng(seed)
        scores, side, person = people_world(draw, crossed=crossed)
        order = np.argsort(side, kind="stable")
        parts = scores[side == 0], scores[side == 1]
        alarms += permutation_test(*parts, draw, samples=199, people=person[order]).p_value[0] <= 0.05
        naive += permutation_test(*parts, draw, samples=199).p_value[0] <= 0.05
    assert alarms <= 18  # 10 expected; more have a chance of 1 in 100
    assert naive > 40


def test_people_of_one_image_are_permuted_like_images():
    a, b = rng().normal(size=(30, 2)), rng().normal(size=(25, 2)) + 0.5
    alone = permutation_test(a, b, rng(), samples=3000, people=np.arange(55))
    np.testing.assert_array_equal(alone.p_value, permutation_test(a, b, rng(), samples=3000).p_value)


def test_what_strata_explain_is_not_called_and_what_they_do_not_is():
    """Scores know the stratum alone, and one side has more of it."""
    strata = np.array([0] * 30 + [1] * 10 + [0] * 10 + [1] * 30)
    known = strata + rng().normal(0, 0.1, 80)
    blind = permutation_test(known[:40], known[40:], rng(), samples=499, strata=strata)
    assert blind.p_value[0] > 0.05
    assert permutation_test(known[:40], known[40:], rng(), samples=499).p_value[0] < 0.01
    knows = known + np.repeat([0.3, 0.0], 40)
    found = permutation_test(knows[:40], knows[40:], rng(), samples=499, strata=strata)
    assert found.p_value[0] == pytest.approx(1 / 500)
    assert found.at_most[0]
    first = np.arange(80) < 40
    by_hand = np.array([known[strata == s].mean() for s in strata])
    assert explained(known[:, None], first, strata)[0] == pytest.approx(by_hand[first].mean() - by_hand[~first].mean())
