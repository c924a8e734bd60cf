"""Findings about own prompts: only from gaps that were found."""

from __future__ import annotations

import polars as pl

from beholder._run import Run
from beholder.comparison.family import NONE_FOUND
from beholder.studies.custom.chapter import custom_findings


def test_own_prompts_differ_where_a_gap_was_found(custom_run: Run) -> None:
    findings = {finding.headline: finding for finding in custom_run.findings}
    assert set(findings) == {"Belief in “calm” differs by gender", "Belief in “angry” differs by gender"}
    finding = findings["Belief in “calm” differs by gender"]
    assert finding.sentence.startswith(
        "Mean belief in “calm” among the prompts of level “mood” is 60 % for women and 45 % for men"
    )
    assert [row["metric"] for row in finding.rows] == ["custom.gap"]


def test_intervals_of_means_that_do_not_meet_are_no_finding(custom_run: Run) -> None:
    """As in the audits of `null`, of which 27 in 40 said that something differs."""
    results = custom_run.results
    assert list(custom_findings(results.filter(metric="custom.probability"))) == []
    (finding,) = custom_findings(results.with_columns(verdict=pl.lit(NONE_FOUND)))
    assert (finding.headline, finding.verdict) == ("No difference by gender was found", NONE_FOUND)
