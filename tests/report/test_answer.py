"""The page's title: the strongest finding, or what there is to say where none may be it."""

from __future__ import annotations

import runpy
from pathlib import Path

import polars as pl
import pytest

from beholder.chapter.finding import CHECK, Contrast, Finding, Side
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, TOO_LITTLE, stands_out
from beholder.core.record import Record
from beholder.report.answer import answers, headline, strongest, trust
from beholder.report.report import PLAIN, Report, Section
from beholder.studies import STUDIES
from beholder.studies.worlds import MISSING


def finding(
    name: str, p_value: float | None, values: tuple[float, float] = (0.2, 0.6), verdict: str = DIFFERENCE, **other: str
) -> Finding:
    whose = {"study": "apa", "dataset": "d", "model": other.get("model", "clip")}
    row = {
        **whose,
        "metric": name,
        "verdict": verdict,
        "p_value": p_value,
        "low": 0.1,
        "high": 0.3,
        "unit": "probability",
    }
    sides = Side("woman", values[0], 30), Side("man", values[1], 30)
    made = Finding("apa", "d", whose["model"], name, f"{name} differs", "Why.", verdict, 0.0, (row,), id=name)
    return made._replace(answer=f"The model says {name}.", contrasts=(Contrast(name, row, sides),), card=name)


def report(*findings: Finding, noise: tuple[Finding, ...] = ()) -> Report:
    section = Section(STUDIES["apa"], PLAIN, "d", pl.DataFrame(), list(findings), [], None, None, [], list(noise))
    return Report(pl.DataFrame(), Record(), pl.DataFrame(), [section])


def test_the_most_unequal_numbers_are_the_title() -> None:
    title = headline(report(finding("a", 0.001, (0.5, 0.6)), finding("b", 0.002, (0.1, 0.9))), "")
    assert title.text == "The model says b."
    assert "two of two questions" in title.beneath


def test_a_title_stands_out_among_all_families_of_the_page() -> None:
    findings = [finding("a", 0.03), *(finding(name, 0.9, verdict=NONE_FOUND) for name in "bcd")]
    assert strongest(findings[:1]) is findings[0]
    assert strongest(findings) is None
    assert "none beyond what 4 questions" in headline(report(*findings), "").text
    assert stands_out(0.0125, 4)
    assert not stands_out(0.013, 4)


def test_a_difference_of_no_size_and_one_that_another_study_disputes_are_no_title() -> None:
    slight = finding("a", 0.001, (0.99, 1.0))
    disputed = finding("b", 0.001)
    other = {**disputed.rows[0], "study": "pfi"}
    dispute = finding("c", 0.001)._replace(rows=(disputed.rows[0], other))
    assert strongest([slight]) is None
    assert strongest([disputed, dispute]) is None
    assert answers(report(disputed._replace(card="Jobs"), dispute._replace(card="Jobs")))[0].lead.kind == "c"


def test_there_is_a_title_for_no_difference_for_too_little_data_and_for_none_at_all() -> None:
    none = finding("a", 0.6, verdict=NONE_FOUND)
    assert headline(report(none), "").text == "No difference between groups was found"
    assert "up to 30 %" in headline(report(none), "").beneath
    assert headline(report(finding("a", None, verdict=TOO_LITTLE)), "").text.startswith("Too little data")
    assert headline(report(), "How clip sees people").text == "How clip sees people"


def test_among_several_models_the_title_names_its_own() -> None:
    title = headline(report(finding("a", 0.001), finding("a", 0.9, verdict=NONE_FOUND, model="org/siglip")), "")
    assert title.text == "clip says a."
    (card,) = answers(report(finding("a", 0.001), finding("a", 0.9, verdict=NONE_FOUND, model="org/siglip")))
    assert card.about == "2 models, difference found in 1"
    assert [bar.label for bar in card.bars] == ["clip: a", "org/siglip: a"]
    shown = [finding("a", 0.001, values) for values in ((0.1, 0.9), (0.1, 0.8), (0.1, 0.7))]
    first, *rest = answers(report(*shown, finding("a", 0.001, (0.4, 0.5), model="siglip")))[0].bars
    assert [first.label, rest[0].label] == ["clip: a", "siglip: a"], "each model's strongest comes first"


def test_random_scores_are_no_title_beside_a_model_and_checks_of_the_audit_no_card() -> None:
    check = finding("planted", None, verdict=FACT)._replace(role=CHECK, card="", headline="Finds 4 of 4")
    made = report(finding("a", 0.9, verdict=NONE_FOUND), finding("a", 0.001, model="null"), check)
    assert headline(made, "").finding is None
    assert [card.subject for card in answers(made)] == ["a"]
    signs = {each.headline: each.sign for each in trust(report(check, noise=(finding("a", 0.001),)), ["Drawn"])}
    assert signs == {"Known truth": "✓", "A false alarm": "△", "Bear in mind": "△"}


def test_a_dot_stands_where_its_number_is() -> None:
    (card,) = answers(report(finding("a", 0.001, (0.25, 0.75))))
    assert [(dot.at, dot.text, dot.mark) for dot in card.bars[0].dots] == [(25.0, "25", "woman"), (75.0, "75", "man")]
    assert card.size == "0.33 times, below four fifths"


@pytest.mark.slow
def test_groups_keep_their_marks_whichever_is_higher() -> None:
    east, white = Side("East Asian", 0.2, 40), Side("White", 0.1, 54)
    for sides in ((east, white), (white, east), (east._replace(value=0.05), white)):
        made = finding("nurse", 0.001)
        (card,) = answers(report(made._replace(contrasts=(Contrast("nurse", made.rows[0], sides),))))
        marks = {dot.group: dot.mark for dot in card.bars[0].dots}
        assert marks == {"East Asian": "former", "White": "latter"}


def test_a_model_of_noise_gets_no_finding_as_its_title() -> None:
    """Two worlds; LOG.md has the count of many (tools/title_false_alarms.py)."""
    noise_title = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "title_false_alarms.py"))["noise_title"]
    assert [noise_title(number) for number in range(2)] == [None, None]
    assert noise_title(1, world=MISSING) is None
