"""GRAS's tables on a full run of 600 images and 500 questions, with one trait planted by gender."""

from __future__ import annotations

import polars as pl

from beholder._run import Run
from beholder.chapter.chapter import Table
from beholder.studies.gras import phrases
from beholder.studies.gras.chapter import gras_published, gras_tables
from beholder.studies.gras.phrases import score


def table(run: Run, title: str) -> Table:
    (table,) = [each for each in gras_tables(run.results) if each.title == title]
    return table


def test_the_score_table_ends_with_all_its_names(gras_full: Run) -> None:
    rows = table(gras_full, "Bias scores").rows
    assert [row[0].text for row in rows[:4]] == ["gender", "race", "age", "skin tone"]
    last = {row[0].text: row[2].text for row in rows[4:]}
    assert float(last["GRAS Bias Score"]) + float(last["100 minus the score"]) == 100
    assert "shuffled labels" in last


def test_only_the_largest_gaps_are_listed(gras_full: Run) -> None:
    rows = table(gras_full, "The five largest gaps of each attribute").rows
    assert len(rows) == 20
    assert [cell.text for cell in rows[0][:6]] == ["gender", "kind", "positive", "Female", "Male", "19.0"]


def test_valence_shares_stand_group_by_group(gras_full: Run) -> None:
    rows = table(gras_full, "Traits above the mean").rows
    assert len(rows) == 2 + 7 + 5 + 10
    share = gras_full.results.filter(metric="gras.valence_share", group="10", concept="negative")["value"][0]
    assert [cell.text for cell in rows[-1][:2]] == ["skin tone", "MST 10"]
    assert rows[-1][3].text == score(share)


def test_published_scores_stand_beside_the_studys_own_images_only(gras_full: Run) -> None:
    published = gras_published(gras_full.results)
    assert published is not None
    assert [row[0].text for row in published.rows] == [
        "vlm",
        "llava-1.5-7b-hf",
        "paligemma2-3b-mix-224",
        "Qwen2.5-VL-3B-Instruct",
        "blip2-opt-2.7b",
        "Phi-4-multimodal-instruct",
    ]
    assert [cell.text for cell in published.rows[2]] == ["paligemma2-3b-mix-224", "98.25", "1.75", "published"]
    assert not any("not comparable" in note for note in published.notes)
    assert gras_published(gras_full.results.with_columns(dataset=pl.lit("faces"))) is None


def test_a_part_of_the_study_is_not_comparable(gras_run: Run, without) -> None:
    published = gras_published(without(gras_run, "race").results)
    assert published is not None
    assert published.notes[0] == "vlm: 100 traits, without race, not the whole study; its score is not comparable."


def test_own_traits_are_not_comparable_even_if_they_are_a_hundred(gras_run: Run) -> None:
    own = gras_run.results.with_columns(concept=pl.col("concept").replace("kind", "punctual"))
    published = gras_published(own)
    assert published is not None
    assert published.notes[0].endswith("its score is not comparable.")
    named = phrases.gaps(own).filter(concept="punctual")["valence"].unique().to_list()
    assert named == ["positive"], "an own trait's valence is in its rows"


def test_a_variant_is_compared_with_no_published_score(gras_run: Run) -> None:
    assert gras_published(gras_run.results.with_columns(variant=pl.lit("statement against denial"))) is None


def test_attributes_without_images_are_noted(gras_run: Run, without) -> None:
    notes = table(without(gras_run, "skin_tone"), "Bias scores").notes
    assert any("No images to compare: skin tone." in note for note in notes)


def test_a_count_of_biased_traits_is_printed_with_its_expectation(gras_full: Run) -> None:
    expected = gras_full.results.filter(metric="gras.biased_traits", subset="gender")["expected"][0]
    assert table(gras_full, "Bias scores").rows[0][2].detail == f"{expected:.0f} with shuffled labels"
