"""Agreement of gaps between data sets and between models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.core.errors import DataError
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.agreement import agreement, colour
from beholder.studies.disparity.prompts import SAME_CONCEPTS, SYNSET, read_words
from beholder.studies.disparity.study import DISPARITY, Choices, configured

One = Callable[..., dict[str, Any]]
Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


@pytest.mark.slow
def test_data_sets_agree_in_three_colours_and_synonyms_meet(object_world: World, measure: Measure, one: One):
    here = measure(object_world(800, worse={("woman", "tie"): 1.4, ("man", "dog"): 1.4}))
    names = ("necktie.n.01", "handbag", "dog.n.01", "chair.n.01")
    worse = {("woman", "necktie.n.01"): 1.4, ("woman", "dog.n.01"): 1.4}
    there = measure(object_world(800, names, worse, name="visual-genome", seed=5))
    rows = agreement(here, there)
    colours = {name: one(rows, "agreement", concept=name)["value"] for name in ("tie", "dog")}
    assert colours == {"tie": 1.0, "dog": -1.0}
    counts = {name: one(rows, "agreement_count", group=name)["value"] for name in ("green", "yellow", "red")}
    assert counts == {"green": 1.0, "yellow": 2.0, "red": 1.0}
    elsewhere = one(rows, "ap_gap_elsewhere", concept="tie")
    assert (elsewhere["group"], elsewhere["against"]) == ("man", "woman")
    assert elsewhere["value"] == one(there, "ap_gap", group="man", concept="necktie.n.01")["value"]
    assert rows["dataset"].unique().to_list() == ["coco"]


def test_a_concept_is_one_row_and_senses_are_kept_apart(object_world: World, measure: Measure, one: One):
    """Both are called tie by their lemma or their synonym, and one of them is not worn."""
    here = measure(object_world(300, worse={("woman", "tie"): 1.4}))
    names = ("necktie.n.01", "tie.n.02", "dog.n.01", "chair.n.01")
    there = measure(object_world(300, names, name="visual-genome", seed=5))
    rows = agreement(here, there)
    assert one(rows, "agreement_count", group="green")["n"] == 3
    assert one(rows, "ap_gap_elsewhere", concept="tie")["note"] == "necktie.n.01"
    back = agreement(there, here)
    assert sorted(back.filter(pl.col("metric") == "disparity.agreement")["concept"]) == [
        "chair.n.01",
        "dog.n.01",
        "necktie.n.01",
    ]


def test_which_concepts_are_the_same_is_a_table_that_can_be_replaced(
    object_world: World, measure: Measure, one: One, tmp_path: Path
):
    here, there = (measure(object_world(300, name=name)) for name in ("coco", "visual-genome"))
    there = there.with_columns(pl.col("concept").replace({"tie": "tie.n.02", "dog": "necktie.n.01"}))
    path = tmp_path / "same.csv"
    path.write_text("concept,same_as\ntie.n.02,tie\n")
    study = configured(DISPARITY, {"same_concepts": path})
    rows = agreement(here, there, same=read_words(path, "same_as"))
    assert one(rows, "ap_gap_elsewhere", concept="tie")["note"] == "tie.n.02"
    assert study.measures.across is not None
    path.write_text("concept,same_as\ntie.n.02,tie\nnecktie.n.01,tie\n")
    with pytest.raises(DataError, match="the concept 'tie' occurs more than once"):
        configured(DISPARITY, {"same_concepts": path})


def test_the_table_has_a_synset_for_each_of_cocos_categories():
    assert len(SAME_CONCEPTS) == len(set(SAME_CONCEPTS.values())) == 80
    assert all(SYNSET.fullmatch(concept) for concept in SAME_CONCEPTS)


def test_of_two_wide_gaps_half_point_in_the_same_direction_by_chance(full: pl.DataFrame, one: One):
    green, red = (one(full, "agreement_count", group=name) for name in ("green", "red"))
    assert green["expected"] == red["expected"] == (green["value"] + red["value"]) / 2
    assert one(full, "agreement_count", group="yellow")["expected"] is None


def test_as_published_every_concept_with_a_gap_counts(object_world: World, measure: Measure, vectors: Path, one: One):
    """One of four concepts is shown too rarely to test: by default it is left out, as published it counts."""
    rare = {(group, concept): 0.04 for group in ("man", "woman") for concept in ("dog", "chair")}
    matrix, numbers = object_world(200, rare=rare, seed=3), {}
    for compat in (False, True):
        here = measure(matrix, Choices(word_vectors=vectors), compat=compat)
        there = here.with_columns(pl.lit("visual-genome").alias("dataset"))
        gaps = here.filter((pl.col("metric") == "disparity.ap_gap") & pl.col("value").is_not_null())
        tested = here.filter(pl.col("metric") == "disparity.ap_gap_matched").drop_nulls("p_value")
        counted = (gaps if compat else tested).height
        rows = agreement(here, there, compat)
        assert one(here, "word_agreement", subset="ap_gap")["n"] == counted
        assert one(rows, "agreement_count", group="green")["n"] == counted
        numbers[compat] = counted
    assert numbers == {False: 3, True: 4}


def test_models_are_compared_on_one_data_set(results: pl.DataFrame, one: One):
    first, second = (results.with_columns(model=pl.lit(name)) for name in ("first", "second"))
    rows = agreement(pl.concat([first, second]), first.clear())
    assert one(rows, "model_agreement", model="first", subset="second")["value"] == 1.0
    elsewhere = second.with_columns(dataset=pl.lit("visual-genome"))
    assert agreement(first, elsewhere).height == 0  # neither the model nor the data set is the same


def test_gaps_between_other_groups_are_not_compared(results: pl.DataFrame):
    other = results.with_columns(dataset=pl.lit("other"), against=pl.lit("child"))
    assert agreement(results, other).height == 0


def test_wide_gaps_are_green_or_red_by_their_signs():
    assert [colour(0.08, other) for other in (0.06, -0.06, 0.01)] == [1.0, -1.0, 0.0]
