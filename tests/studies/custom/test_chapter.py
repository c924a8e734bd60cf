"""The chapter on own prompts: tables, charts and findings by level and group."""

from __future__ import annotations

from beholder.chapter.chart_parts import gap_title
from beholder.run import Run
from beholder.studies.custom.charts import custom_figures
from beholder.studies.custom.tables import custom_tables


def test_own_prompts_differ_where_intervals_do_not_meet(custom_run: Run) -> None:
    findings = {finding.headline: finding for finding in custom_run.findings}
    assert set(findings) == {"“calm” differs by gender", "“angry” differs by gender"}
    finding = findings["“calm” differs by gender"]
    assert finding.sentence == (
        "Among the prompts of level “mood”, “calm” gets 60 % for woman (95 % interval 57–63 %, n = 40) and 45 % for "
        "man (95 % interval 42–48 %, n = 40). The intervals do not meet."
    )
    assert [row["group"] for row in finding.rows] == ["woman", "man"]


def test_own_prompts_stand_by_group(custom_run: Run) -> None:
    (table,) = custom_tables(custom_run.results)
    assert table.title == "Prompts of level mood by gender"
    assert table.header == ["Prompt", "everyone (n = 80)", "woman (n = 40)", "man (n = 40)"]
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_titles_say_what_is_seen(custom_run: Run) -> None:
    groups = custom_run.results.filter(subset="gender").to_dicts()
    assert gap_title(groups) == "widest gap at “calm”, women 60 % and men 45 %"
    (figure,) = custom_figures(custom_run.results)
    assert figure.title == "Prompts of level mood by gender: widest gap at “calm”, women 60 % and men 45 %"
