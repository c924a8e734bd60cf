"""Tables of own prompts: prompts down, groups across."""

from __future__ import annotations

from beholder._run import Run
from beholder.studies.custom.chapter import custom_tables


def test_own_prompts_stand_by_group(custom_run: Run) -> None:
    gaps, table = custom_tables(custom_run.results)
    assert gaps.header == ["Attribute", "Prompt", "Higher", "Lower", "Gap", "p", "n"]
    assert [cell.text for cell in gaps.rows[0]] == ["gender", "mood: calm", "woman", "man", "15.0", "0.002", "80"]
    assert [row[4].strong for row in gaps.rows] == [True, True, False]
    assert table.title == "Prompts of level mood by gender"
    assert table.header == ["Prompt", "everyone (n = 80)", "woman (n = 40)", "man (n = 40)"]
    assert {len(row) for row in table.rows} == {len(table.header)}
