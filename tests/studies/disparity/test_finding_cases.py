"""Every template of a finding, at both signs, at zero, with one group, with tiny and huge n: what it may say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.chapter.numbers import ABSENT
from beholder.comparison.family import DIFFERENCE
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.chapter import CHAPTER, disparity_tables, limitations
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.disparity.findings import disparity_findings

from .finding_cases import cases

CASES = dict(cases())


def of(case: str, kind: str) -> Finding:
    (one,) = [each for each in disparity_findings(CASES[case]) if each.kind == kind][:1]
    return one


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_rendered_without_a_hole(case: str):
    for each in disparity_findings(CASES[case]):
        text = f"{each.headline}. {each.sentence}"
        assert not re.search(r"None|nan|  |\( |\.\.|; \)", text), text
        assert ABSENT not in text, text
        assert not re.search(r"\b1 concepts\b|\bof 1 concepts\b", text), text
        assert (each.verdict == DIFFERENCE) is False or "exactly 0" not in case
    list(disparity_tables(CASES[case]))
    list(disparity_figures(CASES[case]))


def test_every_kind_of_finding_has_a_case():
    assert {each.kind for table in CASES.values() for each in disparity_findings(table)} == set(CHAPTER.questions)


@pytest.mark.parametrize("size", ["tiny", "usual", "huge"])
def test_the_side_that_is_named_is_the_side_of_the_sign(size: str):
    above, below = (f"{size} n, gap {side} 0" for side in ("above", "below"))
    gap = "a gap of 12.0 points (6.0–18.0; p ≤ 0.004)."
    worse = "“tie” is recognised worse in images labelled “{}”: average precision {}, " + gap
    assert worse.format("woman", "48 % against 60 %") in of(above, "gaps").sentence
    assert worse.format("man", "60 % against 72 %") in of(below, "gaps").sentence
    assert "off by 17.3 points in images labelled “man” and by 10.0" in of(above, "calibration").sentence
    assert "off by 17.3 points in images labelled “woman” and by 10.0" in of(below, "calibration").sentence
    if size == "tiny":
        assert {each.kind for each in disparity_findings(CASES[above])}.isdisjoint({"mean", "together", "words"})
        return
    assert of(above, "mean").headline.endswith("worse in images labelled “woman”")
    assert of(below, "mean").headline.endswith("worse in images labelled “man”")
    assert of(above, "words").headline == "Gaps agree with word vectors"
    assert of(below, "words").headline == "Gaps point against word vectors"


def test_all_gaps_together_are_told_apart_from_single_ones():
    case = "no single gap shown, but all together"
    assert of(case, "gaps").headline.startswith("No single concept's gap")
    assert of(case, "together").verdict == DIFFERENCE
    assert "p 0.002" in of(case, "together").sentence


def test_where_no_gap_was_found_it_is_said_how_wide_one_could_be():
    finding = of("usual n, gap exactly 0", "gaps")
    assert finding.headline == "No gap was found between images of men and of women"
    assert finding.sentence.startswith("A gap could still be up to 8.0 points, at “tie”.")
    calibration = of("usual n, gap exactly 0", "calibration")
    assert calibration.sentence.startswith(
        "The squared errors could still differ by up to 150 square points, at “tie”."
    )


def test_the_mean_hides_gaps_only_where_there_are_gaps_to_hide():
    hides = "The mean hides gaps that point in opposite directions."
    assert hides in of("gaps in opposite directions, mean hides them", "mean").sentence
    assert sum(hides in each.sentence for table in CASES.values() for each in disparity_findings(table)) == 1


def test_one_group_makes_no_claim():
    assert disparity_findings(CASES["only one group"]) == []


def test_limitations_are_said_where_they_apply(
    object_world: Callable[..., ScoreMatrix], measure: Callable[..., pl.DataFrame]
):
    """Calibration that was not measured, groups that are not genders, and a data set without captions."""
    cosines = "; ".join(limitations(measure(object_world(60, channel="cosine"), draws=20)))
    assert "calibration error" not in cosines
    assert "“man”, “woman”" in cosines
    ages = object_world(60, groups=("child", "adult"))
    text = "; ".join(limitations(measure(ages, draws=20)))
    assert "gender" not in text
    assert "“adult”, “child”" in text
    assert "Expected calibration error is above 0 by chance" in text
    own = replace(ages, dataset=replace(ages.dataset, name="mine"))
    assert "caption" not in "; ".join(limitations(measure(own, draws=20)))
