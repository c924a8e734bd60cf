"""Tables of public figures: three levels, women and men, names and faces."""

from __future__ import annotations

from types import SimpleNamespace

from beholder._run import Run
from beholder.chapter.chapter import Cell, Table
from beholder.comparison.family import verdict_of
from beholder.core.results import Row
from beholder.report.exports import markdown
from beholder.studies.public_figures.chapter import public_figure_tables


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
    strong = {row[0].text: [cell.strong for cell in row[1:3]] for row in table.rows}
    assert (strong["actor"], strong["actress"], strong["teacher"]) == ([False, True], [True, False], [False, False])


def test_ratios_stand_beside_both_probabilities(apa_run: Run) -> None:
    table = tables(apa_run)["Women over men"]
    assert table.rows[1][0].text == "politicians"
    assert table.rows[1][1:] == [
        Cell("183 / 453"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("0.62", "0.55–0.70", strong=True),
        Cell("—"),
    ]
    assert table.notes == ()


def test_a_ratio_without_an_interval_says_why(make: SimpleNamespace) -> None:
    row = make.ratio("athletes", 0.9, None, None)._replace(note="fewer than 5 in a group: no interval")
    assert tables(make.run(row))["Women over men"].notes == ("athletes: fewer than 5 in a group: no interval",)


def gap(concept: str, value: float, p_value: float) -> Row:
    row = Row("apa.occupation_gap", value, 636, "probability", subset="politicians", concept=concept, p_value=p_value)
    row = row._replace(verdict=verdict_of(p_value, 30))
    return row._replace(group="woman", against="man", low=value - 0.02, high=value + 0.02, landmark=0.0)


def test_wrong_occupations_have_their_difference_and_the_exports_have_them(make: SimpleNamespace) -> None:
    shares = [
        make.share("apa.occupation_probability", value, n, subset="politicians", group=group, concept=word)
        for group, n, values in (("woman", 183, (0.5, 0.3)), ("man", 453, (0.8, 0.1)))
        for word, value in zip(("politician", "receptionist"), values, strict=True)
    ]
    run = make.run(*shares, gap("receptionist", 0.2, 0.004)._replace(p_at_most=True))
    table = tables(run)["Occupations offered for politicians"]
    assert table.header == ["Occupation", "Women", "Men", "Women − men", "p"]
    assert [cell.text for cell in table.rows[0]] == ["politician", "50.0 %", "80.0 %", "—", "—"]
    assert table.rows[1][3:] == [Cell("+20.0", "18.0–22.0", strong=True), Cell("≤ 0.004")]
    assert table.caption.startswith("As APA's Table 6. Mean share of belief")
    assert "183 women and 453 men" in table.caption
    exported = markdown(run.report)
    assert "Occupations offered for politicians" in exported
    assert "Table 6" in exported


def test_a_caption_explains_only_what_the_table_has(make: SimpleNamespace) -> None:
    share = make.share("apa.occupation_probability", 0.5, subset="politicians", group="woman", concept="politician")
    without = tables(make.run(share))["Occupations offered for politicians"]
    assert "Women − men: in points" not in without.caption
    assert "Women − men: in points" in (
        tables(make.run(share, gap("teacher", 0.2, 0.01)))["Occupations offered for politicians"].caption
    )


def test_branches_words_and_options_stand_beside_the_pool(make: SimpleNamespace) -> None:
    b = make.ratio("politicians", 0.46, 0.40, 0.53)
    house = b._replace(metric="apa.branch_ratio", subset="house", concept="politicians", value=0.5)
    without = [
        b._replace(metric="apa.ratio_without", concept=word, value=v) for word, v in (("actor", 0.3), ("chef", 0.7))
    ]
    table = tables(make.run(b, house, *without))["Women over men: branches, words and options"]
    assert [(row[1].text, row[3].text) for row in table.rows] == [
        ("as published", "0.46"),
        ("branch: house", "0.50"),
        ("without “actor”", "0.30"),
        ("without “chef”", "0.70"),
    ]


def test_equivalence_is_read_from_its_columns(make: SimpleNamespace) -> None:
    """A δ of a million, and a note that says something else."""
    row = Row("apa.equivalence", 0.25, 100, "ratio", subset="actors", p_value=0.012, note="difference; δ = 3")
    row = row._replace(equivalence="equivalent", delta=1e6)
    (table,) = tables(make.run(row)).values()
    assert table.title == "Is b shown to be within a factor of 1e+06 of 1?"
    assert [cell.text for cell in table.rows[0]] == ["actors", "100", "factor 1.25", "0.012", "equivalent"]
    assert tables(make.run(row._replace(equivalence=None, delta=None))) == {}


def test_b_within_branches_stands_beside_the_published_one(make: SimpleNamespace) -> None:
    published = make.ratio("politicians", 0.46, None, None)
    within = make.ratio("politicians", 0.5, 0.4, 0.6)._replace(variant="within branch", p_value=0.004)
    (row,) = tables(make.run(published, within))["Women over men"].rows
    assert row[-3:] == [Cell("0.46"), Cell("0.50", "0.40–0.60", strong=True), Cell("0.004")]
