"""Cells of tables: a value, its interval beside it, and a dash where there is nothing."""

from __future__ import annotations

import polars as pl

from beholder.chapter.chapter import (
    Cell,
    cell_of,
    crossed,
    notes_of,
    p_cell,
    percent_cell,
    points_cell,
    ratio_cell,
    rows_of,
    sizes,
    tabled,
)
from beholder.chapter.numbers import ABSENT
from beholder.core.results import Row, results_table

ROWS = [
    Row("s.share", 0.234, 100, "probability", subset="a", low=0.2, high=0.26, chance=0.1),
    Row("s.share", None, 0, "probability", subset="b", note="no image"),
    Row("s.ratio", 0.5, 80, "ratio", subset="a", low=0.4, high=0.6),
    Row("s.ratio", 2.0, 80, "ratio", subset="b"),
]
ONE = results_table(ROWS, study="s", model="m", dataset="d")
TWO = pl.concat([ONE, ONE.with_columns(model=pl.lit("n"))])


def test_a_probability_has_its_interval_and_chance_as_a_remark():
    row = rows_of(ONE, "share")[0]
    assert percent_cell(row) == Cell("23.4 %", "20.0–26.0")
    assert percent_cell(row, with_chance=True, strong=True) == Cell("23.4 %", "20.0–26.0", True, "chance 10")


def test_what_is_absent_is_a_dash_and_never_0():
    assert percent_cell(None) == Cell(ABSENT)
    assert percent_cell(rows_of(ONE, "share")[1]) == Cell(ABSENT)


def test_a_value_without_an_interval_stands_alone():
    with_interval, alone = map(ratio_cell, rows_of(ONE, "ratio"))
    assert (with_interval.text, with_interval.detail) == ("0.50", "0.40–0.60")
    assert alone.detail == ""
    assert percent_cell({**rows_of(ONE, "share")[0], "low": None, "high": None}).detail == ""


def test_remarks_of_rows_become_notes_once():
    assert notes_of(rows_of(TWO, "share")) == ("b: no image",)


def test_sizes_are_one_number_where_they_agree():
    assert sizes(rows_of(ONE, "ratio")) == "80"
    assert sizes(rows_of(ONE, "share")) == "100 / 0"
    assert sizes([]) == ABSENT


def test_a_table_is_declared_by_its_columns():
    columns = [("n", "n"), ("Share", percent_cell), ("p", p_cell)]
    for part, left in ((ONE, ["Branch"]), (TWO, ["Model", "Branch"])):
        made = rows_of(part, "share")
        table = tabled(part, made, [("Branch", "subset")], columns, title="T", caption="C", topic="shares", notes="aa")
        assert (table.header, table.labels, table.topic) == ([*left, "n", "Share", "p"], len(left), "shares")
        assert [cell.text for cell in table.rows[0][-4:]] == ["a", "100", "23.4 %", ABSENT]
        assert (table.rows[1][-1], table.notes) == (Cell(ABSENT), ("a",))


def test_points_are_bold_where_a_difference_was_found():
    row = {"value": 0.035, "low": 0.01, "high": 0.06, "verdict": "difference found"}
    assert points_cell(row) == Cell("+3.5", "1.0–6.0", strong=True)
    assert points_cell({**row, "verdict": None}, plain=True) == Cell("3.5", "1.0–6.0")
    assert points_cell(None) == Cell(ABSENT)


def test_rows_are_crossed_into_a_line_with_a_cell_for_each_name() -> None:
    rows = [{"trait": trait, "group": group, "n": n} for n, (trait, group) in enumerate(["ka", "kb", "la"])]
    lines = crossed(rows, ("trait",), "group", lambda row: str(row["n"]))
    assert [line["trait"] for line in lines] == ["k", "l"]
    assert [[cell_of(group)(line) for group in "ab"] for line in lines] == [["0", "1"], ["2", ABSENT]]
