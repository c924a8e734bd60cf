"""The chapter on captions, on the page and in the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from beholder._run import Run
from beholder.report.page import render
from beholder.report.summary import print_summary
from beholder.studies.exposure.measures import METRICS

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.slow
def test_the_page_names_the_captions_and_escapes_them(made: Callable[..., Run]):
    page = render(made(called=HOSTILE).report)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert HOSTILE not in page
    assert all(metric.name in page for metric in METRICS)


def test_the_terminal_shows_findings_and_tables(made: Callable[..., Run]):
    console = Console(width=100, force_terminal=True, record=True, file=io.StringIO())
    run = made()
    print_summary(run.report, console, verbose=True)
    text = console.export_text()
    assert "Women are named less often than men" in text
    assert "Captions per person" in text
