"""Disparity's chapter on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from rich.console import Console

from beholder._run import Run
from beholder.report.page import render
from beholder.report.summary import print_summary
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.chapter import CHAPTER
from beholder.studies.disparity.companions import QUALITIES
from beholder.studies.disparity.study import METRICS


@pytest.mark.slow
def test_every_finding_has_a_question_and_every_part_a_topic(full: pl.DataFrame, three_groups: pl.DataFrame):
    kinds = {finding.kind for part in (full, three_groups) for finding in CHAPTER.findings(part)}
    assert kinds == {*CHAPTER.questions} - {"words"}  # four concepts are too few for a sentence about word vectors
    topics = {question.topic for question in CHAPTER.questions.values()} | {metric.topic for metric in METRICS}
    topics |= {each.topic for make in (CHAPTER.tables, CHAPTER.figures) for each in make(full)}
    assert topics == set(CHAPTER.topics)


def test_every_metric_of_a_pair_is_declared_as_paired(full: pl.DataFrame, three_groups: pl.DataFrame):
    rows = pl.concat([full, three_groups])
    assert set(rows["metric"]) <= {metric.name for metric in METRICS}
    compared = set(rows.filter(pl.col("against").is_not_null())["metric"])
    opened = {f"disparity.ap_gap_same_{name}" for name in QUALITIES}  # with --quality only: test_companions.py
    assert compared == {metric.name for metric in METRICS if metric.paired} - opened
    assert not compared & set(rows.filter(pl.col("against").is_null())["metric"])


@pytest.mark.slow
def test_names_from_data_are_escaped_on_the_page(
    object_world: Callable[..., ScoreMatrix], measure: Callable[..., pl.DataFrame], undrawn: list[object]
):
    bad = "<script>alert(1)</script>"
    run = Run()
    run.add(measure(object_world(300, (bad, "dog"), {("woman", bad): 1.5})))
    page = render(run.report)
    assert bad not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<img" not in page.partition("<script>")[0]  # ids, never images


@pytest.mark.slow
def test_three_groups_and_two_models_have_a_page_and_a_summary(three_groups: pl.DataFrame, undrawn: list[object]):
    run = Run()
    for model in ("one", "two"):
        run.add(three_groups.with_columns(model=pl.lit(model)))
    assert "“b” less the rest" in render(run.report)
    console = Console(record=True, width=120, force_terminal=True)
    print_summary(run.report, console, verbose=True)
    assert "“b” less the rest" in console.export_text()
