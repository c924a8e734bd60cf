"""CSV that a spreadsheet opens without running anything, and that is read back as it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beholder.core.read import as_csv, read_own_csv, write_table
from beholder.core.results import SCHEMA, Row, results_table

CELLS = st.lists(st.text(st.sampled_from("=+-@\t\r\n'\"a,|;＝ "), min_size=1, max_size=6), min_size=1, max_size=5)


@pytest.mark.slow
@given(texts=CELLS)
@settings(max_examples=150, deadline=None)
def test_no_text_begins_as_a_formula_and_all_come_back(texts: list[str], tmp_path_factory):
    table = pl.DataFrame({"text": texts, "number": [-1.5] * len(texts)})
    path = tmp_path_factory.getbasetemp() / "own.csv"
    path.write_bytes(as_csv(table))
    rows = list(csv.reader(io.StringIO(as_csv(table).decode(), newline="")))[1:]
    assert not [text for text, _ in rows if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))]
    assert {number for _, number in rows} == {"-1.5"}
    read = read_own_csv(path, {"text": pl.String, "number": pl.String})
    assert read["text"].to_list() == texts


def test_results_keep_their_numbers_and_lose_their_formulas(tmp_path: Path):
    row = Row("custom.gap", -0.25, 10, "probability", low=-0.5, high=-0.1, group="=HYPERLINK(1)", note="-1 is low")
    table = results_table([row], study="custom", model="@sum", dataset="a")
    write_table(table, tmp_path, "results")
    (cells,) = csv.DictReader(io.StringIO((tmp_path / "results.csv").read_text()))
    assert (cells["value"], cells["low"]) == ("-0.25", "-0.5")
    assert (cells["group"], cells["model"], cells["note"]) == ("'=HYPERLINK(1)", "'@sum", "'-1 is low")
    assert pl.read_parquet(tmp_path / "results.parquet")["group"].to_list() == ["=HYPERLINK(1)"]
    texts = [name for name, kind in SCHEMA.items() if kind == pl.String]
    read = read_own_csv(tmp_path / "results.csv", dict.fromkeys(texts, pl.String))
    assert read.rows() == table.select(texts).rows()
