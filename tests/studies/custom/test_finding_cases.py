"""Every sentence about own prompts at both signs, at zero, with one group, with few people and with very many."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, TOO_LITTLE
from beholder.studies.custom.chapter import custom_findings

spec = importlib.util.spec_from_file_location("cases", Path(__file__).with_name("finding_cases.py"))
assert spec is not None
assert spec.loader is not None
finding_cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(finding_cases)
CASES: dict[str, pl.DataFrame] = dict(finding_cases.cases())


def told(case: str) -> list[tuple[str, str, str]]:
    return [(each.headline, each.sentence, each.verdict) for each in custom_findings(CASES[case])]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_said_in_whole_sentences(case: str):
    findings = told(case)
    assert bool(findings) == (case != "one group only")
    for headline, sentence, verdict in findings:
        assert sentence.endswith(".")
        assert not re.search(r"\b(nan|inf|None)\b|—", headline + sentence)
        assert verdict in (DIFFERENCE, NONE_FOUND, TOO_LITTLE, FACT)


@pytest.mark.parametrize(
    ("case", "headline", "verdict"),
    [
        ("a gap is shown", "Belief in “calm” differs by gender", DIFFERENCE),
        ("no gap is shown", "No difference by gender was found", NONE_FOUND),
        ("a gap within another label is shown", "Belief in “calm” differs by gender", DIFFERENCE),
        ("a gap is another label's doing", "No difference by gender was found", NONE_FOUND),
        ("very few people", "No difference by gender was found", TOO_LITTLE),
        ("rises with a number", "Belief in “calm” rises with age", DIFFERENCE),
        ("falls with a number", "Belief in “calm” falls with age", DIFFERENCE),
        ("no slope is shown", "No difference by age was found", NONE_FOUND),
        ("an intersection below", "Belief in “calm” differs for woman × 10 beyond its two attributes", DIFFERENCE),
        ("a gap in the correct prompt", "Belief in the correct prompt differs by gender", DIFFERENCE),
    ],
)
def test_headlines_follow_the_sign_and_the_rule(case: str, headline: str, verdict: str):
    assert [(each[0], each[2]) for each in told(case)] == [(headline, verdict)]


def test_sentences_say_both_groups_and_the_interval_that_decided():
    ((_, sentence, _),) = told("a gap the other way round is shown")
    assert sentence == (
        "Mean belief in “calm” among the prompts of level “mood” is 55 % for men and 40 % for women: 15.0 points apart "
        "(95 % interval 10.0–20.0 points, p 0.002, n = 80)."
    )
    ((_, sentence, _),) = told("a gap within another label is shown")
    assert "for men; within branch they are 8.0 points apart (95 % interval 3.0–13.0 points, p 0.010," in sentence
    ((_, sentence, _),) = told("an intersection below")
    assert "8.0 points below what its two attributes add up to (gender × tone;" in sentence


def test_where_none_is_found_it_is_said_how_large_one_could_be():
    ((_, sentence, _),) = told("no gap is shown")
    assert sentence.endswith("Gaps of up to 7.0 points could have been missed.")
    ((_, sentence, _),) = told("no gap is shown, and most are shown to be small")
    assert sentence.endswith("Shown to lie within 2 points: 1 of 2 comparisons.")
    ((_, sentence, _),) = told("very few people")
    assert sentence.startswith("The data are too few to say whether a prompt differs by gender.")


def test_a_label_that_goes_together_with_the_groups_is_named_with_what_to_do():
    (_, sentence, _), (headline, shares, verdict) = told("another label goes together with the groups")
    assert (headline, verdict) == ("In this data gender and branch go together", FACT)
    assert shares == "80 % of women and 20 % of men are actor; compare within it: --within branch."
    assert sentence.endswith(f"But gender and branch go together in this data: {shares}")


def test_only_the_widest_four_are_said():
    assert [each[0] for each in told("nine gaps, of which four are said")] == [
        f"Belief in “mood {k}” differs by gender" for k in (8, 7, 6, 5)
    ]
    assert told("one group only") == []
