"""GRAS's chapter on a full run of 600 images and 500 questions, with one trait planted by gender."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console

from beholder.chapter.figure import Figure
from beholder.chapter.finding import Finding
from beholder.chapter.table import Table
from beholder.core.results import Row, results_table
from beholder.report.charts import figures, save_charts
from beholder.report.findings import findings
from beholder.report.page import render
from beholder.report.tables import tables
from beholder.report.terminal import print_summary
from beholder.run import Run
from beholder.studies.gras import phrases as said
from beholder.studies.gras import queries as reading
from beholder.studies.gras.planted import gras_planted
from beholder.studies.gras.tables import gras_standing

ATTRIBUTES = ("gender", "race", "age", "skin-tone")


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [found for found in findings(run) if found.kind == kind]


def table(run: Run, title: str) -> Table:
    (found,) = [each for each in tables(run.results, "gras") if each.title == title]
    return found


def value(run: Run, metric: str) -> float:
    return float(run.results.filter(metric=f"gras.{metric}")["value"][0])


def without(run: Run, attribute: str) -> Run:
    """The run as it is where the attribute had no images."""
    return Run(run.results.filter((pl.col("subset") != attribute) | pl.col("subset").is_null()), run.record)


# The page


@pytest.mark.slow
def test_a_full_page_is_small_and_does_not_list_every_row(gras_full: Run) -> None:
    assert gras_full.results.height > 19_000
    page = render(gras_full)
    assert len(page.encode()) < 4_000_000
    assert page.count("<tr") < 150
    assert "“Belief”" not in page  # no prompts compete here


def test_hostile_groups_are_shown_as_text(gras_hostile: Run) -> None:
    page = render(gras_hostile)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


# Findings


def test_the_score_stands_beside_what_it_says_without_bias(gras_full: Run) -> None:
    (found,) = of_kind(gras_full, "score")
    expected = said.score(value(gras_full, "bias_score_expected"))
    assert f"; {expected} would without any bias" in found.headline
    assert f"GRAS Bias Score {said.score(value(gras_full, 'bias_score'))}" in found.sentence
    assert f"the score is {said.score(value(gras_full, 'bias_score_corrected'))};" in found.sentence
    assert f"P(Yes), {said.score(value(gras_full, 'bias_score_sized'))}." in found.sentence


def test_a_score_no_higher_than_under_shuffled_labels_is_not_shown(gras_run: Run) -> None:
    low = pl.when(pl.col("metric") == "gras.bias_score").then(20.0).otherwise("value")
    (found,) = of_kind(Run(gras_run.results.with_columns(value=low), gras_run.record), "score")
    assert not found.shown
    assert "no more than" in found.headline


def test_the_planted_gap_is_named_with_its_pair_and_interval(gras_full: Run) -> None:
    found = of_kind(gras_full, "gap")[0]
    assert found.headline == "By gender: up to 19.0 points, at “kind”"
    assert "images labelled Female get 19.0 points more P(Yes) than those labelled Male" in found.sentence
    assert "95 % interval 18.3–19.6; 420 images" in found.sentence


def test_attributes_without_a_shown_gap_share_a_sentence_that_does_not_say_none(gras_full: Run) -> None:
    found = of_kind(gras_full, "gap")[-1]
    assert not found.shown
    assert found.headline == "No difference shown by race, age and skin tone"
    assert found.sentence.endswith("which is not the same as none.")


def test_gaps_below_a_point_are_not_called_large(gras_run: Run) -> None:
    smaller = [pl.col(name) / 100 for name in ("value", "low", "high")]
    (found, _) = of_kind(Run(gras_run.results.with_columns(smaller), gras_run.record), "gap")
    assert found.headline == "By gender: differences are shown, none of them of a point"


def test_wordings_that_agree_are_said_to(gras_full: Run) -> None:
    (found,) = of_kind(gras_full, "wording")
    assert found.headline == "The groups differ alike in every wording"
    assert "95 % of its probability falls on yes or no" in found.sentence


@pytest.mark.parametrize(("share", "headline"), [(0.3, "in part"), (0.7, "mostly")])
def test_wordings_that_disagree_are_said_to(gras_run: Run, share: float, headline: str) -> None:
    moved = pl.when(pl.col("metric") == "gras.wording_share").then(share).otherwise("value")
    (found,) = of_kind(Run(gras_run.results.with_columns(value=moved), gras_run.record), "wording")
    assert f"depends {headline} on the wording" in found.headline


def test_a_model_that_does_not_answer_is_said_not_to_first(make: SimpleNamespace) -> None:
    run = make.gras(make.gras_matrix(make.gras_images(140, 0), mass=0.2))
    found = findings(run)[0]
    assert found.headline == "It mostly answers with something other than yes or no"
    assert "20 % of its probability" in found.sentence


def test_absent_attributes_are_said(gras_run: Run) -> None:
    run = without(gras_run, "skin_tone")
    (found,) = of_kind(run, "absent")
    assert found.headline == "Nothing is said about skin tone"
    assert any("No images to compare: skin tone." in note for note in table(run, "Bias scores").notes)
    assert of_kind(gras_run, "absent") == []


def test_intersections_are_named_at_both_ends_with_how_many_lie_off(make: SimpleNamespace) -> None:
    (found,) = of_kind(crossed(make, 0.05), "intersection")
    assert found.shown
    assert found.headline == "Most favoured where labels cross: Female × White; least: Male × Black"
    assert "Female × White +5.0 points (95 % interval 4.0–6.0; n = 51)" in found.sentence
    assert "2 of 3 intervals exclude 0" in found.sentence


def test_intersections_whose_intervals_hold_0_are_not_called_favoured(make: SimpleNamespace) -> None:
    (found,) = of_kind(crossed(make, 0.005), "intersection")
    assert not found.shown
    assert found.headline == "No intersection of labels is shown to be favoured"
    assert "not the same as none" in found.sentence


def crossed(make: SimpleNamespace, size: float) -> Run:
    """Three intersections: one above the mean, one at it, one below."""
    values = {"Female × White": size, "Male × White": 0.0, "Male × Black": -size}
    rows = [
        Row("gras.intersection", v, 51, "probability", group=group, low=v - 0.01, high=v + 0.01)
        for group, v in values.items()
    ]
    return Run(results_table(rows, benchmark="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras"))


@pytest.mark.parametrize(("p_value", "shown"), [(0.001, True), (0.4, False)])
def test_refusals_are_said_and_differ_only_where_the_test_says_so(
    make: SimpleNamespace, p_value: float, shown: bool
) -> None:
    rows = [
        Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, p_value=p_value)
        for group, share in {"Black": 0.4, "White": 0.1}.items()
    ]
    results = results_table(rows, benchmark="gras", model="vlm", dataset="gras")
    (found,) = findings(Run(results, make.record("vlm", dataset="gras")))
    assert found.shown is shown
    assert "race: 40 % for Black, 10 % for White" in found.sentence


def test_a_model_that_was_not_asked_stands_beside_no_published_score(gras_run: Run) -> None:
    note = pl.when(pl.col("metric") == "gras.bias_score").then(pl.lit("a variant, not the published measure"))
    run = Run(gras_run.results.with_columns(note=note.otherwise("note")), gras_run.record)
    assert findings(run)[0].headline == "A variant, not the published measure"
    assert gras_standing(run.results) is None


def test_planted_traits_stand_beside_recovered(make: SimpleNamespace) -> None:
    gaps = {("gender", "brave", "woman over man"): 0.19, ("gender", "honest", "man over woman"): 0.002}
    rows = [
        Row(
            "gras.largest_gap",
            gap,
            120,
            "probability",
            subset=attribute,
            group=pair,
            concept=trait,
            low=gap - 0.01,
            high=gap + 0.01,
            p_value=0.001 if gap > 0.01 else 0.5,
        )
        for (attribute, trait, pair), gap in gaps.items()
    ]
    results = results_table(rows, benchmark="gras", model="glasshouse/generative", dataset="glasshouse")
    found = gras_planted(results)
    assert found is not None
    assert [cell.text for cell in found.rows[0]] == ["gender", "brave", "120", "20.0", "19.0", "woman over man", "yes"]
    assert found.notes == ("Where nothing was planted, 0 of 1 gaps are called after correction.",)
    assert findings(Run(results, make.record("x")))[0].sentence.startswith("1 of 1 planted associations")
    assert gras_planted(results.with_columns(model=pl.lit("other"))) is None


# Tables


def test_scores_by_attribute_average_to_the_score(gras_full: Run) -> None:
    by_attribute = reading.attribute_scores(gras_full.results)
    assert by_attribute["subset"].to_list() == ["gender", "race", "age", "skin_tone"]
    for name in ("corrected", "sized"):
        assert by_attribute[name].mean() == pytest.approx(value(gras_full, f"bias_score_{name}"))


def test_the_score_table_ends_with_all_its_names(gras_full: Run) -> None:
    rows = table(gras_full, "Bias scores").rows
    assert [row[0].text for row in rows[:4]] == ["gender", "race", "age", "skin tone"]
    last = {row[0].text: row[2].text for row in rows[4:]}
    assert float(last["GRAS Bias Score"]) + float(last["100 less it"]) == 100
    assert "shuffled labels" in last


def test_only_the_largest_gaps_are_listed(gras_full: Run) -> None:
    short, long = table(gras_full, "Largest gaps"), table(gras_full, "The ten largest gaps of each attribute")
    assert (len(short.rows), short.long) == (12, False)
    assert (len(long.rows), long.long) == (40, True)
    assert [cell.text for cell in short.rows[0][:6]] == ["gender", "kind", "positive", "Female", "Male", "19.0"]


def test_valence_shares_stand_group_by_group(gras_full: Run) -> None:
    rows = table(gras_full, "Traits above the mean").rows
    assert len(rows) == 2 + 7 + 5 + 10
    share = gras_full.results.filter(metric="gras.valence_share", group="10", concept="negative")["value"][0]
    assert [cell.text for cell in rows[-1][:2]] == ["skin tone", "MST 10"]
    assert rows[-1][3].text == said.score(share)


def test_published_scores_stand_beside_the_studys_own_images_only(gras_full: Run, make: SimpleNamespace) -> None:
    standing = gras_standing(gras_full.results)
    assert standing is not None
    assert [row[0].text for row in standing.rows] == [
        "vlm",
        "llava-1.5-7b-hf",
        "paligemma2-3b-mix-224",
        "Qwen2.5-VL-3B-Instruct",
        "blip2-opt-2.7b",
        "Phi-4-multimodal-instruct",
    ]
    assert [cell.text for cell in standing.rows[2]] == ["paligemma2-3b-mix-224", "98.25", "1.75", "published"]
    assert not any("does not compare" in note for note in standing.notes)
    assert gras_standing(gras_full.results.with_columns(dataset=pl.lit("faces"))) is None


def test_a_part_of_the_study_does_not_compare(gras_run: Run) -> None:
    standing = gras_standing(without(gras_run, "race").results)
    assert standing is not None
    assert standing.notes[0] == "vlm: 100 traits, without race, not the study's whole; its score does not compare."


def test_own_traits_do_not_compare_even_if_they_are_a_hundred(gras_run: Run) -> None:
    own = gras_run.results.with_columns(concept=pl.col("concept").replace("kind", "punctual"))
    standing = gras_standing(own)
    assert standing is not None
    assert standing.notes[0].endswith("its score does not compare.")
    named = reading.gaps(own).filter(concept="punctual")["valence"].unique().to_list()
    assert named == ["positive"], "an own trait's valence is in its rows"


# Figures


@pytest.fixture(scope="module")
def drawn(gras_full: Run) -> list[Figure]:
    return figures(gras_full.results)


def test_every_attribute_has_its_figures(drawn: list[Figure]) -> None:
    kinds = ("gaps", "valence", "deviations", "wordings")
    expected = [f"{kind}-{attribute}" for attribute in ATTRIBUTES for kind in kinds] + [
        "skin-tone-curve",
        "intersections",
    ]
    assert [figure.name for figure in drawn] == expected


def test_deviations_weigh_to_zero_and_show_what_was_planted(gras_full: Run) -> None:
    cells = reading.deviations(gras_full.results).filter(subset="gender", concept="kind")
    assert dict(cells.select("group", "points").iter_rows()) == pytest.approx({"Female": 9.5, "Male": -9.5}, abs=0.4)


def test_traits_stand_by_valence_then_by_gap(gras_full: Run) -> None:
    order = reading.traits_in_order(gras_full.results.filter(pl.col("subset") == "gender"))
    assert list(order) == ["positive", "negative"]
    assert order["positive"][0] == "kind"
    assert [len(traits) for traits in order.values()] == [50, 50]


def test_a_wording_that_turns_a_pair_round_has_a_negative_gap() -> None:
    means = {("a", "T1"): 0.5, ("b", "T1"): 0.1, ("a", "T2"): 0.2, ("b", "T2"): 0.3}
    rows = [
        {"metric": "gras.group_mean", "concept": "kind", "group": group, "template": template, "value": mean}
        for (group, template), mean in means.items()
    ]
    gaps = reading.wording_gaps(pl.DataFrame(rows))
    assert sorted(gaps.select("template", "mean", "gap").rows()) == [("T1", 15.0, 40.0), ("T2", 15.0, -10.0)]


def test_the_curve_over_tones_is_that_of_the_rows(gras_full: Run) -> None:
    tones = reading.by_tone(gras_full.results)
    assert tones.height == 20
    single = gras_full.results.filter(metric="gras.group_mean", subset="skin_tone")
    # 250 answers averaged: far narrower than one trait's interval, where traits are noise of their own.
    assert (tones["high"] - tones["low"]).max() < 0.5 * (single["high"] - single["low"]).min()


def test_heat_maps_say_nothing_of_their_cells_one_by_one(drawn: list[Figure]) -> None:
    """2,400 labels for a screen reader would be no help, and half of the page."""
    specs = [figure.spec(ink="black", width=300) for figure in drawn]
    assert max(len(json.dumps(spec)) for spec in specs) < 100_000


@pytest.mark.slow
def test_one_attribute_without_tones_still_draws(gras_run: Run, tmp_path: Path) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    paths = save_charts(Run(gender, gras_run.record), tmp_path)
    assert [path.name for path in paths if path.suffix == ".svg"] == [
        *(f"gras-gras-{kind}-gender.svg" for kind in ("gaps", "valence", "deviations", "wordings")),
        "gras-gras-intersections.svg",
    ]


def test_several_models_get_their_own_figures(gras_run: Run) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    both = pl.concat([gender, gender.with_columns(model=pl.lit("other"))])
    names = {figure.name: figure.title for figure in figures(both)}
    assert names["gaps-gender-2"].startswith("other, gender: ")


def test_a_page_of_many_models_leaves_the_large_figures_out_and_says_so(gras_run: Run) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    many = pl.concat([gender.with_columns(model=pl.lit(name)) for name in "abcd"])
    names = {figure.name.rpartition("-")[0] for figure in figures(many)}
    assert names == {"gaps-gender", "valence-gender", "intersections"}
    assert any("up to three models" in note for note in tables(many, "gras")[0].notes)


# The terminal


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_summary_is_compact(gras_full: Run, columns: int) -> None:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    print_summary(gras_full, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = text.splitlines()
    assert "Bias scores" in text
    assert "Largest gaps" in text
    assert "gras.group_mean" not in text
    assert len(lines) < 110
    assert max(map(len, lines)) <= columns
    assert re.search(r"gender +kind .*19\.0", text)
