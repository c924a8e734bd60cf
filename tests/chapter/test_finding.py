"""A finding names its model, its verdict and the rows that bear it out."""

from __future__ import annotations

import pytest

from beholder.chapter.finding import Finding, finding, valued
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE, VERDICTS
from beholder.core.results import KEY, Row, results_table

ROWS = [
    Row("s.gap", 0.2, 9, "probability", group="a", against="b", low=0.1, high=0.3, p_value=0.01),
    Row("s.gap", None, 0, "probability", group="c", against="b", note="no image"),
    Row("s.mean", 0.5, 9, "probability", group="a"),
]
PART = results_table(ROWS, study="s", model="m", dataset="d")
GAP, _, MEAN = PART.to_dicts()


def test_the_names_of_findings_json_are_our_api():
    entry = finding(GAP, "gaps", "A differs", "A differs from B.", shown=True, more=[MEAN]).as_dict()
    assert list(entry) == (
        "id study model dataset question verdict headline sentence metric value low high p_value n rows".split()
    )
    assert (entry["study"], entry["model"], entry["dataset"]) == ("s", "m", "d")
    assert (entry["metric"], entry["value"], entry["low"], entry["p_value"], entry["n"]) == ("s.gap", 0.2, 0.1, 0.01, 9)
    assert [list(row) for row in entry["rows"]] == [list(KEY)] * 2
    assert (entry["rows"][0]["group"], entry["rows"][0]["against"]) == ("a", "b")


def test_a_finding_without_rows_has_no_number():
    entry = Finding("s", "d", "m", "gaps", "h", "s", NONE_FOUND, 0.0).as_dict()
    assert (entry["metric"], entry["value"], entry["n"], entry["rows"]) == (None, None, None, [])
    assert Finding("s", "d", "m", "gaps", "h", "s", NONE_FOUND, 0.0).metric == ""


def test_the_four_verdicts_are_fixed():
    assert VERDICTS == ("difference found", "none found", "too little data", "fact", "not measured")


@pytest.mark.parametrize(
    ("options", "verdict"), [({}, NONE_FOUND), ({"shown": True}, DIFFERENCE), ({"verdict": TOO_LITTLE}, TOO_LITTLE)]
)
def test_a_difference_is_shown_only_where_it_is_said_to_be(options: dict[str, object], verdict: str):
    made = finding(GAP, "gaps", "h", "s", **options)  # type: ignore[arg-type]
    assert made.verdict == verdict
    assert made.shown == (verdict == DIFFERENCE)


def test_rows_without_a_value_are_no_evidence():
    assert [row["group"] for row in valued(PART, "gap")] == ["a"]
