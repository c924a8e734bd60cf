"""Disparity's rows by pair and by concept."""

from __future__ import annotations

import polars as pl

from beholder.studies.disparity import findings
from beholder.studies.disparity.findings import Pair


def test_pairs_are_read_from_two_columns(full: pl.DataFrame, three_groups: pl.DataFrame):
    assert findings.pairs(full) == [Pair("man", "woman")]
    assert findings.groups(three_groups) == ["a", "b", "c"]
    assert findings.pairs(three_groups) == [Pair(group, "the rest", rest=True) for group in "abc"]


def test_a_group_called_the_rest_is_not_the_rest(three_groups: pl.DataFrame):
    renamed = three_groups.with_columns(
        group=pl.col("group").replace("c", "the rest"), against=pl.col("against").replace("the rest", "all the rest")
    )
    assert findings.pairs(renamed)[2] == Pair("the rest", "all the rest", rest=True)
    two = renamed.filter(pl.col("group") != "b").with_columns(against=pl.lit("the rest"))
    assert findings.pairs(two)[0] == Pair("a", "the rest", rest=False)


def test_gaps_say_whether_they_agree_with_word_vectors(full: pl.DataFrame):
    table = {row["concept"]: row for row in findings.gaps(full, Pair("man", "woman")).to_dicts()}
    assert table["tie"]["words"] == findings.AGREES  # texts put it nearer to men, and it is seen better there
    assert table["handbag"]["words"] == findings.AGREES
    assert {name for name, row in table.items() if row["found"]} == {"tie", "handbag"}
    assert list(table) == sorted(table, key=lambda name: -abs(table[name]["value"]))


def test_ends_are_the_widest_gaps_in_either_direction():
    table = pl.DataFrame({"value": [0.3, -0.2, 0.1, -0.5, 0.0]})
    assert [row["value"] for row in findings.ends(table, 1)] == [0.3, -0.5]
