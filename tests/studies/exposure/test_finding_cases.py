"""Every sentence about captions at both signs, at zero, with one group, with few people and with very many."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, TOO_LITTLE
from beholder.studies.exposure.chapter import exposure_findings

spec = importlib.util.spec_from_file_location("cases", Path(__file__).with_name("finding_cases.py"))
assert spec is not None
assert spec.loader is not None
finding_cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(finding_cases)
CASES: dict[str, pl.DataFrame] = dict(finding_cases.cases())


def told(case: str) -> list[tuple[str, str, str]]:
    return [(each.headline, each.sentence, each.verdict) for each in exposure_findings(CASES[case])]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_said_in_whole_sentences(case: str):
    findings = told(case)
    assert findings
    for headline, sentence, verdict in findings:
        assert sentence.endswith(".")
        assert not re.search(r"\b(nan|inf|None)\b|—", headline + sentence)
        assert verdict in (DIFFERENCE, NONE_FOUND, TOO_LITTLE, FACT)


@pytest.mark.parametrize(
    ("case", "headline", "verdict"),
    [
        ("women are named less; branches differ both ways", "Women are named less often than men", DIFFERENCE),
        ("men are named less; no branch is shown", "Men are named less often than women", DIFFERENCE),
        (
            "alike over all branches, one branch differs",
            "Women and men are named unequally often in some branches",
            DIFFERENCE,
        ),
        ("none found in any branch", "No difference between how often women and men are named was found", NONE_FOUND),
        ("one branch of very few", "Too few people to compare how often women and men are named", TOO_LITTLE),
        ("nobody is named", "No caption names anyone", FACT),
        ("everybody is named", "Actresses and actors", FACT),
        ("known and named: worse", "The model knows people worse whom captions name more often", DIFFERENCE),
        ("known and named: no link", "No link between captions and known names was found", NONE_FOUND),
        ("known and named: one branch", "In some branches captions and known names go together", DIFFERENCE),
        ("gap in known names: none", "No difference in how well women and men are known by name was found", NONE_FOUND),
        ("gap in known names: women less", "The right name stands out more for men than for women", DIFFERENCE),
        ("gap in known names: women more", "The right name stands out more for women than for men", DIFFERENCE),
    ],
)
def test_headlines_follow_the_sign_and_the_rule(case: str, headline: str, verdict: str):
    assert (headline, verdict) in [(each[0], each[2]) for each in told(case)]


def test_branches_are_named_with_their_direction():
    ((_, sentence, _),) = told("women are named less; branches differ both ways")
    assert sentence == (
        "Captions name a typical woman 0.80 times as often as a typical man of her branch (geometric means of 1 + "
        "captions; 95 % interval 0.70 to 0.90, p 0.001, n = 400). Over all people at once it is 1.15 times, which "
        "also follows which branches are named often. Branch by branch, women are named less often among senators and "
        "more often among mayors."
    )
    ((_, sentence, _),) = told("the p-value is the smallest that the draws give")
    assert "p ≤ 0.002" in sentence


def test_what_could_still_be_is_said_where_nothing_was_found():
    ((_, sentence, _),) = told("none found in any branch")
    assert "It could still be as low as 0.80 or as high as 1.10." in sentence


def test_what_is_known_is_said_as_it_was_measured():
    ((_, sentence, _),) = told("gap in known names: one branch")
    assert sentence == (
        "Belief in the right name, over that in the names of other people with the same labels, is 1.00 times as large "
        "for women as for men of their branch (geometric means; 95 % interval 0.95 to 1.05, p 0.70, n = 400), and 1.10 "
        "times at equal exposure (95 % interval 1.05 to 1.15, p 0.010, n = 400). It could still be as low as 0.95 or "
        "as high as 1.05. Branch by branch, for women it is larger among senators."
    )
