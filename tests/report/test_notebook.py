"""In a notebook a run, a finding and a chart show themselves, and names from data stay text."""

from __future__ import annotations

import altair as alt
import pytest

import beholder
from beholder._run import Run
from beholder.core.errors import UnknownName


def test_a_run_shows_a_line_for_every_question(two_models: Run) -> None:
    html = two_models._repr_html_()
    asked = {(finding.model, finding.question) for finding in two_models.findings if finding.question}
    assert html.count("<tr>") - html.count("<thead>") == len(asked)
    assert "● difference found" in html


def test_names_from_data_stay_text(hostile_run: Run) -> None:
    shown = hostile_run._repr_html_() + "".join(finding._repr_html_() for finding in hostile_run.findings)
    assert "<script>" not in shown
    assert "<img" not in shown


@pytest.mark.slow
def test_charts_are_altair_charts_by_name(apa_run: Run) -> None:
    name = next(iter(apa_run.charts))
    chart = apa_run.charts[name]
    assert isinstance(chart, alt.Chart | alt.LayerChart)
    assert chart.to_dict()["title"]["text"]
    with pytest.raises(UnknownName, match=name):
        apa_run.charts["apa.nothing"]


def test_numbers_by_group_are_a_tidy_frame(apa_run: Run) -> None:
    metric = apa_run.results.filter(group="woman")["metric"][0]
    frame = apa_run.by_group(metric)
    assert {"woman", "man"} <= set(frame["group"])
    assert {"value", "low", "high", "n"} <= set(frame.columns)
    with pytest.raises(UnknownName):
        apa_run.by_group("apa.nothing")


def test_the_package_lists_its_public_names() -> None:
    assert set(beholder.__all__) <= set(dir(beholder))
    assert all(getattr(beholder, name) is not None for name in dir(beholder))
