"""P-FI's printed tables are checked against themselves and against APA's."""

from __future__ import annotations

import pytest

from beholder.published.ledger import ledger_of
from beholder.studies.pfi.checks import pfi_checks
from beholder.studies.pfi.printed import PRINTED
from beholder.studies.printed import Check


@pytest.fixture(scope="module")
def checks() -> dict[tuple[str, str], Check]:
    checks = pfi_checks(PRINTED, ledger_of("pfi", PRINTED))
    return {(check.table, " ".join(check.rule.split(" ")[:2])): check for check in checks}


def test_exchanged_columns_are_listed(checks: dict[tuple[str, str], Check]):
    exchanged = checks["Table 2", "Text and"]
    assert exchanged[3:5] == (2, 27)
    assert any(line.startswith("ViT-B-32, house: P-FI text 30.76") for line in exchanged.exceptions)


def test_all_5_ratios_follow_and_one_row_does_not_add_up(checks: dict[tuple[str, str], Check]):
    sums = checks["Table 1", "The seven"]
    assert checks["Table 1", "The ratio"][3:5] == (5, 5)
    assert sums[3:5] == (9, 10)
    assert sums.exceptions[0].endswith("99.94 %")
