"""Every sentence about captions at both signs, at zero, with one group, with few people and with very many."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import polars as pl
import pytest

from beholder.comparison.verdicts import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.studies.exposure.findings import exposure_findings

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
        assert verdict in (DIFFERENCE, NONE_FOUND, TOO_LITTLE)


@pytest.mark.parametrize(
    ("case", "headline", "verdict"),
    [
        ("women are named less; branches differ both ways", "Women are named less often than men", DIFFERENCE),
        ("men are named less; no branch is shown", "Men are named less often than women", DIFFERENCE),
        (
            "alike over all branches, one branch differs",
            "No difference between women and men is shown over all branches",
            NONE_FOUND,
        ),
        (
            "the interval leaves out 1, and p does not",
            "No difference between women and men is shown over all branches",
            NONE_FOUND,
        ),
        ("one branch of very few", "No difference between women and men is shown", TOO_LITTLE),
        ("nobody is named", "No caption names anyone", NONE_FOUND),
        ("known and named: worse", "The model knows people worse whom captions name more often", DIFFERENCE),
        ("known and named: no link", "No link is shown between captions and known names", NONE_FOUND),
        ("gap in known names: none", "No gender gap in known names is shown", NONE_FOUND),
        ("gap in known names: women less", "The model knows women less well by name than men", DIFFERENCE),
        ("gap in known names: women more", "The model knows women better by name than men", DIFFERENCE),
    ],
)
def test_headlines_follow_the_sign_and_the_rule(case: str, headline: str, verdict: str):
    assert (headline, verdict) in [(each[0], each[2]) for each in told(case)]


def test_branches_are_named_with_their_direction():
    ((_, sentence, _),) = told("women are named less; branches differ both ways")
    assert sentence == (
        "Captions name a typical woman 0.80 times as often as a typical man of her branch (geometric means of 1 + "
        "captions; 95 % interval 0.70–0.90, p 0.001, n = 400). Over all people at once the ratio is 1.15 (95 % "
        "interval 1.03–1.26); that ratio also follows which branches are named often. Branch by branch, corrected for "
        "three branches, women are shown to be named less often among senators and women are shown to be named more "
        "often among mayors."
    )
    ((_, sentence, _),) = told("the p-value is the smallest that the draws give")
    assert "p ≤ 0.002" in sentence
