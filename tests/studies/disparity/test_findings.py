"""Disparity's findings: every sentence follows from the rows."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from beholder.chapter.finding import Finding, one_row
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.findings import disparity_findings

Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def only(results: pl.DataFrame, kind: str) -> Finding:
    """The one finding of a kind."""
    (finding,) = [each for each in disparity_findings(results) if each.kind == kind]
    return finding


def test_gaps_are_named_in_both_directions_with_those_of_chance(full: pl.DataFrame):
    finding = only(full, "gaps")
    assert finding.verdict == DIFFERENCE
    assert finding.headline == "2 of 4 concepts are recognised unequally in images of men and of women"
    assert "“tie” is recognised worse in images labelled “woman”: average precision " in finding.sentence
    assert "“handbag” is recognised worse in images labelled “man”: average precision " in finding.sentence
    assert "intervals and p hold for all concepts at once." in finding.sentence
    tie = one_row(full, "ap_gap_matched", concept="tie")
    assert f"({100 * tie['low']:.1f}–{100 * tie['high']:.1f}; p < 0.001)" in finding.sentence  # those that decided
    rows = [(row["metric"], row["concept"]) for row in finding.rows]
    assert rows[:3] == [
        ("disparity.gaps_shown", None),
        ("disparity.ap_gap_matched", "tie"),
        ("disparity.ap_gap_matched", "handbag"),
    ]
    assert finding.as_dict()["rows"][1]["against"] == "woman"


def test_where_no_gap_is_found_the_bounds_say_how_wide_one_could_be(
    quiet: pl.DataFrame, object_world: World, measure: Measure
):
    finding = only(quiet, "gaps")
    assert finding.verdict == NONE_FOUND
    assert finding.headline == "No gap was found between images of men and of women"
    gaps = quiet.filter(pl.col("metric") == "disparity.ap_gap_matched")
    widest = max(gaps["high"].max(), -gaps["low"].min())
    assert f"A gap could still be up to {100 * widest:.1f} points" in finding.sentence
    few = only(measure(object_world(24, seed=3)), "gaps")
    assert few.verdict == TOO_LITTLE
    assert few.headline == "Too few images show any one concept to test a gap"


@pytest.mark.slow
def test_gaps_too_small_to_be_found_alone_are_found_together(object_world: World, measure: Measure):
    """Forty concepts are seen a little worse in either group: no single gap is wide enough."""
    names = tuple(f"thing {number}" for number in range(40))
    worse = {(("man", "woman")[number % 2], name): 0.3 for number, name in enumerate(names)}
    results = measure(object_world(240, names, worse, seed=2))
    gaps, together = only(results, "gaps"), only(results, "together")
    assert gaps.headline == "No single concept's gap was found between images of men and of women"
    assert together.headline == "Taken together, gaps between images of men and of women are wider than chance"
    assert together.shown
    assert "shuffled labels give" in together.sentence


def test_prevalence_alone_makes_no_claim_about_the_mean(object_world: World, measure: Measure):
    """Scores do not depend on the group, but women are shown with everything more often."""
    names = tuple(f"thing {number}" for number in range(12))
    rare = {(group, name): share for name in names for group, share in (("man", 0.08), ("woman", 0.4))}
    results = measure(object_world(400, names, rare=rare, seed=5))
    mean = only(results, "mean")
    assert one_row(results, "mean_ap_gap")["value"] < -0.1  # as published
    assert mean.headline == "On average over concepts, no difference was found"
    assert mean.verdict == NONE_FOUND


def test_the_mean_says_what_it_hides(full: pl.DataFrame):
    finding = only(full, "mean")
    assert "hides gaps that point in opposite directions" in finding.sentence
    mean = one_row(full, "mean_average_precision", group="man")
    assert f"“man” {100 * mean['value']:.0f} %" in finding.sentence
    assert [row.get("group") for row in finding.rows] == ["man", "man", "man", "woman"]


def test_a_gap_of_prevalence_is_recognised(full: pl.DataFrame):
    finding = only(full, "prevalence")
    assert "“dog”" in finding.sentence
    assert "when both groups show it equally often" in finding.sentence
    assert [row["metric"] for row in finding.rows] == ["disparity.ap_gap_matched", "disparity.ap_gap"]


def test_calibration_is_compared(object_world: World, measure: Measure, quiet: pl.DataFrame):
    results = measure(object_world(1500, worse={("woman", "tie"): 1.9}))
    finding = only(results, "calibration")
    assert finding.verdict == DIFFERENCE
    assert finding.headline == "For 1 of 4 concepts, confidence is worse calibrated for one group"
    assert "“tie”, off by" in finding.sentence
    assert "4 concepts tested together" in finding.sentence
    still = only(quiet, "calibration")
    assert still.verdict == NONE_FOUND
    assert still.headline.startswith("No gap in calibration was found")


def test_calibration_that_was_not_measured_has_its_reason(object_world: World, measure: Measure):
    finding = only(measure(object_world(300, channel="cosine"), draws=50), "calibration")
    assert finding.verdict == NOT_MEASURED
    assert "is not a probability" in finding.sentence
    assert "--calibration platt" in finding.sentence


def test_agreement_is_counted(full: pl.DataFrame):
    green = one_row(full, "agreement_count", group="green")["value"]
    assert green >= 2
    finding = only(full, "agreement")
    assert finding.headline.startswith(f"{green:.0f} of 4 concepts have a wide gap in the same direction")
    assert finding.verdict == FACT
    assert len(finding.rows) == 3


@pytest.mark.parametrize(("share", "headline"), [(0.95, "Gaps agree with"), (0.05, "Gaps point against")])
def test_word_vectors_are_mentioned_from_ten_concepts_on(full: pl.DataFrame, share: float, headline: str):
    assert not [each for each in disparity_findings(full) if each.kind == "words"]
    words = pl.col("metric") == "disparity.word_agreement"
    changed = {"n": 40, "value": share, "low": share - 0.04, "high": share + 0.04, "p_value": 0.01}
    changed["verdict"] = DIFFERENCE
    many = full.with_columns(
        pl.when(words).then(pl.lit(value)).otherwise(name).alias(name) for name, value in changed.items()
    )
    finding = only(many, "words")
    assert finding.headline == f"{headline} word vectors"
    assert finding.shown


def test_a_group_is_compared_with_the_other_images(three_groups: pl.DataFrame):
    headlines = [each.headline for each in disparity_findings(three_groups) if each.kind == "gaps"]
    assert headlines[1] == "1 of 4 concepts is recognised unequally in images of “b” and of the rest"
    sentences = [each.sentence for each in disparity_findings(three_groups) if each.kind == "gaps"]
    assert "“tie” is recognised worse in images labelled “b”: a gap of " in sentences[1]
