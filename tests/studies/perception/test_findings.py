"""Perception's findings: the intervals support every sentence, and what is not shown is not called absent."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from studies.perception.worlds import matrix, measured, noise, photographs, words_of

from beholder.chapter.finding import Finding
from beholder.comparison.family import NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.studies.perception.chapter import CHAPTER
from beholder.studies.perception.findings import perception_findings


def by_kind(results: pl.DataFrame) -> dict[str, Finding]:
    return {finding.kind: finding for finding in perception_findings(results)}


def test_the_effect_of_smiling_has_its_interval(matched: pl.DataFrame):
    finding = by_kind(matched)["effect"]
    assert finding.shown
    assert finding.headline == "The largest effect that is found is of smiling, on Warmth"
    pattern = r"smiling 4 instead of 0 changes Warmth by \+\d\.\d\d \((\d\.\d\d)–(\d\.\d\d)\)"
    low, high = map(float, re.search(pattern, finding.sentence).groups())
    assert low < 3.0 < high
    assert (finding.rows[0]["subset"], finding.rows[0]["group"], finding.rows[0]["against"]) == ("smiling", "4", "0")


def test_an_interaction_states_both_effects_with_their_signs(matched: pl.DataFrame):
    finding = by_kind(matched)["interaction"]
    assert finding.shown
    assert finding.headline == "Smiling does not have the same effect on every group"
    man, woman = (
        matched.filter(metric="perception.slope", subset="smiling × gender", group=name, concept="warmth")["value"][0]
        for name in ("man", "woman")
    )
    assert f"it changes Warmth by +{100 * man:.2f} for man and by +{100 * woman:.2f} for woman." in finding.sentence
    assert f"for man less that for woman is −{100 * (woman - man):.2f} (" in finding.sentence


def test_two_falls_are_told_as_falls(matched: pl.DataFrame):
    """A smile lowers Communion − for both: the group with the smaller fall has no *more* of it."""
    negative = matched.with_columns(pl.col("value") * -1, low=-pl.col("high"), high=-pl.col("low"))
    sentence = by_kind(negative)["interaction"].sentence
    assert re.search(r"changes Warmth by −\d\.\d\d for man and by −\d\.\d\d for woman", sentence)
    assert "for man less that for woman is +" in sentence


def test_photographs_have_gaps_and_not_effects(results: pl.DataFrame, matched: pl.DataFrame):
    assert "gap" in by_kind(results)
    assert "effect" not in by_kind(results)
    assert "gap" not in by_kind(matched)


def test_where_nothing_is_found_it_says_how_large_a_difference_could_be(results: pl.DataFrame):
    finding = by_kind(results)["gap"]
    assert finding.verdict == NONE_FOUND
    ends = [abs(row[end]) for row in finding.rows for end in ("low", "high")]
    assert f"One of up to {100 * max(ends):.2f} (cosine × 100) could still be there." in finding.sentence


def test_a_gap_and_a_default_are_told_with_all_their_rows():
    images = photographs(400)
    men = (images["gender"] == "Male").to_numpy()
    cells = noise(images)
    cells[np.ix_(men, words_of("warmth"))] += 0.05
    cells[np.ix_(~men, (matrix(images).prompts["concept"] == "female").to_numpy())] += 0.05
    findings = {
        (each.kind, each.rows[0]["subset"]): each for each in perception_findings(measured(matrix(images, cells)))
    }
    gap, default = findings["gap", "gender"], findings["markedness", "gender"]
    assert gap.headline == "By gender, the widest gap that is found is in Warmth: Male above Female"
    assert default.headline == "The model treats Male as the default more than Female"
    assert [row["metric"] for row in default.rows] == ["perception.markedness_gap", *["perception.markedness"] * 2]
    ranking = findings["ranking", "gender"]
    assert ranking.headline == "More images labelled Male than Female are among the first of its rankings"
    men, women = map(int, re.search(r"are (\d+) % Male \(.+\) and (\d+) % Female", ranking.sentence).groups())
    assert men + women == 100


def test_too_few_people_for_an_interval_are_too_little_data():
    images = photographs(4).with_columns(race=pl.Series(["White", "Black", "Asian", "Other"]), gender=pl.lit("Male"))
    finding = by_kind(measured(matrix(images)))["gap"]
    assert finding.verdict == TOO_LITTLE
    assert "fewer than 5 people" in finding.sentence


def test_answers_in_words_are_called_a_variant_first():
    images = photographs(60)
    findings = perception_findings(measured(matrix(images, np.log(noise(images)), channel="log_p_yes")))
    assert (findings[0].kind, findings[0].verdict) == ("variant", NOT_MEASURED)
    assert "P(Yes)" in findings[0].sentence


def test_every_kind_of_finding_has_a_question(results: pl.DataFrame, matched: pl.DataFrame):
    kinds = {finding.kind for part in (results, matched) for finding in perception_findings(part)}
    assert kinds <= set(CHAPTER.questions)
    assert {question.topic for question in CHAPTER.questions.values()} <= set(CHAPTER.topics)
