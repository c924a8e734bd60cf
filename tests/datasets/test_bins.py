"""Bins of numbers, by edges that the user names or by quantiles."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.core.errors import UnknownName, UsageError
from beholder.datasets.dataset import Dataset, with_bins
from beholder.datasets.selection import NUMBERS, bin_names, binned, numbers_of, parse_bins, quantile_edges


def dataset(ages: list[object]) -> Dataset:
    ids = [str(i) for i in range(len(ages))]
    return Dataset("toy", "1", "MIT", pl.DataFrame({"image_id": ids, "uri": ids, "age": ages}))


def test_a_bin_holds_its_lower_edge_and_the_last_everything_above():
    table = with_bins(dataset([-1, 0, 17, 18, 69, 70, 99, None]), {"age": (0, 18, 30, 50, 70)}).table
    names = ["under 0", "0–17", "0–17", "18–29", "50–69", "70 and over", "70 and over", None]
    assert table["age"].to_list() == names
    assert table["age" + NUMBERS].to_list() == [-1, 0, 17, 18, 69, 70, 99, None]


def test_numbers_that_are_text_are_numbers_and_words_are_not():
    assert with_bins(dataset(["7", "30"]), {"age": (0, 18)}).table["age"].to_list() == ["0–17", "18 and over"]
    with pytest.raises(UsageError, match="are not numbers"):
        with_bins(dataset(["old", "30"]), {"age": (0, 18)})
    with pytest.raises(UnknownName, match="Did you mean 'age'"):
        with_bins(dataset([1]), {"ages": (0, 18)})
    assert numbers_of(pl.Series([True, False])) is None
    assert numbers_of(pl.Series([None, None], dtype=pl.String)) is None


def test_fractions_have_names_of_their_own():
    assert bin_names(pl.Series([0.5, 1.5]), (0, 1, 2)) == ["under 0", "0 to under 1", "1 to under 2", "2 and over"]
    assert bin_names(pl.Series([1, 2]), (1, 2, 4)) == ["under 1", "1", "2–3", "4 and over"]


def test_quantiles_put_about_as_many_into_each_bin():
    ages = pl.Series(range(100))
    counts = binned(ages, quantile_edges(ages)).value_counts()["count"]
    assert len(counts) == 5
    assert counts.min() >= 19


@pytest.mark.parametrize("option", ["age", "age=", "age=5", "age=18,0", "age=a,b", "=0,18", "age=0,0,1", "age=0,inf"])
def test_bins_that_cannot_be_read_are_refused(option: str):
    with pytest.raises(UsageError, match=r"such as --bins age=0,18,30,50,70"):
        parse_bins([option])
