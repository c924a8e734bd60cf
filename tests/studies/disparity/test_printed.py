"""Printed sizes of COCO, counted again in its captions."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.published.ledger import ledger_of
from beholder.studies.disparity.printed import PRINTED
from beholder.studies.printed import DIFFERS, NOT_MEASURED


def sizes(data: Path) -> pl.DataFrame:
    return ledger_of("disparity", PRINTED, data=data).filter(metric="disparity.count")


def test_without_data_nothing_is_counted(tmp_path: Path):
    assert PRINTED.sizes(tmp_path) == {}
    assert set(sizes(tmp_path)["verdict"]) == {NOT_MEASURED}


@pytest.mark.real
def test_another_way_to_cut_captions_explains_the_size(data: Path):
    row = sizes(data).filter(dataset="coco", concept="images").row(0, named=True)
    assert (row["value"], row["verdict"]) == (1_418, DIFFERS)
    assert row["reason"].endswith("they give 1,412")
