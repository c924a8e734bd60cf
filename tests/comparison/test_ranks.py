"""Rank correlation within blocks agrees with scipy and numpy, and is judged by people who change places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from beholder.comparison.family import judge
from beholder.comparison.shuffles import compare_ranks

ONE = np.zeros(40, dtype=np.intp)


def numbers(seed: int = 0) -> np.ndarray:
    """Two columns that have ties and rise together."""
    rng = np.random.default_rng(seed)
    first = rng.poisson(3, 40).astype(float)
    return np.stack([first, first + rng.normal(0, 2, 40).round()])


def test_one_block_gives_spearmans_correlation():
    part = compare_ranks(*numbers(), ONE, np.random.default_rng(1), 299)
    assert part.value[0] == pytest.approx(spearmanr(*numbers()).statistic)
    assert part.people[0] == 40


def test_what_only_whole_blocks_share_is_taken_off():
    blocks = np.arange(40) % 4
    rng = np.random.default_rng(3)
    first, second = 10 * blocks + rng.standard_normal((2, 40))
    ranks = [rankdata(each) for each in (first, second)]
    left = [each - np.array([each[blocks == block].mean() for block in blocks]) for each in ranks]
    part = compare_ranks(first, second, blocks, rng, 299)
    assert part.value[0] == pytest.approx(np.corrcoef(*left)[0, 1])
    assert spearmanr(first, second).statistic > 0.8
    assert judge([part])[0].p_value[0] > 0.05


def test_few_people_are_arranged_in_every_order():
    values = np.arange(5.0)
    part = compare_ranks(values, values, np.zeros(5, dtype=np.intp), np.random.default_rng(0), 299)
    assert (part.exact, part.arrangements) == (True, 120)
    assert 2 / 120 <= judge([part])[0].p_value[0] <= 0.05


def test_nothing_is_told_where_one_is_all_alike():
    part = compare_ranks(np.ones(40), numbers()[0], ONE, np.random.default_rng(0))
    assert not part.judgeable.any()


def test_numbers_without_a_link_are_called_in_few_worlds():
    rng = np.random.default_rng(4)
    found = [judge([compare_ranks(*rng.standard_normal((2, 30)), ONE[:30], rng, 199)])[0].found[0] for _ in range(200)]
    assert np.mean(found) <= 0.09
