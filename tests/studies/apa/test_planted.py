"""Known truth for APA: every planted value has one key, and the audit is compared with it."""

from __future__ import annotations

import re

import polars as pl
import pytest

from beholder._run import Run
from beholder.studies.apa.chapter import PLANTED, RATIO, comparisons, planted_findings, planted_table


def test_every_planted_value_has_a_key_of_its_own():
    implied = {(row["metric"], row["subset"], row["group"], row["concept"]): row["value"] for row in PLANTED}
    assert len(implied) == len(PLANTED)
    assert implied["apa.bias_ratio", "judges", "", "judge"] == pytest.approx(1)


def test_the_embedded_world_compares_known_truth_with_the_audit(glasshouse_run: Run) -> None:
    (finding,) = [finding for finding in glasshouse_run.findings if finding.kind == "planted"]
    assert finding.model == "glasshouse/contrastive"
    reach = re.fullmatch(
        r"The audit finds the three planted ratios that it measures within (\d\.\d{3})", finding.headline
    )
    assert reach
    off = max(abs(row["off"]) for row in comparisons(glasshouse_run.results) if row["metric"] == RATIO)
    assert off <= float(reach[1]) < off + 0.0011
    assert "judges: planted 1.00, found 1.01 (0.95–1.08)" in finding.sentence
    assert {row["metric"] for row in finding.rows} == {"apa.bias_ratio"}
    assert [row["subset"] for row in finding.rows] == ["doctors", "chefs", "judges"]


def test_ratios_that_were_not_measured_are_not_counted_as_found(glasshouse_run: Run) -> None:
    chefs = pl.col("subset") == "chefs"
    (finding,) = planted_findings(glasshouse_run.results.filter(chefs, model="glasshouse/contrastive"))
    assert finding.headline.startswith("The audit finds the one planted ratio that it measures within 0.")


def test_a_difference_is_what_was_found_minus_what_was_planted(glasshouse_run: Run) -> None:
    rows = {row["subset"]: row for row in comparisons(glasshouse_run.results) if row["metric"] == RATIO}
    assert rows["judges"]["off"] == pytest.approx(0.01)
    table = planted_table(glasshouse_run.results)
    assert table is not None
    row = next(row for row in table.rows if row[0].text == "judges: women over men")
    assert [cell.text for cell in row[1:]] == ["100", "1.00", "1.01", "+0.010"]


def test_only_the_reference_model_was_taught_anything(glasshouse_run: Run) -> None:
    assert planted_table(glasshouse_run.results.filter(pl.col("model") == "null")) is None
