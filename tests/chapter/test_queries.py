"""What every chapter asks of the results table."""

from __future__ import annotations

import polars as pl

from beholder.chapter.queries import by_column, by_model, deciding, metric_rows, one_row, widest_first, with_metrics
from beholder.core.results import Row, results_table

ROWS = [
    Row("s.gap", 0.1, 9, "probability", concept="a", low=0.05, high=0.15, p_value=0.01),
    Row("s.gap", -0.3, 9, "probability", concept="b", low=-0.4, high=-0.2, p_value=0.2),
    Row("s.gap", -0.2, 9, "probability", concept="c", low=-0.3, high=-0.1, p_value=0.04),
    Row("s.gap", None, 9, "probability", concept="d"),
    Row("s.gap_wide", 0.9, 9, "probability", concept="a"),
]
PART = pl.concat(results_table(ROWS, study="s", model=model, dataset="d") for model in ("y", "x"))
ONE = PART.filter(model="y")


def test_rows_of_a_metric_have_values_unless_absent_ones_are_asked_for():
    assert metric_rows(ONE, "gap")["concept"].to_list() == ["a", "b", "c"]
    assert metric_rows(ONE, "gap", absent=True)["concept"].to_list() == ["a", "b", "c", "d"]


def test_one_row_is_the_first_that_matches():
    row = one_row(ONE, "gap", concept="b")
    assert row is not None
    assert row["value"] == -0.3
    assert one_row(ONE, "gap", concept="d") is None


def test_models_keep_their_order():
    assert [(model, own.height) for model, own in by_model(PART)] == [("y", 5), ("x", 5)]


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
