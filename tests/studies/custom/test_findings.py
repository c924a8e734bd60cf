"""Findings about own prompts: where intervals of two groups do not meet."""

from __future__ import annotations

import polars as pl

from beholder.run import Run
from beholder.studies.custom.findings import custom_findings


def test_own_prompts_differ_where_intervals_do_not_meet(custom_run: Run) -> None:
    findings = {finding.headline: finding for finding in custom_run.findings}
    assert set(findings) == {"“calm” differs by gender", "“angry” differs by gender"}
    finding = findings["“calm” differs by gender"]
    assert finding.sentence == (
        "Among the prompts of level “mood”, “calm” gets 60 % for woman (95 % interval 57–63 %, n = 40) and 45 % for "
        "man (95 % interval 42–48 %, n = 40). The intervals do not meet."
    )
    assert [row["group"] for row in finding.rows] == ["woman", "man"]


def test_overlapping_intervals_and_rows_without_any_are_no_finding(custom_run: Run) -> None:
    results = custom_run.results
    wide = results.with_columns(low=pl.col("value") - 0.2, high=pl.col("value") + 0.2)
    alone = results.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("low", "high"))
    assert list(custom_findings(wide)) == []
    assert list(custom_findings(alone)) == []
