"""Rows are selected by their columns: the largest, the finest groups, what is shown."""

from __future__ import annotations

import polars as pl

from beholder.studies.perception import queries


def test_the_finest_grouping_crosses_all_attributes(results: pl.DataFrame, matched: pl.DataFrame):
    assert queries.finest(results) == "race × gender"
    assert queries.finest(matched) == "skin_tone × gender"
    assert queries.finest(results.clear()) == "everyone"


def test_every_group_knows_its_grouping(matched: pl.DataFrame):
    grouping = queries.grouping_of(matched)
    assert (grouping["9"], grouping["woman"], grouping["2 man"]) == ("skin_tone", "gender", "skin_tone × gender")


def test_the_largest_rows_are_those_farthest_from_0(results: pl.DataFrame):
    rows = queries.largest(results, "gap", 5, subset="race")
    sizes = [abs(row["value"]) for row in rows]
    assert len(sizes) == 5
    assert sizes == sorted(sizes, reverse=True)
    assert {row["subset"] for row in rows} == {"race"}


def test_a_difference_is_shown_by_p_and_interval_together():
    row = {"p_value": 0.01, "low": 0.1, "high": 0.3, "landmark": None}
    assert queries.shown(row)
    assert not queries.shown({**row, "p_value": 0.06})
    assert not queries.shown({**row, "low": -0.1})
    assert not queries.shown({**row, "low": None})
    assert not queries.shown({**row, "p_value": None})
    assert not queries.shown({**row, "landmark": 0.2})
