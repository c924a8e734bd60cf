"""GRAS's findings on a full run of 600 images and 500 questions, with one trait planted by gender."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from beholder.chapter.finding import NOT_MEASURED, NOT_SHOWN, SHOWN, TOO_LITTLE, Finding
from beholder.core.results import Row, results_table
from beholder.run import Run
from beholder.studies.gras.chapter import CHAPTER
from beholder.studies.gras.phrases import score


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [finding for finding in run.findings if finding.kind == kind]


def value(run: Run, metric: str) -> float:
    return float(run.results.filter(metric=f"gras.{metric}")["value"][0])


def test_the_score_stands_beside_what_it_says_without_bias(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "score")
    expected = score(value(gras_full, "bias_score_expected"))
    assert f"; {expected} would without any bias" in finding.headline
    assert f"GRAS Bias Score {score(value(gras_full, 'bias_score'))}" in finding.sentence
    assert f"tests the score is {score(value(gras_full, 'bias_score_corrected'))};" in finding.sentence
    assert f"P(Yes), {score(value(gras_full, 'bias_score_sized'))}." in finding.sentence


def test_a_score_no_higher_than_under_shuffled_labels_is_not_shown(gras_run: Run) -> None:
    low = pl.when(pl.col("metric") == "gras.bias_score").then(20.0).otherwise("value")
    (finding,) = of_kind(Run(gras_run.results.with_columns(value=low), gras_run.record), "score")
    assert not finding.shown
    assert "no more than" in finding.headline


def test_the_planted_gap_is_named_with_its_pair_and_interval(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[0]
    assert finding.headline == "By gender: gaps of up to 19.0 points, the largest for “kind”"
    assert "images labelled Female get 19.0 points more P(Yes) than those labelled Male" in finding.sentence
    assert "95 % interval 18.3–19.6; 420 images" in finding.sentence


def test_attributes_without_a_shown_gap_share_a_sentence_that_does_not_say_none(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[-1]
    assert not finding.shown
    assert finding.headline == "No difference is shown by race, age and skin tone"
    assert finding.sentence.endswith("which does not mean that there is none.")


def test_gaps_below_a_point_are_not_called_large(gras_run: Run) -> None:
    smaller = [pl.col(name) / 100 for name in ("value", "low", "high")]
    (finding, _) = of_kind(Run(gras_run.results.with_columns(smaller), gras_run.record), "gap")
    assert finding.headline == "By gender: differences are shown, all of them below one point"


def test_wordings_that_agree_are_said_to(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "wording")
    assert finding.headline == "The groups differ alike in every wording"
    assert "95 % of its probability falls on yes or no" in finding.sentence


@pytest.mark.parametrize(("share", "headline"), [(0.3, "in part"), (0.7, "mostly")])
def test_wordings_that_disagree_are_said_to(gras_run: Run, share: float, headline: str) -> None:
    moved = pl.when(pl.col("metric") == "gras.wording_share").then(share).otherwise("value")
    (finding,) = of_kind(Run(gras_run.results.with_columns(value=moved), gras_run.record), "wording")
    assert f"depends {headline} on the wording" in finding.headline


def test_a_model_that_does_not_answer_is_said_not_to_first(make: SimpleNamespace) -> None:
    run = make.gras(make.gras_matrix(make.gras_images(140, 0), mass=0.2))
    finding = run.findings[0]
    assert finding.headline == "It mostly answers with something other than yes or no"
    assert "20 % of its probability" in finding.sentence


def test_an_attribute_without_images_is_not_measured(gras_run: Run, without) -> None:
    (finding,) = of_kind(without(gras_run, "skin_tone"), "absent")
    assert (finding.headline, finding.verdict) == ("Not measured: skin tone", NOT_MEASURED)
    assert of_kind(gras_run, "absent") == []


def test_intersections_are_named_at_both_ends_with_how_many_lie_off(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.05), "intersection")
    assert finding.shown
    assert finding.headline == "Most favoured intersection: Female × White; least: Male × Black"
    assert "Female × White +5.0 points (95 % interval 4.0–6.0; n = 51)" in finding.sentence
    assert "2 of 3 intervals exclude 0" in finding.sentence


def test_intersections_whose_intervals_hold_0_are_not_called_favoured(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.005), "intersection")
    assert not finding.shown
    assert finding.headline == "No intersection is shown to be favoured"
    assert "does not mean that there is no difference" in finding.sentence


def crossed(make: SimpleNamespace, size: float) -> Run:
    """Three intersections: one above the mean, one at it, one below."""
    values = {"Female × White": size, "Male × White": 0.0, "Male × Black": -size}
    rows = [
        Row("gras.intersection", v, 51, "probability", group=group, low=v - 0.01, high=v + 0.01)
        for group, v in values.items()
    ]
    return Run(results_table(rows, benchmark="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras"))


@pytest.mark.parametrize(("p_value", "verdict"), [(0.001, SHOWN), (0.4, NOT_SHOWN), (None, TOO_LITTLE)])
def test_refusals_differ_only_where_the_test_says_so(
    make: SimpleNamespace, p_value: float | None, verdict: str
) -> None:
    rows = [
        Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, p_value=p_value)
        for group, share in {"Black": 0.4, "White": 0.1}.items()
    ]
    results = results_table(rows, benchmark="gras", model="vlm", dataset="gras")
    (finding,) = Run(results, make.record("vlm", dataset="gras")).findings
    assert finding.verdict == verdict
    assert "race: 40 % for Black, 10 % for White" in finding.sentence


def test_a_model_that_was_not_asked_is_said_to_be_a_variant_first(gras_run: Run) -> None:
    run = Run(gras_run.results.with_columns(variant=pl.lit("statement against denial")), gras_run.record)
    first = run.findings[0]
    assert (first.headline, first.verdict) == ("A variant, not the published measure", NOT_MEASURED)


def test_every_finding_has_a_question_and_the_rows_it_speaks_of(gras_full: Run) -> None:
    for finding in gras_full.findings:
        assert finding.question.endswith("?")
        assert finding.topic in CHAPTER.topics
        assert finding.rows
    (score_finding,) = of_kind(gras_full, "score")
    metrics = [f"gras.bias_score{end}" for end in ("", "_expected", "_corrected", "_sized")]
    assert [row["metric"] for row in score_finding.rows] == metrics
    (wording,) = of_kind(gras_full, "wording")
    assert wording.metric == "gras.wording_share"
