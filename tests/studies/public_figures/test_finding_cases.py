"""Every template of a finding is rendered at both signs, at none, for one group, for few people and for very many."""

from __future__ import annotations

import re

import polars as pl
import pytest
from studies.public_figures.finding_cases import cases

from beholder.comparison.family import DIFFERENCE, VERDICTS
from beholder.studies.public_figures.findings import public_figure_findings

CASES = dict(cases())
QUIET = ("alike", "not", "no ", "too few", "one gender", "less than", "without exchanged", "at chance")


@pytest.mark.parametrize("description", CASES)
@pytest.mark.parametrize("dataset", ["apa", "glasshouse"])
def test_a_finding_is_a_sentence_without_gaps(description: str, dataset: str):
    for finding in public_figure_findings(CASES[description].with_columns(dataset=pl.lit(dataset))):
        assert finding.verdict in VERDICTS
        assert finding.rows
        assert not re.search(r"\bnan\b|\bNone\b|\binf\b|  |—|\{|= [<≤]|\.\.", f"{finding.headline} {finding.sentence}")
        assert finding.sentence.endswith(".")
        assert finding.headline[0].isupper()
        assert not finding.headline.endswith(".")


@pytest.mark.parametrize("description", [each for each in CASES if each.startswith(QUIET) or " not " in each])
def test_nothing_is_claimed_where_nothing_is_shown(description: str):
    kinds = {finding.kind: finding.verdict for finding in public_figure_findings(CASES[description])}
    assert DIFFERENCE not in kinds.values(), kinds


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("women get less", "Women in politics get a lower mean probability of “politician” than men"),
        ("men get less", "Men in politics get a lower mean probability of “politician” than women"),
        ("opposite branches", "Women among House members get a lower mean probability of “politician” than men"),
        ("opposite branches", "Men among senators get a lower mean probability of “politician” than women"),
        ("men get a wrong answer more", "Men in politics get a higher mean probability of “salesperson”, a wrong"),
        ("within branches the other way round than in the pool", "Men in politics get a higher mean probability of"),
        ("in one branch only", "Women among senators get a higher mean probability of “teacher”"),
        ("sports are recognised", "more belief than the answers of other people: specialty of athletes"),
        ("larger models know fewer names", "less belief on the right image"),
        ("b goes away from 1 with training pairs", "more training pairs go with a bias ratio farther from 1"),
    ],
)
def test_direction_words_follow_the_sign(description: str, words: str):
    assert any(words in finding.headline for finding in public_figure_findings(CASES[description]))


def test_shares_that_point_the_other_way_are_not_put_beside_a_difference():
    (finding,) = public_figure_findings(CASES["within branches the other way round than in the pool"])
    assert "against" not in finding.headline
