"""SC-WEAT: equal to the definition and to the golden values."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from beholder.metrics.association import spreads

PAIRS = {"white-black": "race", "asian-black": "race", "asian-white": "race", "male-female": "gender"}


class Association(NamedTuple):
    difference: np.ndarray
    effect: np.ndarray


def sc_weat(a: np.ndarray, b: np.ndarray, *, ddof: int = 1) -> Association:
    """Difference of means and effect size of every column, as the study makes it of `spreads`."""
    a, b = (part.reshape(len(part), -1) for part in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    return Association(difference, difference / spreads(np.concatenate([a, b]), ddof=ddof))


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


def test_a_word_that_scores_all_images_alike_has_no_effect_size():
    assert np.isnan(sc_weat(np.ones(3), np.ones(4)).effect[0])
