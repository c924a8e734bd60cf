"""Every sentence at both signs, at zero, of one group, of tiny and of huge n."""

from __future__ import annotations

import re

import polars as pl
import pytest
from studies.perception.finding_cases import SIZES, cases

from beholder.chapter.finding import Finding
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.report.report import moves
from beholder.studies.perception.chapter import perception_tables
from beholder.studies.perception.findings import FINDERS, perception_findings

CASES = dict(cases())


@pytest.mark.parametrize("name", CASES)
def test_every_sentence_is_whole(name: str):
    for finding in perception_findings(CASES[name]):
        for text in (finding.headline, finding.sentence):
            assert not re.search(r"nan|None(?! of)|inf\b|  |—|−0\.00|\+−|\+0\.00\b(?!\d)|, \)|\(\)| \.", text), text
            assert not re.search(r"\b1 (identities|differences|departures|images)\b", text), text
        assert finding.sentence.endswith(".")
        assert not finding.headline.endswith(".")


def only(name: str, kind: str) -> Finding:
    return next(finding for finding in perception_findings(CASES[name]) if finding.kind == kind)


KINDS = {
    "effect": "effect",
    "interaction": "interaction",
    "curves of groups": "stand_out",
    "gap within the other labels": "gap",
    "gap of two groups": "gap",
    "default": "markedness",
    "ranking": "ranking",
}


@pytest.mark.parametrize("template", KINDS)
@pytest.mark.parametrize("size", [size.name for size in SIZES])
def test_a_verdict_is_that_of_the_numbers(template: str, size: str):
    verdict = only(f"{template}, {size}", KINDS[template]).verdict
    expected = {"zero": NONE_FOUND, "tiny n": TOO_LITTLE}.get(size, DIFFERENCE)
    assert verdict == expected


def test_signs_turn_with_the_numbers():
    for template, up, down in (
        ("gap of two groups", "Male above Female", "Female above Male"),
        ("default", "treats Male as the default more than Female", "treats Female as the default more than Male"),
        ("ranking", "More images labelled White than Black", "More images labelled Black than White"),
    ):
        kind = KINDS[template]
        assert up in only(f"{template}, positive", kind).headline
        assert down in only(f"{template}, negative", kind).headline
    fall = only("interaction, negative", "interaction").sentence
    assert "by −6.50 for MST 2 and by −5.00 for MST 9" in fall
    assert "for MST 2 less that for MST 9 is −1.50" in fall


@pytest.mark.parametrize("name", CASES)
def test_the_first_row_says_what_the_headline_says(name: str):
    """The scorecard prints that row's value beside the headline: the named higher group less the lower one."""
    for finding in perception_findings(CASES[name]):
        row, *_ = finding.rows
        named = re.search(r"(?:: (.+) above (.+)|treats (.+) as the default more than (.+))$", finding.headline)
        if named:
            higher, lower = filter(None, named.groups())
            assert (row["group"], row["against"]) == (higher, lower)
            assert row["value"] > 0
            assert row["low"] <= row["value"] <= row["high"]
        if before := re.match(r"More images labelled (.+) than ", finding.headline):
            assert row["group"] == before[1]
            assert row["value"] > row["landmark"]


def test_findings_point_to_rows_as_they_are_stored():
    table = CASES["gap of two groups, negative"]
    entry = only("gap of two groups, negative", "gap").as_dict()
    assert (entry["value"], entry["rows"][0]["group"], entry["rows"][0]["against"]) == (0.015, "Male", "Female")
    for place in entry["rows"]:
        assert table.filter(*(pl.col(key).eq_missing(value) for key, value in place.items())).height


@pytest.mark.slow
def test_every_finder_has_a_case():
    kinds = {finding.kind for table in CASES.values() for finding in perception_findings(table)}
    assert kinds == {*KINDS.values(), "variant", "neutral", "order", "mirror"}
    assert len(FINDERS) == len(kinds)  # two of them tell of a variant, and one of order and groups
    verdicts = {finding.verdict for table in CASES.values() for finding in perception_findings(table)}
    assert verdicts == {DIFFERENCE, NONE_FOUND, TOO_LITTLE, FACT, NOT_MEASURED}


def test_a_p_value_that_is_a_bound_is_printed_as_one():
    table = CASES["effect, positive"].with_columns(p_value=pl.lit(0.003), p_at_most=pl.lit(value=True))
    cells = [cell.text for each in perception_tables(table) for row in each.rows for cell in row]
    assert "≤ 0.003" in cells


def test_small_changes_move_a_turned_number_the_same_way():
    """The stored value goes from −0.015 to −0.012; read from the other group, from 0.015 to 0.012."""
    table = CASES["gap of two groups, negative"]
    changed = table.with_columns(value=pl.lit(-0.012), change=pl.lit("a pixel"))
    (move,) = moves([only("gap of two groups, negative", "gap")], changed)
    assert (move.low, move.high) == pytest.approx((0.012, 0.015))


@pytest.mark.parametrize(
    ("case", "verdict", "headline"),
    [
        ("positive", DIFFERENCE, "It orders images as people do on 1 of 1 trait"),
        ("negative", DIFFERENCE, "It orders images opposite to people's ratings on 1 of 1 trait"),
        ("zero", NONE_FOUND, "It is not found to order images as people do on any trait"),
        ("tiny n", TOO_LITTLE, "It is not found to order images as people do on any trait"),
    ],
)
def test_what_is_said_of_peoples_ratings_agrees_with_the_verdict(case: str, verdict: str, headline: str):
    finding = only(f"ratings, {case}", "order")
    assert (finding.verdict, finding.headline) == (verdict, headline)
