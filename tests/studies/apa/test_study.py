"""What APA's declaration says of itself."""

from __future__ import annotations

from pathlib import Path

from beholder.studies.apa.study import APA

MARK = "not intended for distribution or citation"


def test_how_to_cite_says_that_the_paper_asks_not_to_be_cited():
    assert MARK in APA.citation
    page = Path(__file__).parents[3] / "docs" / "apa.md"
    assert MARK in page.read_text(encoding="utf-8").partition("## How to cite")[2]
