"""Numbers and names as a sentence prints them; rows are selected by their columns."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.studies.perception import findings as phrases


@pytest.mark.parametrize(
    ("name", "grouping", "text"),
    [
        ("2 or more races", "race", "2 or more races"),
        ("2", "skin_tone", "MST 2"),
        ("light", "skin_tone", "light"),
        ("10 woman", "skin_tone × gender", "MST 10 woman"),
        ("2 or more woman", "race × gender", "2 or more woman"),
        ("4", "smiling", "4"),
        ("everyone", None, "everyone"),
    ],
)
def test_only_a_skin_tone_has_its_scale(name: str, grouping: str | None, text: str):
    assert phrases.group(name, grouping) == text


def test_names_and_counts_are_those_that_a_sentence_needs():
    assert [phrases.dimension(name) for name in ("agency_pos", "openness")] == ["Agency +", "openness"]
    assert phrases.attribute("skin_tone") == "skin tone"
    assert phrases.attribute("smiling × skin_tone") == "smiling × skin tone"
    assert phrases.how_many(1, 24, "difference") == "1 of 24 differences is found"
    assert phrases.how_many(0, 1, "departure", "in slope") == "0 of 1 departure in slope are found"
    assert phrases.decimals_of({"low": 0.0001, "high": 0.0003, "landmark": None, "unit": "cosine"}) == 3


def test_the_groups_of_an_interaction_belong_to_its_second_attribute():
    row = {"subset": "smiling × skin_tone", "group": "2", "against": "9"}
    assert phrases.pair(row) == ("MST 2", "MST 9")
    assert phrases.change({"subset": "smiling", "group": "4", "against": "0"}) == "smiling: 4 against 0"
    assert phrases.change({"subset": "gender", "group": "a against b", "against": "c"}) == "a against b against c"


def test_numbers_are_printed_times_100_with_a_true_minus():
    row = {"value": -0.0123, "low": -0.02, "high": -0.001, "unit": "cosine"}
    assert (phrases.number(row), phrases.bounds(row)) == ("−1.23", "−2.00 to −0.10")
    assert phrases.signed({**row, "value": 0.0123}) == "+1.23"
    assert phrases.number({**row, "value": -1e-9}) == "0.00"
    assert phrases.number({**row, "unit": "match logit"}) == "−0.012"
    assert phrases.printed(row, -0.01) == {"value": -0.23, "low": -1.0, "high": 0.9}


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
