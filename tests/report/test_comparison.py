"""The comparison's lines, its lead and its page, from a table made by hand."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from beholder.comparison.family import verdict_of
from beholder.core.record import Record
from beholder.report.comparison import (
    Comparison,
    lead,
    lines,
    named,
    print_comparison,
    render_comparison,
    with_interval,
)


def row(metric: str, difference: float, p: float | None, **others: object) -> dict[str, object]:
    """A difference around 0.5; without a p-value it has no interval either."""
    low, high = (None, None) if p is None else (difference - 0.02, difference + 0.02)
    numbers = {"first": 0.5, "second": 0.5 + difference, "difference": difference, "low": low, "high": high}
    places = {"subset": None, "group": None, "against": None, "concept": None, "template": None}
    return {
        "study": "apa",
        "baseline": "[b]one[/b]",
        "model": "onnx:/models/other",
        "dataset": "apa",
        "metric": metric,
        **places,
        **numbers,
        "p_value": p,
        "verdict": verdict_of(p, 100),
        "n": 100,
        "unit": "probability",
        "note": None,
        **others,
    }


@pytest.fixture
def comparison() -> Comparison:
    rows = [
        row("apa.association", 0.01, 0.6, subset="actors"),
        row("apa.association", -0.2, 0.001, subset="senate", concept="category"),
        row("apa.bias_ratio", 0.1, None, subset="actors"),
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    return Comparison(["[b]one[/b]", "onnx:/models/other"], table, Record(left_out=["gras: not asked"]))


def test_each_metric_is_told_by_its_surest_difference(comparison: Comparison):
    first, second = lines(comparison)
    assert (first.metric, first.differ, first.compared) == ("apa.association", 1, 2)
    assert first.where == "senate · category"
    assert first.difference == "−0.20 (−0.22 to −0.18)"
    assert first.meaning
    assert (second.differ, second.mark) == (0, None)


def test_differences_of_one_unit_share_a_scale_with_no_difference_in_its_middle(comparison: Comparison):
    more = pl.DataFrame([row("apa.identity_given_image", 0.02, 0.001, subset="senate")], infer_schema_length=None)
    comparison.table = pl.concat([comparison.table, more], how="vertical_relaxed")
    first, _, third = (line.mark for line in lines(comparison))
    assert first is not None
    assert third is not None
    assert first.scale == third.scale
    assert (first.low, first.landmark) == (0.0, 50.0)
    assert first.low < first.at < first.high < 50 == third.low < third.at < third.high < 60


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(None, None, "+0.12"), (0.1, 0.15, "+0.12 (0.10 to 0.15)"), (-2.0, 2.0, "+0.1 (−2.0 to 2.0)")],
)
def test_decimals_follow_the_width_of_the_interval(low: float | None, high: float | None, text: str):
    assert with_interval({"difference": 0.1234, "low": low, "high": high}) == text


def test_the_lead_counts_what_differs_and_does_not_call_the_rest_equal(comparison: Comparison):
    text = lead(comparison)
    assert text.startswith("1 of 3 numbers differs between [b]one[/b] and other")
    assert "the interval says how large one may still be" in text
    assert "For 1 there is too little data." in text
    assert named(comparison) == ["[b]one[/b]", "other"]


def test_terminal_and_page_show_names_as_text_and_what_was_left_out(comparison: Comparison):
    console = Console(file=io.StringIO(), width=200, color_system=None, record=True)
    print_comparison(comparison, console)
    text = console.export_text()
    assert "[b]one[/b]" in text
    assert "Left out: gras: not asked." in text
    page = render_comparison(comparison)
    assert "gras: not asked" in page
    assert "apa.bias_ratio" in page
