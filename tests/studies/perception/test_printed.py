"""Printed sizes of image sets, counted again in the labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.report.replication import DATA, ledger_of
from beholder.studies.perception.study import PRINTED
from beholder.studies.printed import EQUAL, NOT_MEASURED


def count(data: Path, dataset: str) -> dict[str, object]:
    return ledger_of("perception", PRINTED, data=data).filter(metric="perception.count", dataset=dataset).to_dicts()[0]


def test_without_data_nothing_is_counted(tmp_path: Path):
    assert PRINTED.sizes(tmp_path) == {}
    assert count(tmp_path, "fairface-adults")["verdict"] == NOT_MEASURED


@pytest.mark.real
def test_the_printed_size_of_fairface_is_that_of_its_labels(data: Path):
    row = count(data, "fairface-adults")
    assert (row["value"], row["verdict"], row["origin"]) == (38_744, EQUAL, DATA)


@pytest.mark.real
def test_a_part_of_a_source_does_not_compare_and_says_so(data: Path):
    row = count(data, "utkface-adults")
    assert row["verdict"] == NOT_MEASURED
    assert "of the source's 23,708 images" in str(row["reason"])
