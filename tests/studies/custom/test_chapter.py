"""The chapter on own prompts is the one of the study, and its findings answer its question."""

from __future__ import annotations

import re

from beholder._run import Run
from beholder.studies import STUDIES
from beholder.studies.custom.chapter import CHAPTER


def test_every_finding_answers_the_question_of_the_chapter(custom_run: Run) -> None:
    assert STUDIES["custom"].part("chapter") is CHAPTER
    question = CHAPTER.questions["custom"]
    assert [(each.question, each.topic) for each in custom_run.findings] == [(question.text, question.topic)] * 2


def test_tables_and_charts_are_of_a_topic_of_the_chapter(custom_run: Run) -> None:
    parts = [*CHAPTER.tables(custom_run.results), *CHAPTER.figures(custom_run.results)]
    assert len(parts) == 3
    assert {part.topic for part in parts} == set(CHAPTER.topics)


def test_the_answer_names_who_is_higher_and_each_attribute_has_a_card(custom_run: Run) -> None:
    answers = {each.answer for each in custom_run.findings}
    assert all(
        re.fullmatch(r"The model sees “\w+” more in (wo)?men \(.+ % of its belief\) than in .+ %\)\.", each)
        for each in answers
    )
    assert {each.card for each in custom_run.findings} == {"Your prompts by gender"}
