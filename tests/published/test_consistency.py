"""The printed tables are checked against themselves, and what breaks a rule is listed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from beholder.published.consistency import Check, _correlation_p, consistency
from beholder.published.tables import published
from beholder.studies.gras.result_files import gras_results, read_result_files


@pytest.fixture(scope="module")
def checks() -> dict[tuple[str, str, str], Check]:
    return {(check.study, check.table, check.rule.split(" ")[0]): check for check in consistency()}


def test_all_117_ratios_follow_from_their_rows(checks: dict[tuple[str, str, str], Check]):
    assert checks["apa", "Tables 5–7", "The"][3:5] == (117, 117)


def test_rows_above_100_percent_are_listed_with_their_sum(checks: dict[tuple[str, str, str], Check]):
    """Against the obvious loop over the printed rows."""
    over = []
    for row in published("apa_gender_bias").filter(pl.col("table") == 5).to_dicts():
        total = sum(value for key, value in row.items() if isinstance(value, float) and key != "ratio")
        if total > 100.04:
            over.append(f"{row['model']}, {row['gender']}")
    found = checks["apa", "Table 5", "Shares"]
    assert [line.partition(":")[0] for line in found.exceptions] == over
    assert "RN50, woman: 172.9 %" in found.exceptions


def test_the_exchanged_columns_are_found(checks: dict[tuple[str, str, str], Check]):
    found = checks["pfi", "Table 2", "Text"]
    assert not found.holds
    assert any(line.startswith("ViT-B-32, house: P-FI text 30.76") for line in found.exceptions)


def test_the_p_of_a_correlation_is_that_of_scipy():
    x, y = [1.0, 2, 3, 4, 5], [2.0, 1, 4, 3, 5]
    r, p = stats.pearsonr(x, y)
    assert _correlation_p(r, 5) == pytest.approx(p)


@pytest.mark.real
def test_the_packaged_result_table_is_the_authors_own(data: Path):
    theirs = read_result_files(data / "gras" / "evaluation_results")
    assert theirs.equals(gras_results())
