"""Groups keep the names that the data gives them."""

from __future__ import annotations

import pytest

from beholder.studies.gras.phrases import group_name, pair_names, pair_text, score


@pytest.mark.parametrize(
    ("group", "attribute", "name"),
    [
        ("6", "skin_tone", "MST 6"),
        ("2 or more races", "race", "2 or more races"),
        ("60 and over", "age", "60 and over"),
        ("20", "age", "20"),
        ("very dark", "skin_tone", "very dark"),
    ],
)
def test_only_a_numbered_skin_tone_gets_its_scale(group: str, attribute: str, name: str) -> None:
    assert group_name(group, attribute) == name


def test_a_pair_is_read_from_two_columns() -> None:
    row = {"group": "60 and over", "against": "under 60", "subset": "age", "value": 0.1}
    assert pair_names(row) == ("60 and over", "under 60")
    assert pair_text(row) == "60 and over higher than under 60"
    assert pair_text({**row, "value": 0.0}) == "no group is higher"


def test_a_gap_without_a_pair_has_dashes() -> None:
    assert pair_names({"group": None, "against": None, "subset": "age"}) == ("—", "—")


def test_scores_have_the_decimals_that_the_study_prints() -> None:
    assert [score(value) for value in (98.25, 99.0, 21.333, None)] == ["98.25", "99", "21.3", "—"]
