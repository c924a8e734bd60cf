from __future__ import annotations

import re

import pytest

from beholder.report.page import render
from beholder.report.topics import TOPICS, metrics_of, topic_of
from beholder.run import Run
from beholder.studies import STUDIES
from beholder.studies.exposure.measures import METRICS as EXPOSURE


def test_every_metric_has_a_topic_and_every_topic_names_metrics_that_exist():
    known = {metric.partition(".")[2] for each in STUDIES.values() for metric in each.metrics}
    known |= {metric.partition(".")[2] for metric in EXPOSURE}
    named = {name for topic in TOPICS.values() for name in topic.metrics}
    assert named == known | {"probability"}  # that of own prompts


def test_metrics_are_those_that_were_measured():
    assert metrics_of("gender", ["apa.bias_ratio", "apa.association"]) == ["apa.bias_ratio"]
    assert topic_of("bias") == "gender"
    assert topic_of("identity") == "identity"


@pytest.mark.parametrize("name", ["apa_run", "custom_run", pytest.param("gras_full", marks=pytest.mark.slow)])
def test_charts_name_the_rows_they_are_drawn_from(name: str, request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    parts = re.findall(r'<section class="topic".*?</section>', render(run), re.DOTALL)
    assert parts
    for part in parts:
        assert re.search(r'<p class="source">Rows: <a href="#rows" data-metric="[\w.]+"', part)
