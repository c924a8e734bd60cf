"""P-FI's printed tables are checked against themselves and against APA's."""

from __future__ import annotations

import pytest

from beholder.studies.pfi.study import PRINTED
from beholder.studies.printed import Check


@pytest.fixture(scope="module")
def checks() -> dict[tuple[str, str], Check]:
    checks = PRINTED.checks
    return {(check.table, " ".join(check.rule.split(" ")[:2])): check for check in checks}


def test_the_columns_of_table_2_are_what_its_caption_defines(checks: dict[tuple[str, str], Check]):
    """Text Score identifies the unique name: given an image. The reference file has the columns by their heading."""
    printed = {
        row["metric"]: row["printed"] for row in PRINTED.cells.filter(printed_as="ViT-B-32", subset="house").to_dicts()
    }
    assert printed == {"pfi.identity_given_image": 0.3076, "pfi.identity_given_name": 0.2828}
    directions = checks["Table 2", "Text and"]
    assert directions[3:5] == (25, 27)
    assert [line.partition(":")[0] for line in directions.exceptions] == ["ALBEF, house", "ALBEF, senate"]
    assert "body text reads the other way" in directions.finding


def test_what_the_text_contradicts_is_listed(checks: dict[tuple[str, str], Check]):
    assert "109 actors, and 100 athletes" in checks["text", "The numbers"].finding
    assert checks["text", "Every listed"][3:5] == (10, 16)


def test_all_5_ratios_follow_and_one_row_does_not_add_up(checks: dict[tuple[str, str], Check]):
    sums = checks["Table 1", "The seven"]
    assert checks["Table 1", "The ratio"][3:5] == (5, 5)
    assert sums[3:5] == (9, 10)
    assert sums.exceptions[0].endswith("99.94 %")
