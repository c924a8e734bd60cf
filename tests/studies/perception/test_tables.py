"""Perception's tables: what is absent has its reason, and published values stand next to the study's own sets only."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import OPTIONS, matrix, measured, noise, photographs, words_of

from beholder.studies.perception.chapter import conventional, perception_published, perception_tables
from beholder.studies.study import MeasureOptions


def test_published_values_stand_next_to_the_studys_own_sets_only(results: pl.DataFrame, matched: pl.DataFrame):
    table = perception_published(results)
    values = {(row[0].text, row[1].text): row[3].text for row in table.rows}
    assert values["Markedness, per cent", "White"] == "54.12"
    assert values["SC-WEAT", "Asian against Black"] == "0.64"
    assert values["Skew", "Black"] == "−1.44"
    assert float(values["Mean cosine", "White"]) > 20  # × 100
    assert any("finds no rows and writes 0" in note for note in table.notes)
    assert perception_published(matched) is None


def test_correlations_of_opposites_stand_next_to_those_of_causalface(matched: pl.DataFrame):
    table = perception_published(matched.with_columns(dataset=pl.lit("causalface")))
    values = {(row[0].text, row[1].text): row[3].text for row in table.rows}
    assert values["r of curves", "Agency + and its opposite, over smiling"] == "−0.99"
    assert values["r of curves", "mean of all scales, over smiling"] == "−0.21"


def test_a_variant_has_no_published_values():
    images = photographs(60)
    results = measured(matrix(images, np.log(noise(images)), channel="log_p_yes"), dataset="fairface-adults")
    assert perception_published(results) is None


def ranking_table(results: pl.DataFrame):
    (table,) = [table for table in perception_tables(results) if table.title == "Conventional bias metrics"]
    return table


@pytest.fixture(scope="module")
def never_black() -> pl.DataFrame:
    """No Black person is among the warmest."""
    images = photographs(600)
    cells = noise(images)
    cells[np.ix_((images["race"] == "Black").to_numpy(), words_of("warmth"))] -= 1
    return measured(matrix(images, cells))


def test_a_mean_over_fewer_dimensions_says_so(never_black: pl.DataFrame):
    notes = ranking_table(never_black).notes
    assert any(note.startswith("Skew, Black: ") and "left out of the mean" in note for note in notes)
    assert not any(note.startswith("Skew, White: ") for note in notes)


def test_notes_are_chosen_by_the_rows_values_and_not_by_their_text(never_black: pl.DataFrame):
    blank = never_black.with_columns(note=pl.lit("as released: −∞"))
    assert len(ranking_table(blank).notes) == len(ranking_table(never_black).notes)


def test_a_number_as_released_has_its_note():
    results = measured(matrix(photographs(120)), options=MeasureOptions(compat=True, draws=100, permutations=5))
    notes = ranking_table(results).notes
    assert any(note.startswith("Markedness, per cent, Male: as released") for note in notes)
    variants = {
        row["group"]: row["variant"] for row in conventional(results) if row["metric"] == "perception.markedness"
    }
    assert variants["Male"] == "as released"
    assert variants["White"] is None


def test_ndkl_is_compared_with_rankings_without_preference(results: pl.DataFrame):
    row = next(row for row in conventional(results) if row["metric"] == "perception.ndkl")
    assert 0 < row["expected"] < 1
    assert any(f"{row['expected']:.4f} is expected" in note for note in ranking_table(results).notes)


def test_one_group_only_says_so():
    images = photographs(40).with_columns(race=pl.lit("White"), gender=pl.lit("Male"))
    (table,) = [t for t in perception_tables(measured(matrix(images), options=OPTIONS)) if t.topic == "ranking"]
    assert any("one group only" in note for note in table.notes)


def test_recognised_groups_stand_with_the_conventional_metrics(results: pl.DataFrame):
    own = results.filter(metric="perception.recognised").drop_nulls("value")
    rows = [row for row in ranking_table(results).rows if row[0].text == "Recognised, per cent"]
    assert own.height
    assert len(rows) == own.height
