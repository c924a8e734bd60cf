"""A finding names its model, its verdict and the rows that bear it out."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.chapter.finding import (
    Finding,
    by_column,
    by_model,
    deciding,
    finding,
    metric_rows,
    one_row,
    swapped,
    valued,
    verdict_of_rows,
    widest_first,
    with_metrics,
)
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE, VERDICTS
from beholder.core.results import KEY, Row, results_table

ROWS = [
    Row("s.gap", 0.2, 9, "probability", group="a", against="b", low=0.1, high=0.3, p_value=0.01),
    Row("s.gap", None, 0, "probability", group="c", against="b", note="no image"),
    Row("s.mean", 0.5, 9, "probability", group="a"),
]
PART = results_table(ROWS, study="s", model="m", dataset="d")
GAP, _, MEAN = PART.to_dicts()


def test_the_names_of_findings_json_are_our_api():
    entry = finding(GAP, "gaps", "A differs", "A differs from B.", shown=True, more=[MEAN]).as_dict()
    assert list(entry) == (
        "id study model dataset question verdict headline sentence metric value low high p_value n rows answer "
        "contrasts".split()
    )
    assert (entry["study"], entry["model"], entry["dataset"]) == ("s", "m", "d")
    assert (entry["metric"], entry["value"], entry["low"], entry["p_value"], entry["n"]) == ("s.gap", 0.2, 0.1, 0.01, 9)
    assert [list(row) for row in entry["rows"]] == [list(KEY)] * 2
    assert (entry["rows"][0]["group"], entry["rows"][0]["against"]) == ("a", "b")


def test_a_finding_without_rows_has_no_number():
    entry = Finding("s", "d", "m", "gaps", "h", "s", NONE_FOUND, 0.0).as_dict()
    assert (entry["metric"], entry["value"], entry["n"], entry["rows"]) == (None, None, None, [])
    assert Finding("s", "d", "m", "gaps", "h", "s", NONE_FOUND, 0.0).metric == ""


def test_the_four_verdicts_are_fixed():
    assert VERDICTS == ("difference found", "none found", "too little data", "fact", "not measured")


@pytest.mark.parametrize(
    ("options", "verdict"), [({}, NONE_FOUND), ({"shown": True}, DIFFERENCE), ({"verdict": TOO_LITTLE}, TOO_LITTLE)]
)
def test_a_difference_is_shown_only_where_it_is_said_to_be(options: dict[str, object], verdict: str):
    made = finding(GAP, "gaps", "h", "s", **options)  # type: ignore[arg-type]
    assert made.verdict == verdict
    assert made.shown == (verdict == DIFFERENCE)


def test_rows_without_a_value_are_no_evidence():
    assert [row["group"] for row in valued(PART, "gap")] == ["a"]


def test_a_difference_turned_twice_is_itself():
    row = {"group": "a", "against": "b", "value": -2.0, "low": -3.0, "high": -1.0}
    other = swapped(row)
    assert (other["group"], other["value"], other["low"]) == ("b", 2.0, 1.0)
    assert {key: swapped(other)[key] for key in row} == row


def test_one_difference_among_several_rows_is_a_difference():
    assert verdict_of_rows([{"verdict": NONE_FOUND}, {"verdict": DIFFERENCE}]) == DIFFERENCE
    assert verdict_of_rows([]) == "not measured"


# Queries

GAP_ROWS = [
    Row("s.gap", 0.1, 9, "probability", concept="a", low=0.05, high=0.15, p_value=0.01),
    Row("s.gap", -0.3, 9, "probability", concept="b", low=-0.4, high=-0.2, p_value=0.2),
    Row("s.gap", -0.2, 9, "probability", concept="c", low=-0.3, high=-0.1, p_value=0.04),
    Row("s.gap", None, 9, "probability", concept="d"),
    Row("s.gap_wide", 0.9, 9, "probability", concept="a"),
]
MODELS = pl.concat(results_table(GAP_ROWS, study="s", model=model, dataset="d") for model in ("y", "x"))
ONE = MODELS.filter(model="y")


def test_rows_of_a_metric_have_values_unless_absent_ones_are_asked_for():
    assert metric_rows(ONE, "gap")["concept"].to_list() == ["a", "b", "c"]
    assert metric_rows(ONE, "gap", absent=True)["concept"].to_list() == ["a", "b", "c", "d"]


def test_one_row_is_the_first_that_matches():
    row = one_row(ONE, "gap", concept="b")
    assert row is not None
    assert row["value"] == -0.3
    assert one_row(ONE, "gap", concept="d") is None


def test_models_keep_their_order():
    assert [(model, own.height) for model, own in by_model(MODELS)] == [("y", 5), ("x", 5)]


def test_the_widest_is_first_in_either_direction():
    table = widest_first(metric_rows(ONE, "gap"))
    assert list(by_column(table, "concept")) == ["b", "c", "a"]


def test_a_row_within_strata_decides_in_place_of_the_published_one():
    within = ONE.filter(metric="s.gap").head(1).with_columns(variant=pl.lit("within branch"))
    table = deciding(pl.concat([ONE, within]))
    assert table.height == ONE.height
    assert table["variant"].drop_nulls().to_list() == ["within branch"]


def test_other_metrics_become_columns():
    table = with_metrics(metric_rows(ONE, "gap"), ONE, ["concept"], wide="gap_wide")
    assert table["wide"].to_list() == [0.9, None, None]
