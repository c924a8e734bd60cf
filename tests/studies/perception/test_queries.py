"""Rows are selected by their columns: the largest, the finest groups, what decides."""

from __future__ import annotations

import polars as pl

from beholder.studies.perception import phrases


def test_the_finest_grouping_crosses_all_attributes(results: pl.DataFrame, matched: pl.DataFrame):
    assert phrases.finest(results) == "race × gender"
    assert phrases.finest(matched) == "skin_tone × gender"
    assert phrases.finest(results.clear()) == "everyone"


def test_every_group_knows_its_grouping(matched: pl.DataFrame):
    grouping = phrases.grouping_of(matched)
    assert (grouping["9"], grouping["woman"], grouping["2 man"]) == ("skin_tone", "gender", "skin_tone × gender")


def test_the_rows_within_the_other_labels_decide_the_farthest_from_0_first(results: pl.DataFrame):
    rows, _ = phrases.decided(results, "gap", subset="race")
    sizes = [abs(row["value"]) for row in rows]
    assert len(sizes) == 24
    assert sizes == sorted(sizes, reverse=True)
    assert {(row["subset"], row["variant"]) for row in rows} == {("race", "within gender")}
