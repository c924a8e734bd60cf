"""Image association: iEAT's test, against its printed numbers, a slow computation, and what must be refused."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import DataError
from beholder.ext import image_association
from beholder.metrics.association import MOST_DRAWN, association_of


@pytest.mark.real
def test_the_39_printed_tests_of_igpt_come_out_of_its_vectors(shared: Path):
    folder = shared / "data" / "ieat"
    vectors = np.load(folder / "embeddings_igpt.npz")
    with (folder / "tests_igpt.csv").open(encoding="utf-8", newline="") as file:
        printed = list(csv.DictReader(file))
    assert len(printed) == 39
    for test in printed:
        found = image_association(*(vectors[test[name]] for name in "XYAB"))
        p_value = float(test["p"])
        assert found.effect == pytest.approx(float(test["d"]), abs=1e-4), test["test"]
        # All arrangements give the printed p; drawn ones lie as far from it as two samples of 10,000 may.
        chance = 5 * np.sqrt(2 * p_value * (1 - p_value) / MOST_DRAWN) + 2 / MOST_DRAWN
        assert found.p_value == pytest.approx(p_value, abs=1e-4 if found.exact else chance), test["test"]


def test_it_is_the_slow_obvious_computation():
    rng = np.random.default_rng(1)
    x, y, a, b = (rng.standard_normal((count, 5)) for count in (3, 4, 6, 2))

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    s = [np.mean([cosine(w, u) for u in a]) - np.mean([cosine(w, u) for u in b]) for w in [*x, *y]]
    effect = (np.mean(s[:3]) - np.mean(s[3:])) / np.std(s, ddof=1)
    dealt = [
        np.mean([s[i] for i in one]) - np.mean([s[i] for i in range(7) if i not in one])
        for one in combinations(range(7), 3)
    ]
    found = image_association(x, y, a, b)
    assert found.effect == pytest.approx(effect)
    assert found.p_value == pytest.approx(np.mean([each >= dealt[0] - 1e-12 for each in dealt]))
    assert (found.arrangements, found.exact) == (35, True)


def test_drawn_arrangements_agree_with_all_of_them():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(10) + 0.6, rng.standard_normal(10)  # 184,756 arrangements
    found, both = association_of(x, y), np.concatenate([x, y])
    sums = np.array([both[list(one)].sum() for one in combinations(range(20), 10)])
    assert not found.exact
    assert found.p_value == pytest.approx(np.mean(sums >= x.sum() - 1e-9), abs=0.01)


def test_pictures_that_are_all_alike_have_no_effect():
    same = np.ones((4, 3))
    found = image_association(same, same, same, same)
    assert np.isnan(found.effect)
    assert found.p_value == 1


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([[1.0, 2.0, 3.0]], "one model"),
        ([], "x must be a table"),
        ([[1.0], [1.0, 2.0]], "x must be a table"),
        ([[0.0, 0.0]], "x: row 0"),
        ([[1.0, 1.0], [np.nan, 1.0]], "x: row 1"),
    ],
)
def test_vectors_that_cannot_be_compared_are_named(x: list[list[float]], said: str):
    good = [[1.0, 0.0], [0.5, 1.0]]
    with pytest.raises(DataError, match=said):
        image_association(x, good, good, good)
