"""Tables of public figures: three levels, women and men, names and faces."""

from __future__ import annotations

from types import SimpleNamespace

from beholder.chapter.table import Cell, Table
from beholder.core.results import Row
from beholder.run import Run
from beholder.studies.public_figures.tables import public_figure_tables


def tables(run: Run) -> dict[str, Table]:
    return {table.title: table for table in public_figure_tables(run.results)}


def test_three_levels_stand_by_branch_with_top_1_beside(apa_run: Run) -> None:
    table = tables(apa_run)["Right answer, level by level"]
    assert table.header == ["Branch", "n", "Category", "first", "Occupation", "first", "Specialty", "first"]
    assert [row[0].text for row in table.rows] == ["actors", "athletes", "house", "senate", "mayors"]
    specialty = table.rows[3][6]
    assert (specialty.text, specialty.strong) == ("25.0 %", True)
    assert "22.0–28.0" in specialty.detail


def test_several_models_get_a_column_with_their_names(two_models: Run) -> None:
    for table in tables(two_models).values():
        assert table.header[0] == "Model"
        assert {row[0].text for row in table.rows} == {"clip", "siglip"}


def test_every_row_is_as_long_as_the_header(two_models: Run) -> None:
    for table in tables(two_models).values():
        assert {len(row) for row in table.rows} == {len(table.header)}


def test_an_absent_value_is_a_dash_with_its_reason(make: SimpleNamespace) -> None:
    row = make.share("apa.association", None, subset="senate", concept="specialty", note="no image to measure")
    (table,) = tables(make.run(row)).values()
    assert table.rows[0][6] == Cell("—")
    assert table.notes == ("senate: no image to measure",)


def test_the_right_occupation_is_set_strong_for_each_gender(apa_run: Run) -> None:
    table = tables(apa_run)["Occupations offered for actors"]
    strong = {row[0].text: [cell.strong for cell in row[1:]] for row in table.rows}
    assert (strong["actor"], strong["actress"], strong["teacher"]) == ([False, True], [True, False], [False, False])


def test_ratios_stand_beside_both_probabilities(apa_run: Run) -> None:
    table = tables(apa_run)["Women over men"]
    assert table.rows[1][0].text == "politicians"
    assert table.rows[1][1:] == [
        Cell("183 / 453"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("0.62", "0.55–0.70", strong=True),
    ]
    assert table.notes == ()


def test_a_ratio_without_an_interval_says_why(make: SimpleNamespace) -> None:
    row = make.ratio("athletes", 0.9, None, None)._replace(note="fewer than 5 in a group: no interval")
    assert tables(make.run(row))["Women over men"].notes == ("athletes: fewer than 5 in a group: no interval",)


def test_equivalence_is_read_from_its_columns(make: SimpleNamespace) -> None:
    """A δ of a million, and a note that says something else."""
    row = Row("apa.equivalence", 0.25, 100, "ratio", subset="actors", p_value=0.012, note="difference; δ = 3")
    row = row._replace(verdict="equivalent", delta=1e6)
    (table,) = tables(make.run(row)).values()
    assert table.title == "Is b shown to be within a factor of 1e+06 of 1?"
    assert [cell.text for cell in table.rows[0]] == ["actors", "100", "factor 1.25", "0.012", "equivalent"]
    assert tables(make.run(row._replace(verdict=None, delta=None))) == {}
