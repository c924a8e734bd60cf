"""Shuffled groups: people move with all their images, and only where they may."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.metrics import person_shuffles
from beholder.metrics.person_shuffles import PersonShuffles, has_repeats


def shuffled(codes: list[int], people: list[int], count: int = 300, strata: list[int] | None = None) -> np.ndarray:
    shuffles = PersonShuffles(np.array(codes), np.array(people), None if strata is None else np.array(strata))
    return np.concatenate(list(shuffles.parts(count, np.random.default_rng(1))))


def test_images_of_one_person_each_are_permuted():
    codes = [0, 0, 0, 1, 1]
    draws = shuffled(codes, list(range(5)), 2000)
    assert (np.sort(draws, axis=1) == np.sort(codes)).all()
    np.testing.assert_allclose((draws == 0).mean(axis=0), 0.6, atol=0.04)


def test_a_person_of_one_group_takes_all_their_images_along():
    draws = shuffled([0, 0, 0, 1, 1, 0], [7, 7, 7, 8, 8, 9])
    assert (draws[:, 0] == draws[:, 1]).all()
    assert (draws[:, 1] == draws[:, 2]).all()
    assert (draws[:, 3] == draws[:, 4]).all()
    assert ((draws[:, [0, 3, 5]] == 1).sum(axis=1) == 1).all()


def test_a_person_shown_in_several_groups_exchanges_them():
    codes, people = [0, 0, 1, 1, 2, 0, 1, 2], [1, 1, 1, 1, 1, 2, 2, 2]
    draws = shuffled(codes, people, 3000)
    assert (draws[:, 0] == draws[:, 1]).all()
    assert {tuple(row) for row in draws[:, [0, 2, 4]].tolist()} == {
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    }
    assert np.corrcoef(draws[:, 0], draws[:, 5])[0, 1] == pytest.approx(0, abs=0.06)  # each person by themself


def test_people_stay_within_their_stratum():
    draws = shuffled([0, 1, 0, 0], [1, 2, 3, 4], strata=[5, 5, 6, 6])
    assert (draws[:, 2:] == 0).all()
    assert {tuple(row) for row in draws[:, :2].tolist()} == {(0, 1), (1, 0)}


def test_no_group_stays_no_group_and_many_people_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(person_shuffles, "CELLS", 200)
    codes = np.tile([0, 1, -1], 30)
    people = np.repeat(np.arange(30), 3)
    parts = list(PersonShuffles(codes, people).parts(10, np.random.default_rng(1)))
    assert [len(part) for part in parts] == [2] * 5
    draws = np.concatenate(parts)
    assert (draws[:, 2::3] == -1).all()
    assert (draws[:, 0::3] + draws[:, 1::3] == 1).all()
    assert 0.3 < draws[:, 0::3].mean() < 0.7


def test_repeats_are_people_with_several_images():
    assert has_repeats(np.array(["a", "b", "a"]))
    assert not has_repeats(np.array(["a", "b"]))
