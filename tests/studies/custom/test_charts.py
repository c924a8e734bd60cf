"""Charts of own prompts, with titles that say what is seen."""

from __future__ import annotations

import polars as pl

from beholder._run import Run
from beholder.studies.custom.chapter import custom_figures


def test_titles_say_what_is_seen(custom_run: Run) -> None:
    (figure,) = custom_figures(custom_run.results)
    assert figure.title == "Prompts of level mood by gender: widest gap at “calm”, women 60 % and men 45 %"


def test_a_gap_that_was_not_found_is_in_no_title(custom_run: Run) -> None:
    (figure,) = custom_figures(custom_run.results.with_columns(verdict=pl.lit("none found")))
    assert figure.title == "Prompts of level mood by gender: no gap was found"
