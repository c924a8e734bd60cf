"""Sizes that papers print of their data, counted again."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.published.ledger import DATA, DIFFERS, EQUAL, NOT_MEASURED, ledger
from beholder.published.sizes import data_sizes


def sizes(data: Path) -> dict[tuple[str, str], dict[str, object]]:
    rows = [row for row in ledger(data=data).to_dicts() if row["metric"].endswith(".count")]
    return {(row["dataset"], row["concept"]): row for row in rows}


def test_without_data_nothing_is_counted(tmp_path: Path):
    assert data_sizes(tmp_path) == {}
    assert {row["verdict"] for row in sizes(tmp_path).values()} == {NOT_MEASURED}


@pytest.mark.real
def test_the_printed_size_of_fairface_is_that_of_its_labels(data: Path):
    row = sizes(data)["fairface-adults", "images"]
    assert (row["value"], row["verdict"], row["origin"]) == (38_744, EQUAL, DATA)


@pytest.mark.real
def test_a_part_of_a_source_does_not_compare_and_says_so(data: Path):
    row = sizes(data)["utkface-adults", "images"]
    assert row["verdict"] == NOT_MEASURED
    assert "of the source's 23,708 images" in row["reason"]


@pytest.mark.real
def test_another_way_to_cut_captions_explains_cocos_size(data: Path):
    row = sizes(data)["coco", "images"]
    assert (row["value"], row["verdict"]) == (1_418, DIFFERS)
    assert row["reason"].endswith("they give 1,412")
