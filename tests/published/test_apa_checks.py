"""APA's printed tables are checked against themselves, and what breaks a rule is listed."""

from __future__ import annotations

import pytest

from beholder.studies.apa.printed import PRINTED
from beholder.studies.printed import Check


@pytest.fixture(scope="module")
def checks() -> dict[tuple[str, str], Check]:
    checks = PRINTED.checks
    return {(check.table, " ".join(check.rule.split(" ")[:2])): check for check in checks}


def test_all_117_ratios_follow_from_their_rows(checks: dict[tuple[str, str], Check]):
    assert checks["Tables 5–7", "The ratio"][3:5] == (117, 117)


def test_rows_above_100_percent_are_listed_with_their_sum(checks: dict[tuple[str, str], Check]):
    """Against the obvious loop over the printed rows."""
    totals: dict[str, float] = {}
    for row in PRINTED.cells.filter(place="Table 5", metric="apa.occupation_probability").to_dicts():
        name = f"{row['model']}, {row['group']}"
        totals[name] = totals.get(name, 0.0) + 100 * row["printed"]
    over = checks["Table 5", "Shares of"].exceptions
    assert [line.partition(":")[0] for line in over] == [name for name, total in totals.items() if total > 100.041]
    assert len(over) == 30
    assert "RN50, woman: 172.9 %" in over


def test_figures_that_are_no_float16_means_are_listed(checks: dict[tuple[str, str], Check]):
    assert len(checks["Tables 5–7", "Figures are"].exceptions) == 1
    assert checks["Tables 5–7", "Figures are"].of == 1_872
    assert len(checks["Table 8", "Figures are"].exceptions) == 9


def test_models_printed_to_one_place_are_counted(checks: dict[tuple[str, str], Check]):
    assert len(checks["Table 8", "Figures carry"].exceptions) == 6


def test_what_table_1_and_the_text_contradict_is_listed(checks: dict[tuple[str, str], Check]):
    """Against the printed rows themselves."""
    politicians = [
        row["printed"] for row in PRINTED.cells.filter(metric="apa.bias_ratio", subset="politicians").to_dicts()
    ]
    assert (min(politicians), min(politicians, key=lambda b: abs(b - 1))) == (0.226, 0.998)
    assert "0.317 in Table 1; Table 6 has 0.226" in checks["Table 1", "The lowest"].finding
    assert "1.008 in Table 1; Table 6 has 0.998" in checks["Table 1", "The most"].finding
    assert "athletes 6 of 39" in checks["text", "Most ratios"].finding
    assert checks["text", "Most ratios"][3:5] == (2, 3)
    assert "109 images × 6 = 600; that is 654" in checks["text", "Products of"].finding
    assert "“a picture of”" in checks["text", "The prompt"].finding
