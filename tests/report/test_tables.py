from __future__ import annotations

from types import SimpleNamespace

import polars as pl
from beholder.report.tables import tables
from beholder.studies.public_figures.planted import planted_table

from beholder.chapter.table import Cell
from beholder.core.results import Row, results_table
from beholder.run import Run
from beholder.studies.public_figures.published_rank import standing_table, standings


def test_three_levels_stand_by_branch_with_top_1_beside(apa_run: Run) -> None:
    table = tables(apa_run.results, "apa")[0]
    assert table.header == ["Branch", "n", "Category", "first", "Occupation", "first", "Specialty", "first"]
    assert [row[0].text for row in table.rows] == ["actors", "athletes", "house", "senate", "mayors"]
    assert table.rows[3][6] == Cell("25.0 %", "22.0–28.0 · chance 14", strong=True)


def test_several_models_get_a_column_with_their_names(two_models: Run) -> None:
    for table in tables(two_models.results, "apa"):
        assert table.header[0] == "Model"
        assert {row[0].text for row in table.rows} == {"clip", "siglip"}


def test_every_row_is_as_long_as_the_header(two_models: Run, custom_run: Run) -> None:
    for table in [*tables(two_models.results, "apa"), *tables(custom_run.results, "custom")]:
        assert {len(row) for row in table.rows} == {len(table.header)}


def test_an_absent_value_is_a_dash_with_its_reason(make: SimpleNamespace) -> None:
    row = make.share("apa.association", None, subset="senate", concept="specialty", note="no image to measure")
    table = tables(make.run(row).results, "apa")[0]
    assert table.rows[0][6] == Cell("—")
    assert table.notes == ("senate: no image to measure",)


def test_the_right_occupation_is_set_strong_for_each_gender(apa_run: Run) -> None:
    table = next(t for t in tables(apa_run.results, "apa") if t.title == "Occupations offered for actors")
    strong = {row[0].text: [cell.strong for cell in row[1:]] for row in table.rows}
    assert (strong["actor"], strong["actress"], strong["teacher"]) == ([False, True], [True, False], [False, False])


def test_ratios_stand_beside_both_probabilities(apa_run: Run) -> None:
    table = next(t for t in tables(apa_run.results, "apa") if t.title == "Women over men")
    assert table.rows[1][0].text == "politicians"
    assert table.rows[1][1:] == [
        Cell("183 / 453"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("10.0 %", "7.0–13.0"),
        Cell("0.62", "0.55–0.70", strong=True),
    ]


def test_own_prompts_stand_by_group(custom_run: Run) -> None:
    (table,) = tables(custom_run.results, "custom")
    assert table.header == ["Prompt", "everyone (n = 80)", "woman (n = 40)", "man (n = 40)"]


def test_an_unknown_benchmark_still_gets_a_table() -> None:
    results = results_table([Row("new.metric", 0.5, 3, "points")], benchmark="new", model="m", dataset="d")
    (table,) = tables(results, "new")
    assert table.rows[0][-1].text == "0.5"


def test_a_model_stands_among_39_published_ones(apa_run: Run) -> None:
    table = standing_table(apa_run.results)
    assert table is not None
    assert table.title == "Where this model stands among 39 published models"
    assert any("do not add up to 100" in note for note in table.notes)
    assert any("exchanged" in note for note in table.notes)


def test_nothing_published_stands_beside_drawn_people(glasshouse_run: Run, make: SimpleNamespace) -> None:
    assert standing_table(glasshouse_run.results) is None
    assert standings(make.apa(dataset="my_photos")) == []


def test_identity_among_fewer_names_is_not_compared(make: SimpleNamespace) -> None:
    few = make.share("apa.identity_given_image", 0.9, 10, subset="senate", chance=1 / 10)
    assert standings(make.run(few).results) == []


def test_only_the_reference_model_was_taught_anything(glasshouse_run: Run) -> None:
    assert planted_table(glasshouse_run.results) is not None
    assert planted_table(glasshouse_run.results.filter(pl.col("model") == "null")) is None


def test_a_users_own_metric_gets_a_table_after_the_benchmarks_own(apa_run: Run, make: SimpleNamespace) -> None:
    ours = tables(apa_run.results, "apa")
    row = make.share("apa.indecision", 0.25, subset="senate", concept="occupation")
    apa_run.add(results_table([row], benchmark="apa", model="clip", dataset="apa"))
    assert tables(apa_run.results, "apa")[:-1] == ours
    own = tables(apa_run.results, "apa")[-1]
    assert own.title == "apa.indecision"
    assert own.rows[0][0].text == "senate"


def test_a_users_own_metric_stands_apart_from_prompts(custom_run: Run, make: SimpleNamespace) -> None:
    row = make.share("custom.indecision", 0.25, subset="gender", group="woman")
    custom_run.add(results_table([row], benchmark="custom", model="clip", dataset="photos"))
    made = tables(custom_run.results, "custom")
    assert [table.title for table in made] == ["Prompts of level mood by gender", "custom.indecision"]
