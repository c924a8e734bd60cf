"""The report is built once, and everything in it knows where it belongs."""

from __future__ import annotations

import re

import polars as pl
import pytest

from beholder._run import Run
from beholder.comparison.family import VERDICTS
from beholder.report.page import render
from beholder.studies import STUDIES

CHAPTERS = [name for name in STUDIES if STUDIES[name].tells.chapter]


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_metric_has_a_topic_of_its_chapter(name: str):
    chapter = STUDIES[name].part("chapter")
    for metric in STUDIES[name].measures.metrics:
        assert set(metric.topic.split()) & {*chapter.topics, "results"}, metric.name


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_question_points_to_a_topic_of_its_chapter(name: str):
    chapter = STUDIES[name].part("chapter")
    for question in chapter.questions.values():
        assert question.topic in {*chapter.topics, "planted"}
        assert question.text.endswith("?")


@pytest.mark.parametrize("name", ["apa_run", "custom_run", pytest.param("gras_full", marks=pytest.mark.slow)])
def test_charts_name_the_rows_they_are_drawn_from(name: str, request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    parts = re.findall(r'<section class="topic".*?</section>', render(run.report), re.DOTALL)
    assert parts
    for part in parts:
        assert re.search(r'data-tab="Data">\s*<ul class="data"><li><a href="#rows" data-metric="[\w.]+"', part)


@pytest.mark.parametrize("name", ["apa_run", pytest.param("gras_full", marks=pytest.mark.slow)])
def test_findings_have_ids_questions_verdicts_and_rows_of_the_results(name: str, request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    entries = [finding.as_dict() for finding in run.findings]
    assert entries
    assert len({entry["id"] for entry in entries}) == len(entries)
    for entry in entries:
        assert entry["verdict"] in VERDICTS
        assert entry["question"]
        assert entry["rows"]
        for row in entry["rows"]:
            assert run.results.filter(*(pl.col(key).eq_missing(value) for key, value in row.items())).height
