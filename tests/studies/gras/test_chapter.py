"""GRAS's chapter on the page and in the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from beholder._run import Run
from beholder.report.page import render
from beholder.report.summary import print_summary


@pytest.mark.slow
def test_a_full_page_is_small_and_does_not_list_every_row(gras_full: Run) -> None:
    assert gras_full.results.height > 19_000
    page = render(gras_full.report)
    assert len(page.encode()) < 4_000_000
    assert page.count("<tr") < 150
    assert "“Belief”" not in page  # no prompts compete here


@pytest.mark.slow
def test_hostile_groups_are_shown_as_text(gras_hostile: Run) -> None:
    page = render(gras_hostile.report)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_summary_is_compact(gras_full: Run, columns: int) -> None:
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
    print_summary(gras_full.report, console, verbose=True)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = text.splitlines()
    assert "Bias scores" in text
    assert "The five largest gaps" in text
    assert "gras.group_mean" not in text
    assert len(lines) < 135  # at 60 columns answers are wrapped, never cut
    assert max(map(len, lines)) <= columns
    assert re.search(r"gender +kind .*19\.0", text)
