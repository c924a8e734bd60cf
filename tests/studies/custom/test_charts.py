"""Charts of own prompts, with titles that say what is seen."""

from __future__ import annotations

import polars as pl

from beholder._run import Run
from beholder.studies.custom.chapter import custom_figures, custom_findings


def test_titles_are_the_headlines_of_findings_about_the_chart(custom_run: Run) -> None:
    (figure,) = custom_figures(custom_run.results)
    assert figure.title == "Prompts of level mood by gender"
    assert figure.titled(custom_run.findings).title == "Belief in “calm” differs by gender"


def test_a_gap_that_was_not_found_is_in_no_title(custom_run: Run) -> None:
    part = custom_run.results.with_columns(verdict=pl.lit("none found"))
    (figure,) = custom_figures(part)
    assert figure.titled(custom_findings(part)).title == "No difference by gender was found"
