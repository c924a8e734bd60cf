"""Disparity's tables carry numbers that are rows."""

from __future__ import annotations

import polars as pl

from beholder.chapter.finding import one_row
from beholder.studies.disparity.chapter import disparity_tables


def test_tables_carry_numbers_that_are_rows(full: pl.DataFrame):
    tables = {table.title: table for table in disparity_tables(full)}
    gaps = tables["Widest gaps"]
    assert gaps.header[:3] == ["Concept", "man", "woman"]
    assert gaps.rows[0][0].text == "tie"
    assert gaps.rows[-1][0].text == "handbag"
    raw = one_row(full, "ap_gap", concept="tie")["value"]
    assert gaps.rows[0][3].text == f"+{100 * raw:.1f}"
    names = tables["Possible causes of the widest gaps"]
    assert any("other tie" in row[-1].detail for row in names.rows)


def test_the_table_of_causes_shows_every_cause_that_was_measured(full: pl.DataFrame):
    (table,) = [table for table in disparity_tables(full) if table.title == "Possible causes of the widest gaps"]
    measured = set(full["metric"])
    heads = {"ap_gap_same_area": "Same sizes", "ap_gap_same_companions": "Same companions"}
    assert {head for name, head in heads.items() if f"disparity.{name}" in measured} <= set(table.header)
    assert "Same brightness" not in table.header
    dark = full.filter(metric="disparity.ap_gap_same_area").with_columns(
        metric=pl.lit("disparity.ap_gap_same_brightness")
    )
    (table,) = [each for each in disparity_tables(pl.concat([full, dark])) if each.title == table.title]
    place = table.header.index("Same brightness")
    assert [row[place] for row in table.rows] == [row[table.header.index("Same sizes")] for row in table.rows]


def test_image_ids_are_listed_as_their_rows_have_them(full: pl.DataFrame):
    (table,) = [table for table in disparity_tables(full) if table.title == "Images behind the widest gaps, by id"]
    row = one_row(full, "outranked", subset="overlooked", concept="tie", group="woman")
    cells = next(cells for cells in table.rows if [cell.text for cell in cells[:2]] == ["tie", "woman"])
    assert cells[4].text == row["note"]
    assert all(part.isdigit() for part in row["note"].split(", "))


def test_each_group_against_the_rest_has_its_lines(three_groups: pl.DataFrame):
    means, gaps, *_ = disparity_tables(three_groups)
    assert "“b” less the rest" in [cells[0].text for cells in means.rows]
    assert gaps.header[:4] == ["Pair", "Concept", "first", "second"]
    assert {cells[0].text for cells in gaps.rows} == {f"“{group}” less the rest" for group in "abc"}


def test_an_empty_table_says_why(full: pl.DataFrame):
    untested = full.with_columns(verdict=pl.lit("too little data"))
    gaps = next(table for table in disparity_tables(untested) if table.title == "Widest gaps")
    assert not gaps.rows
    assert gaps.notes == ("No concept is shown by five people of both groups: nothing could be tested.",)
