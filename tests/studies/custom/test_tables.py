"""Tables of own prompts: prompts down, groups across."""

from __future__ import annotations

from beholder.run import Run
from beholder.studies.custom.tables import custom_tables


def test_own_prompts_stand_by_group(custom_run: Run) -> None:
    (table,) = custom_tables(custom_run.results)
    assert table.title == "Prompts of level mood by gender"
    assert table.header == ["Prompt", "everyone (n = 80)", "woman (n = 40)", "man (n = 40)"]
    assert {len(row) for row in table.rows} == {len(table.header)}
