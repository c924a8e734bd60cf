"""A chapter that declares only its topics adds nothing, and is still a chapter."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.chapter.chapter import Chapter, Question
from beholder.core.results import SCHEMA
from beholder.studies import STUDIES

EMPTY = pl.DataFrame(schema=SCHEMA)


def test_a_chapter_with_topics_alone_has_no_findings_tables_or_charts():
    chapter = Chapter({"gaps": "Gaps"})
    for part in (chapter.findings, chapter.tables, chapter.figures, chapter.limitations):
        assert list(part(EMPTY)) == []
    assert chapter.published(EMPTY) is None
    assert chapter.planted(EMPTY) is None
    assert chapter.page_title is None


def test_chapters_do_not_share_their_questions():
    first, second = Chapter({}), Chapter({})
    assert first.questions == {}
    assert first.questions is not second.questions
    assert Question("Who?", "gaps").topic == "gaps"


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].tells.chapter])
def test_every_chapter_of_a_study_is_empty_without_rows(name: str):
    chapter = STUDIES[name].part("chapter")
    assert isinstance(chapter, Chapter)
    for part in (chapter.findings, chapter.tables, chapter.figures):
        assert list(part(EMPTY)) == []
