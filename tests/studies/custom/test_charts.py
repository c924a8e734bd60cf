"""Charts of own prompts, with titles that say what is seen."""

from __future__ import annotations

from beholder.chapter.chart_parts import gap_title
from beholder.run import Run
from beholder.studies.custom.charts import custom_figures


def test_titles_say_what_is_seen(custom_run: Run) -> None:
    groups = custom_run.results.filter(subset="gender").to_dicts()
    assert gap_title(groups) == "widest gap at “calm”, women 60 % and men 45 %"
    (figure,) = custom_figures(custom_run.results)
    assert figure.title == "Prompts of level mood by gender: widest gap at “calm”, women 60 % and men 45 %"
