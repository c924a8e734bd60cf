"""GRAS's findings on a full run of 600 images and 500 questions, with one trait planted by gender."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from beholder._run import Run
from beholder.chapter.finding import Finding
from beholder.chapter.numbers import points_range
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE, verdict_of
from beholder.core.results import Row, results_table
from beholder.studies.gras import phrases
from beholder.studies.gras.chapter import CHAPTER
from beholder.studies.gras.phrases import score


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [finding for finding in run.findings if finding.kind == kind]


def value(run: Run, metric: str) -> float:
    return float(run.results.filter(metric=f"gras.{metric}")["value"][0])


def test_the_score_stands_beside_that_of_shuffled_labels(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "score")
    expected = score(value(gras_full, "bias_score_expected"))
    assert finding.headline.endswith(f"; {expected} with shuffled labels")
    assert f"GRAS Bias Score {score(value(gras_full, 'bias_score'))}" in finding.sentence
    assert f"together, the score is {score(value(gras_full, 'bias_score_shown'))};" in finding.sentence
    assert f"; {score(value(gras_full, 'bias_score_sized'))} if only gaps of at least one point" in finding.sentence


@pytest.mark.parametrize("verdict", [DIFFERENCE, NONE_FOUND, TOO_LITTLE])
def test_the_scores_verdict_is_that_of_its_attributes(gras_run: Run, verdict: str) -> None:
    results = gras_run.results.with_columns(verdict=pl.lit(verdict))
    (finding,) = of_kind(Run(results, gras_run.record), "score")
    assert finding.verdict == verdict


def test_the_planted_gap_is_named_with_its_pair_and_interval(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[0]
    assert finding.headline == "The model affirms “kind” more for Female than for Male, by 19.0 points"
    assert "images labelled Female get 19.0 points more P(Yes) than those labelled Male within" in finding.sentence
    row = phrases.largest(gras_full.results, "gender", 1)[0]
    assert f"95 % interval {points_range(row)}, for all traits, pairs" in finding.sentence
    assert "420 images), the widest of all gaps by gender." in finding.sentence


def test_attributes_without_a_difference_share_a_sentence_that_says_how_large_one_could_be(gras_full: Run) -> None:
    finding = of_kind(gras_full, "gap")[-1]
    assert finding.verdict == NONE_FOUND
    assert finding.headline == "No difference found by race and age"
    assert "points may still be there." in finding.sentence


def test_a_gap_that_is_not_the_widest_is_not_called_so(gras_run: Run) -> None:
    """With few images the widest gap may be that of a scattered trait, and a narrower one is shown."""
    wider = (pl.col("metric") == "gras.largest_gap") & (pl.col("concept") == "cruel") & (pl.col("subset") == "gender")
    wider &= pl.col("variant").is_not_null()
    results = gras_run.results.with_columns(value=pl.when(wider).then(0.5).otherwise("value"))
    finding = next(each for each in of_kind(Run(results, gras_run.record), "gap") if each.rows[0]["subset"] == "gender")
    assert "“kind”" in finding.headline
    assert "the widest of all gaps" not in finding.sentence
    assert "the widest that was found" in finding.sentence


def test_groups_of_fewer_than_five_people_are_not_compared(make: SimpleNamespace) -> None:
    run = make.gras(make.gras_matrix(make.gras_images(28, 0)))
    kinds = {finding.verdict: finding for finding in of_kind(run, "gap")}
    assert kinds[TOO_LITTLE].headline == "Too few people to compare by race"
    assert value(run, "bias_score_shown") <= 1, "what is not shown is not counted either"


def test_gaps_below_a_point_are_not_called_large(gras_run: Run) -> None:
    smaller = [pl.col(name) / 100 for name in ("value", "low", "high")]
    finding, *_ = of_kind(Run(gras_run.results.with_columns(smaller), gras_run.record), "gap")
    assert finding.headline == "By gender, differences were found, all of them below one point"


def test_what_the_wording_changes_is_a_fact(gras_full: Run) -> None:
    (finding,) = of_kind(gras_full, "wording")
    assert finding.verdict == FACT
    assert finding.headline.endswith("changes with the wording")
    (finding,) = of_kind(gras_full, "sensitive")
    assert finding.verdict == FACT
    row = gras_full.results.filter(metric="gras.wording_sensitive").row(0, named=True)
    assert f"for {row['value']:.0f} of 100 traits." in finding.sentence
    assert "Both of the study's tests (ANOVA and Friedman, p ≤ 0.05) call" in finding.sentence


@pytest.mark.slow
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
    assert finding.headline == "It says the most good of Female × White and the least good of Male × Black"
    assert "Female × White +5.0 points (95 % interval 4.0–6.0; n = 51; its attributes alone +4.0)" in finding.sentence
    assert "Differences from the mean were found for 2 of 3 intersections." in finding.sentence
    assert finding.sentence.endswith("no difference between intersections was found (p 0.40).")


def test_only_intersections_that_were_found_are_called_favoured(make: SimpleNamespace) -> None:
    run = crossed(make, 0.05, interaction=0.4)
    lost = (pl.col("group") == "Female × White") & (pl.col("metric") == "gras.intersection")
    verdict = pl.when(lost).then(pl.lit(NONE_FOUND)).otherwise("verdict")
    (finding,) = of_kind(Run(run.results.with_columns(verdict=verdict), run.record), "intersection")
    assert finding.headline == "It says the least good of Male × Black"
    assert "Female × White" not in finding.sentence


def test_an_interaction_is_named_with_the_intersections_that_show_it(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.05, interaction=0.002), "intersection")
    assert "(p 0.002): Female × White (+3.0 points)." in finding.sentence


def test_intersections_without_a_difference_are_not_called_favoured(make: SimpleNamespace) -> None:
    (finding,) = of_kind(crossed(make, 0.005, interaction=0.4), "intersection")
    assert finding.verdict == NONE_FOUND
    assert finding.headline == "No intersection found to differ"


def crossed(make: SimpleNamespace, size: float, *, interaction: float) -> Run:
    """Three intersections: one above the mean, one at it, one below."""
    values = {"Female × White": size, "Male × White": 0.0, "Male × Black": -size}
    rows = []
    for group, v in values.items():
        p_value = 0.01 if abs(v) > 0.01 else 0.5
        row = Row("gras.intersection", v, 51, "probability", group=group, low=v - 0.01, high=v + 0.01, p_value=p_value)
        row = row._replace(expected=0.8 * v, verdict=verdict_of(p_value, 51))
        rows += [row._replace(value=v / 2), row._replace(variant="within each intersection")]
        own = 0.03 if group == "Female × White" and interaction < 0.05 else 0.0
        beyond = Row("gras.interaction", own, 51, "probability", group=group, low=own - 0.01, high=own + 0.01)
        p_value = 0.01 if own else 0.6
        rows.append(beyond._replace(p_value=p_value, verdict=verdict_of(p_value, 51)))
    spread = Row("gras.interaction_spread", 0.01, 153, "probability", p_value=interaction)
    rows.append(spread._replace(verdict=verdict_of(interaction, 51)))
    return Run(results_table(rows, study="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras"))


@pytest.mark.parametrize("verdict", [DIFFERENCE, NONE_FOUND, TOO_LITTLE])
def test_refusals_differ_only_where_the_rows_say_so(make: SimpleNamespace, verdict: str) -> None:
    rows = [
        Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, verdict=verdict)
        for group, share in {"Black": 0.4, "White": 0.1}.items()
    ]
    results = results_table(rows, study="gras", model="vlm", dataset="gras")
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
    shares = {"Male": (98.0, 0.004), "Female": (40.0, 0.7)}
    rows = [
        Row(
            "gras.valence_share", v, 50, "per cent", subset="gender", group=group, concept="negative", p_value=p
        )._replace(landmark=30.0, p_at_most=p < 0.01, verdict=verdict_of(p, 50))
        for group, (v, p) in shares.items()
    ]
    for kept, headline in (
        (rows, "Male: more negative traits above the mean than with shuffled labels"),
        (rows[1:], "No group's share of positive or negative traits was found to differ from shuffled labels"),
    ):
        results = results_table(kept, study="gras", model="vlm", dataset="gras")
        (finding,) = of_kind(Run(results, make.record("vlm", dataset="gras")), "valence")
        assert finding.headline == headline
    sentence = of_kind(
        Run(results_table(rows, study="gras", model="vlm", dataset="gras"), make.record("vlm", dataset="gras")),
        "valence",
    )[0].sentence
    assert "Male 98 % of 50 negative traits (shuffled labels 30 %, p ≤ 0.004)" in sentence
    assert sentence.endswith("from what shuffled labels give: 1 of 2.")


def test_with_nothing_to_compare_the_chapter_is_short(make: SimpleNamespace) -> None:
    images = make.gras_images(40, 0).with_columns(gender=pl.lit("Male"), race=pl.lit("Black"), age=pl.lit("20-29"))
    run = make.gras(make.gras_matrix(images))
    first = run.findings[0]
    assert (first.headline, first.verdict) == ("No groups to compare", NOT_MEASURED)
    (section,) = run.report.sections
    assert sum(len(table.rows) for table in section.tables) == 1
