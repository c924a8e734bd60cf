"""P-FI's prompts are those of the paper, and right for the right people."""

from __future__ import annotations

import pytest

from beholder.datasets.apa import BRANCHES
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.pfi.study import NAME_PROMPT, pfi_association_prompts


def test_pfi_asks_in_its_own_words():
    texts = pfi_association_prompts("athletes").texts
    assert "This is a photo of a monkey" in texts
    assert "This is a photo of an assistant coach" in texts
    assert "This is a photo of a golf player" in texts
    assert identity_prompts("senate", NAME_PROMPT, ["Ann"]).texts == ["This is a picture of Ann"]


@pytest.mark.parametrize("branch", BRANCHES)
def test_pfi_offers_seven_categories_and_one_of_them_is_right(branch: str):
    table = pfi_association_prompts(branch).table
    category = table.filter(table["level"] == "category")
    assert category["correct_for"].to_list() == ["*"] + [""] * 6


def test_pfi_roles_are_right_for_their_branch():
    for branch, role in (("house", "house representative"), ("senate", "senator"), ("mayors", "mayor")):
        table = pfi_association_prompts(branch).table
        right = table.filter((table["level"] == "specialty") & (table["correct_for"] == "*"))
        assert right["concept"].to_list() == [role]


def test_pfi_sports_are_right_for_who_plays_them():
    table = pfi_association_prompts("athletes").table
    rules = dict(table.filter(level="specialty").select("concept", "correct_for").iter_rows())
    assert (rules["Golf player"], rules["Tennis player"]) == ("sport=Golf", "sport=Tennis")
