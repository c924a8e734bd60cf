"""The comparison's lines, its lead and its page, from a table made by hand."""

from __future__ import annotations

import io
import re

import polars as pl
import pytest
from rich.console import Console

from beholder.comparison.family import verdict_of
from beholder.core.record import Record
from beholder.report.comparison import (
    Comparison,
    _ledger,
    fairness,
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


def test_each_question_is_told_by_its_surest_difference_in_words(comparison: Comparison):
    first, second = lines(comparison)
    assert (first.question, bool(first.meaning)) == ("APA: mean softmax probability of the correct prompt", True)
    assert (first.verdict, first.differ, first.compared) == ("different", 1, 2)
    assert first.where == "senate · category"
    assert first.sentence == "other 30 %, [b]one[/b] 50 %"
    assert first.difference == "−20.0 points (−22.0 to −18.0)"
    assert (second.verdict, second.differ) == ("too little data", 0)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(0.5, 0.8, "fairer"), (0.9, 0.5, "less fair"), (0.5, 2.0, "different"), (1.0, 1.3, "less fair")],
)
def test_fairer_is_nearer_to_equal(before: float, after: float, verdict: str):
    own = {"unit": "ratio", "landmark": 1.0, "first": before, "second": after, "subset": "politicians"}
    assert fairness(row("apa.bias_ratio", after - before, 0.001, **own)) == verdict
    assert fairness(row("apa.bias_ratio", after - before, 0.6, **own)) == "none found"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(None, None, "+0.12"), (0.1, 0.15, "+0.12 (0.10 to 0.15)"), (-2.0, 2.0, "+0.1 (−2.0 to 2.0)")],
)
def test_decimals_follow_the_width_of_the_interval(low: float | None, high: float | None, text: str):
    assert with_interval({"difference": 0.1234, "low": low, "high": high}) == text


def test_the_lead_counts_answers_and_does_not_call_the_rest_equal(comparison: Comparison):
    text = lead(comparison)
    assert text.startswith("Of 2 questions, other is different (neither is the fair one) in 1")
    assert text.endswith("and not known (too little data) in 1.")
    assert "there may still be one" in render_comparison(comparison)
    assert named(comparison) == ["[b]one[/b]", "other"]


def test_terminal_and_page_show_names_as_text_and_what_was_left_out(comparison: Comparison):
    console = Console(file=io.StringIO(), width=200, color_system=None, record=True)
    print_comparison(comparison, console)
    text = console.export_text()
    assert "[b]one[/b]" in text
    assert "Left out: gras: not asked." in text
    page = render_comparison(comparison)
    assert "gras: not asked" in page
    assert "women over men" in page
    assert not re.search(r"apa\.\w|bias ratio|ratio without", page), "a metric's id is no word"
    assert _ledger(comparison).data["fields"]["unit"]["words"] == ["per cent"]  # type: ignore[index, union-attr]
    assert page.count(">Verdict</") <= 1, "one filter"
