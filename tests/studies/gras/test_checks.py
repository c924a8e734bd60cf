"""The printed sentences of GRAS against its own tables."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

from beholder.studies.gras.prompts import read_traits
from beholder.studies.gras.study import PRINTED
from beholder.studies.printed import Check


def sentences() -> dict[str, Check]:
    return {check.rule: check for check in PRINTED.checks if "above the mean" in check.rule}


def test_two_of_the_abstracts_five_valence_sentences_do_not_hold_for_blip2() -> None:
    *_, women = sentences().values()
    kept = {check.rule.partition(" % ")[0]: (check.obey, check.exceptions) for check in sentences().values()}
    assert kept == {
        "Men have 60": (5, ()),
        "Middle Eastern faces have 88": (5, ()),
        "MST 8 to 10 have 80": (4, ("blip2-opt-2.7b: 10 %",)),
        "MST 5 have 66": (5, ()),
        "Women have 44": (4, ("blip2-opt-2.7b: 4 %",)),
    }
    assert not women.holds
    assert "about 30 %" in women.finding


@pytest.mark.real
def test_blip2s_shares_are_counted_in_the_authors_own_file(data: Path) -> None:
    """Group mean above the overall mean in all five templates, from their columns."""
    path = data / "gras" / "evaluation_results" / "blip2-opt-2.7b_gender_bias_analysis.csv"
    positive = set(read_traits().filter(pl.col("valence") == "positive")["trait"])
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["trait"] in positive]
    above = [
        all(float(row[f"gender_Female_mean_template_{k}"]) > float(row[f"overall_mean_template_{k}"]) for k in range(5))
        for row in rows
    ]
    assert 100 * sum(above) / len(above) == pytest.approx(4)
