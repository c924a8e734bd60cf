"""First choices: how many women and men are called what, and the sentence that says so."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.comparison.family import DIFFERENCE
from beholder.core.results import Row, results_table
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.measures import first_choices
from tests.studies.public_figures.test_ratios import PLAYERS, TEACHERS, WORDS, branch, rows_of


def test_first_choices_are_a_plain_count_of_the_highest_score() -> None:
    cells = np.random.default_rng(4).normal(size=(20, 4))
    rows = rows_of({"a": ("a",)}, branch("a", cells, 8, TEACHERS))
    assert ("first_choice", "a", "woman") in rows
    counted = {
        "woman": Counter(WORDS[int(np.argmax(row))] for row in cells[:8]),
        "man": Counter(WORDS[int(np.argmax(row))] for row in cells[8:]),
    }
    for row in _choices(cells):
        assert row.value == pytest.approx(counted[row.group or ""][row.concept or ""] / row.n)
        assert row.n == (8 if row.group == "woman" else 12)


def test_nobody_is_counted_where_several_words_share_the_first_place() -> None:
    assert first_choices(np.array([[0.5, 0.5], [0.1, 0.9]])).tolist() == [-1, 1]


def test_words_that_mean_the_same_are_counted_together() -> None:
    cells = np.zeros((20, 4))
    cells[:8, :2] = np.eye(2)[np.arange(8) % 2]  # four women are called actor and four actress
    cells[8:, 0] = 1.0
    made = results_table(_choices(cells, PLAYERS), study="t", model="m", dataset="d")
    from beholder.studies.public_figures.findings import called

    assert called(made, "a") == {
        "woman": {"actor or actress": 8, "teacher": 0, "chef": 0},
        "man": {"actor or actress": 12, "teacher": 0, "chef": 0},
    }


@pytest.mark.parametrize(
    ("women", "men", "says"),
    [
        ({"nurse": 30}, {"doctor": 30}, "The model calls all 30 women doctors “nurse”, and all 30 men “doctor”."),
        ({"nurse": 16, "doctor": 14}, {"doctor": 30}, "calls 16 of 30 women doctors “nurse”, and all 30 men “doctor”."),
        ({"doctor": 20, "nurse": 10}, {"doctor": 28, "nurse": 2}, "calls 20 of 30 women doctors “doctor”, and 28 of"),
        ({"doctor": 30}, {"doctor": 30}, "belief in “doctor” is 40 % for women doctors, and 80 % for men."),
        ({}, {}, "belief in “doctor” is 40 % for women doctors, and 80 % for men."),
    ],
)
def test_the_answer_counts_first_choices_where_they_say_the_same_as_belief(
    women: dict[str, int], men: dict[str, int], says: str
) -> None:
    finding = _finding(women, men)
    assert says in finding.answer
    assert [side.value for side in finding.contrasts[0].sides or ()] == [0.4, 0.8]
    assert finding.contrasts[0].size == "0.50 times, below four fifths"
    told = finding.as_dict()["contrasts"][0]["groups"]
    assert [group.get("first_choices") for group in told] == [max(c.values(), default=None) for c in (women, men)]


def _choices(cells: np.ndarray, rules: dict[str, str] = TEACHERS) -> list[Row]:
    from beholder.studies.public_figures.measures import ratio_rows
    from beholder.studies.study import MeasureOptions

    scored = {"a": branch("a", cells, 8, rules)}
    rows = ratio_rows("t", {"a": ("a",)}, scored, MeasureOptions(draws=100, shuffles=99))
    return [row for row in rows if row.metric == "t.first_choice"]


def _finding(women: dict[str, int], men: dict[str, int]) -> Finding:
    ratio = Row("apa.bias_ratio", 0.5, 60, "ratio", subset="doctors", low=0.4, high=0.6, p_value=0.001, landmark=1.0)
    belief = Row("apa.occupation_probability", 0.4, 30, "probability", subset="doctors", concept="doctor")
    rows = [ratio._replace(verdict=DIFFERENCE), belief._replace(group="woman"), belief._replace(group="man", value=0.8)]
    for group, counts in (("woman", women), ("man", men)):
        for word, times in counts.items():
            first = Row("apa.first_choice", times / 30, 30, "probability", subset="doctors", group=group, concept=word)
            rows.append(first)
    table: pl.DataFrame = results_table(rows, study="apa", model="m", dataset="d")
    return next(each for each in public_figure_findings(table) if each.kind == "bias")
