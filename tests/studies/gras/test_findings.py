"""GRAS's findings on a full run of 600 images and 500 questions, with one trait planted by gender."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.chapter.numbers import points_range
from beholder.comparison.verdicts import DIFFERENCE, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.core.results import Row, results_table
from beholder.run import Run
from beholder.studies.gras import queries
from beholder.studies.gras.chapter import CHAPTER
from beholder.studies.gras.charts import gap_title
from beholder.studies.gras.phrases import score


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [finding for finding in run.findings if finding.kind == kind]


def value(run: Run, metric: str) -> float:
    return float(run.results.filter(metric=f"gras.{metric}")["value"][0])


def test_the_score_stands_beside_what_it_says_without_bias(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "score")
    expected = score(value(gras_full, "bias_score_expected"))
    assert f"; chance alone gives {expected}" in finding.headline, "six shuffles cannot show it to be above"
    assert f"GRAS Bias Score {score(value(gras_full, 'bias_score'))}" in finding.sentence
    assert f"together, the score is {score(value(gras_full, 'bias_score_shown'))};" in finding.sentence
    assert f"; {score(value(gras_full, 'bias_score_sized'))} if only gaps of at least one point" in finding.sentence


def test_a_score_above_its_shuffles_is_said_to_be(gras_run: Run) -> None:
    p_value = pl.when(pl.col("metric") == "gras.bias_score").then(0.01).otherwise("p_value")
    (finding,) = of_kind(Run(gras_run.results.with_columns(p_value=p_value), gras_run.record), "score")
    assert finding.shown
    assert " would without any bias" in finding.headline


def test_a_score_no_higher_than_under_shuffled_labels_is_not_shown(gras_run: Run) -> None:
    score_row = pl.col("metric") == "gras.bias_score"
    p_value = pl.when(score_row).then(0.4).otherwise("p_value")
    (finding,) = of_kind(Run(gras_run.results.with_columns(p_value=p_value), gras_run.record), "score")
    assert not finding.shown
    assert "; chance alone gives " in finding.headline


def test_the_planted_gap_is_named_with_its_pair_and_interval(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[0]
    assert finding.headline == "The model affirms “kind” more for Female than for Male, by 19.0 points"
    assert "images labelled Female get 19.0 points more P(Yes) than those labelled Male" in finding.sentence
    (row,) = gras_full.results.filter(metric="gras.largest_gap", subset="gender", concept="kind").to_dicts()
    assert f"95 % interval {points_range(row)}, for all traits, pairs" in finding.sentence
    assert "420 images), the widest of all gaps by gender." in finding.sentence


def test_attributes_without_a_shown_gap_share_a_sentence_that_does_not_say_none(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[-1]
    assert not finding.shown
    assert finding.headline == "No difference is shown by race and age"
    assert finding.sentence.endswith("This does not mean that there is none.")


def test_a_gap_that_is_not_the_widest_is_not_called_so(gras_run: Run) -> None:
    """With few images the widest gap may be that of a scattered trait, and a narrower one is shown."""
    wider = (pl.col("metric") == "gras.largest_gap") & (pl.col("concept") == "cruel") & (pl.col("subset") == "gender")
    results = gras_run.results.with_columns(value=pl.when(wider).then(0.5).otherwise("value"))
    finding = next(each for each in of_kind(Run(results, gras_run.record), "gap") if each.rows[0]["subset"] == "gender")
    assert "“kind”" in finding.headline
    assert "the widest of all gaps" not in finding.sentence
    assert "the widest that is shown" in finding.sentence
    title = gap_title(queries.largest(results, "gender", 10))
    assert title == "widest gap that is shown: “kind”, Female 19.0 points above Male"


def test_groups_of_fewer_than_five_people_are_not_compared(make: SimpleNamespace) -> None:
    run = make.gras(make.gras_matrix(make.gras_images(28, 0)))
    kinds = {finding.verdict: finding for finding in of_kind(run, "gap")}
    assert kinds[TOO_LITTLE].headline == "Too few people to compare by race"
    assert value(run, "bias_score_shown") <= 1, "what is not shown is not counted either"


def test_gaps_below_a_point_are_not_called_large(gras_run: Run) -> None:
    smaller = [pl.col(name) / 100 for name in ("value", "low", "high")]
    finding, *_ = of_kind(Run(gras_run.results.with_columns(smaller), gras_run.record), "gap")
    assert finding.headline == "By gender, differences are shown, all of them below one point"


WORDING = (pl.col("metric") == "gras.wording_share") & pl.col("concept").is_null()


@pytest.mark.parametrize(
    ("low", "high", "headline"),
    [
        (0.0, 0.05, "The groups differ nearly alike in every wording"),
        (0.2, 0.4, "How groups differ by gender and skin tone depends in part on the wording"),
        (0.6, 0.8, "How groups differ by gender and skin tone depends mostly on the wording"),
        (0.05, 0.4, "How far the differences depend on the wording is not certain"),
        (None, None, "How far the differences depend on the wording is not known"),
    ],
)
def test_the_wording_is_said_to_matter_as_far_as_the_interval_shows(
    gras_run: Run, low: float | None, high: float | None, headline: str
) -> None:
    bounds = {"low": low, "high": high, "value": None if low is None else (low + high) / 2}
    bounds["value"] = 0.3 if bounds["value"] is None else bounds["value"]
    moved = [
        pl.when(WORDING).then(pl.lit(bound, pl.Float64)).otherwise(name).alias(name) for name, bound in bounds.items()
    ]
    (finding,) = of_kind(Run(gras_run.results.with_columns(moved), gras_run.record), "wording")
    assert finding.headline == headline


def test_how_many_traits_depend_on_the_wording_is_said_with_bounds(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "sensitive")
    row = gras_full.results.filter(metric="gras.wording_sensitive").row(0, named=True)
    assert f"for {row['value']:.0f} of 100 traits (95 % interval {row['low']:.0f}–{row['high']:.0f}" in finding.sentence
    assert "Both of the study's tests (ANOVA and Friedman, p ≤ 0.05) find a difference for" in finding.sentence


def test_a_model_that_does_not_answer_is_said_not_to_first(make: SimpleNamespace) -> None:
    run = make.gras(make.gras_matrix(make.gras_images(140, 0), mass=0.2))
    finding = run.findings[0]
    assert finding.headline == "It mostly answers with something other than yes or no"
    assert "20 % of its probability" in finding.sentence


def test_an_attribute_without_images_is_not_measured(gras_run: Run, without) -> None:
    (finding,) = of_kind(without(gras_run, "skin_tone"), "absent")
    assert (finding.headline, finding.verdict) == ("Not measured: skin tone", NOT_MEASURED)
    assert of_kind(gras_run, "absent") == []


def test_intersections_are_named_at_both_ends_with_what_their_attributes_add_up_to(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.05, interaction=0.4), "intersection")
    assert finding.shown
    assert finding.headline == (
        "Most favoured intersection: Female × White; least: Male × Black; no interaction is shown"
    )
    assert "Female × White +5.0 points (95 % interval 4.0–6.0; n = 51; its attributes alone +4.0)" in finding.sentence
    assert "2 of 3 intersections are shown to lie off the mean" in finding.sentence
    assert finding.sentence.endswith("no difference between intersections is shown (p 0.40).")


def test_an_interaction_is_named_with_the_intersections_that_show_it(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.05, interaction=0.002), "intersection")
    assert "no interaction" not in finding.headline
    assert "(p 0.002); of single intersections, Female × White (+3.0 points)." in finding.sentence


def test_intersections_whose_intervals_hold_0_are_not_called_favoured(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.005, interaction=0.4), "intersection")
    assert not finding.shown
    assert finding.headline == "No intersection is shown to be favoured"
    assert "does not mean that there is none" in finding.sentence


def crossed(make: SimpleNamespace, size: float, *, interaction: float) -> Run:
    """Three intersections: one above the mean, one at it, one below."""
    values = {"Female × White": size, "Male × White": 0.0, "Male × Black": -size}
    rows = []
    for group, v in values.items():
        p_value = 0.01 if abs(v) > 0.01 else 0.5
        row = Row("gras.intersection", v, 51, "probability", group=group, low=v - 0.01, high=v + 0.01, p_value=p_value)
        rows.append(row._replace(expected=0.8 * v))
        own = 0.03 if group == "Female × White" and interaction < 0.05 else 0.0
        beyond = Row("gras.interaction", own, 51, "probability", group=group, low=own - 0.01, high=own + 0.01)
        rows.append(beyond._replace(p_value=0.01 if own else 0.6))
    rows.append(Row("gras.interaction_spread", 0.01, 153, "probability", p_value=interaction))
    return Run(results_table(rows, benchmark="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras"))


@pytest.mark.parametrize(("p_value", "verdict"), [(0.001, DIFFERENCE), (0.4, NONE_FOUND), (None, TOO_LITTLE)])
def test_refusals_differ_only_where_the_test_says_so(
    make: SimpleNamespace, p_value: float | None, verdict: str
) -> None:
    rows = [
        Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, p_value=p_value)
        for group, share in {"Black": 0.4, "White": 0.1}.items()
    ]
    results = results_table(rows, benchmark="gras", model="vlm", dataset="gras")
    (finding,) = of_kind(Run(results, make.record("vlm", dataset="gras")), "refusal")
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
    metrics = [f"gras.bias_score{end}" for end in ("", "_expected", "_shown", "_sized")]
    assert [row["metric"] for row in score_finding.rows] == metrics
    (wording,) = of_kind(gras_full, "wording")
    assert wording.metric == "gras.wording_share"


def test_valence_shares_are_read_against_shuffled_labels(make: SimpleNamespace) -> None:
    """98 % of negative traits for Male where shuffled labels give 30 % is shown, 40 % for Female is not."""
    shares = {"Male": (98.0, 0.004), "Female": (40.0, 0.7)}
    rows = [
        Row(
            "gras.valence_share", v, 50, "per cent", subset="gender", group=group, concept="negative", p_value=p
        )._replace(low=v - 5, high=min(v + 5, 100), landmark=30.0, p_at_most=p < 0.01)
        for group, (v, p) in shares.items()
    ]
    for kept, headline in (
        (rows, "Male: more negative traits above the mean than chance gives"),
        (rows[1:], "No group's share of positive or negative traits is shown to differ from chance"),
    ):
        results = results_table(kept, benchmark="gras", model="vlm", dataset="gras")
        (finding,) = of_kind(Run(results, make.record("vlm", dataset="gras")), "valence")
        assert finding.headline == headline
    sentence = of_kind(
        Run(results_table(rows, benchmark="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras")),
        "valence",
    )[0].sentence
    assert "Male 98 % of 50 negative traits (95 % interval 93–100 %; shuffled labels 30 %, p ≤ 0.004)" in sentence
    assert sentence.endswith("from what shuffled labels give: 1 of 2.")


@pytest.mark.parametrize(
    ("crude", "adjusted", "headline"),
    [
        (0.001, 0.6, "1 of 1 gap by skin tone not shown at the same mix of image sources"),
        (0.001, 0.001, "Gaps by skin tone are shown at the same mix of image sources too"),
        (0.6, 0.001, "1 gap by skin tone shown only at the same mix of image sources"),
        (0.6, 0.6, None),
    ],
)
def test_gaps_are_compared_at_the_same_mix_of_sources(
    make: SimpleNamespace, crude: float, adjusted: float, headline: str | None
) -> None:
    rows = [Row("gras.biased_traits", 100.0, 1, "per cent", subset="skin_tone")]
    for name, v, p in (("largest_gap", 0.05, crude), ("adjusted_gap", -0.01 if adjusted > 0.05 else 0.04, adjusted)):
        row = Row(f"gras.{name}", v, 1440, "probability", subset="skin_tone", group="10", against="3", concept="kind")
        rows.append(row._replace(low=v - 0.02, high=v + 0.02, p_value=p))
    results = results_table(rows, benchmark="gras", model="vlm", dataset="gras")
    found = of_kind(Run(results, make.record("vlm", dataset="gras")), "sources")
    assert [finding.headline for finding in found] == ([headline] if headline else [])
    if found and adjusted > 0.05:
        assert "“kind”: −1.0 points (−3.0 to 1.0) in place of +5.0 (MST 10 higher than MST 3)" in found[0].sentence


def test_with_nothing_to_compare_the_chapter_is_short(make: SimpleNamespace) -> None:
    images = make.gras_images(40, 0).with_columns(gender=pl.lit("Male"), race=pl.lit("Black"), age=pl.lit("20-29"))
    run = make.gras(make.gras_matrix(images))
    first = run.findings[0]
    assert (first.headline, first.verdict) == ("No groups to compare", NOT_MEASURED)
    (section,) = run.report.sections
    assert sum(len(table.rows) for table in section.tables) == 1
