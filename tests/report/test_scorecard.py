"""The scorecard: numbers agree with their sentences, verdicts with their intervals, and scales compare."""

from __future__ import annotations

import polars as pl
import pytest

from beholder._run import Run
from beholder.report.page import caveats, people_shown
from beholder.report.scorecard import Line, merged, scale_of, scorecard

RUNS = ("apa_run", "two_models", "glasshouse_run", "custom_run", "gras_run")


def lines_of(run: Run) -> list[Line]:
    return [line for card in scorecard(run.report, [""] * len(run.report.sections)) for line in card.lines]


@pytest.mark.parametrize("name", RUNS)
def test_no_value_lies_outside_its_own_interval(name: str, request: pytest.FixtureRequest) -> None:
    marks = [line.mark for line in lines_of(request.getfixturevalue(name)) if line.mark]
    assert marks
    assert all(0 <= mark.low <= mark.at <= mark.high <= 100 for mark in marks)


@pytest.mark.parametrize("name", RUNS)
def test_a_difference_that_is_shown_has_an_interval_without_the_value_of_no_effect(
    name: str, request: pytest.FixtureRequest
) -> None:
    for line in lines_of(request.getfixturevalue(name)):
        row = line.finding.rows[0] if line.finding.rows else {}
        if line.finding.shown and line.mark and row.get("landmark") in (0, 1):
            assert not row["low"] <= row["landmark"] <= row["high"], line.finding.headline


def test_a_difference_is_read_in_the_direction_of_its_sentence(apa_run: Run) -> None:
    """“Men … more often than women” stood beside −21.7 points."""
    turned = pl.col("metric") == "apa.occupation_gap"
    number = [pl.when(turned).then(-pl.col(to)).otherwise(of).alias(of) for of, to in NEGATED]
    ours, theirs = (
        {line.question: line for line in lines_of(run)}
        for run in (apa_run, Run(apa_run.results.with_columns(number), apa_run.record))
    )
    for question, line in ours.items():
        if line.finding.metric == "apa.occupation_gap" and line.finding.shown:
            assert not line.number.startswith("−")
            assert theirs[question].number == line.number


NEGATED = (("value", "value"), ("low", "high"), ("high", "low"))


def test_answers_of_two_models_to_a_question_follow_each_other(two_models: Run) -> None:
    cards = scorecard(two_models.report, [str(k) for k in range(len(two_models.report.sections))])
    assert len(cards) == 2 * len(merged(cards))
    for card in merged(cards):
        asked = [line.question for line in card.lines]
        assert asked == sorted(asked, key=asked.index)
        assert len({(line.question, line.finding.model) for line in card.lines}) == len(asked)


def test_n_says_what_it_counts(gras_run: Run) -> None:
    counts = {line.finding.metric: line.counts for line in lines_of(gras_run)}
    assert counts["gras.bias_score"] == "traits"
    assert counts["gras.largest_gap"] == "images"


@pytest.mark.parametrize(("unit", "whole"), [("probability", 1.0), ("share", 1.0), ("per cent", 100.0)])
def test_a_share_stands_on_a_scale_from_nothing_to_the_whole(unit: str, whole: float) -> None:
    """It ran from the interval's own low to its own high, which every interval fills."""
    row = {"unit": unit, "landmark": None, "value": 0.05 * whole, "low": 0.03 * whole, "high": 0.07 * whole}
    assert scale_of([row])[2:4] == (0.0, whole)
    apart = {**row, "landmark": 0, "low": -0.07 * whole}
    assert scale_of([apart])[2] < 0


def test_a_variant_of_the_published_measure_is_told_on_the_first_screen(apa_run: Run) -> None:
    assert not any("variant" in caveat for caveat in caveats(apa_run.report))
    other = Run(apa_run.results.with_columns(variant=pl.lit("eight options")), apa_run.record)
    assert "APA: a variant of the published measure" in caveats(other.report)


def test_a_part_of_the_data_has_no_published_ticks(apa_run: Run) -> None:
    assert any(line.published for line in lines_of(apa_run))
    for entry in apa_run.record.datasets:
        entry.update(images=300, of=845)
    part = Run(apa_run.results, apa_run.record)
    assert not any(line.published for line in lines_of(part))
    assert any(caveat.startswith("Partial data: 300 of 845") for caveat in caveats(part.report))


def test_only_columns_that_tell_people_apart_stand_on_the_first_screen(apa_run: Run) -> None:
    groups = {
        "gender": {"man": 3, "woman": 2},
        "age_band": {"20-29": 5},
        "age": {"25.0": 5},
        "split": {"val": 5},
        "released_balance": {"true": 2, "false": 3},
    }
    apa_run.record.datasets[:] = [{"name": "faces", "groups": groups}]
    (shown,) = people_shown(Run(apa_run.results, apa_run.record).report)
    assert list(shown.groups) == ["gender", "age band"]
