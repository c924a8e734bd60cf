"""Rules are decided with the numbers' uncertainty; what was not measured never passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import UsageError
from beholder.core.results import Row, results_table
from beholder.gate import Rule, decided, judged, read_rules
from beholder.run import Run

ROWS = [
    Row("apa.bias_ratio", 0.9, 50, "ratio", subset="actors", low=0.85, high=0.95),
    Row("apa.bias_ratio", 0.5, 50, "ratio", subset="politicians", low=0.4, high=0.6),
    Row("apa.bias_ratio", 0.75, 9, "ratio", subset="athletes", low=0.5, high=1.1),
    Row("apa.bias_ratio", None, 0, "ratio", subset="judges", note="no women"),
    Row("apa.association", 0.7, 4, "probability", subset="senate"),
]


def results() -> pl.DataFrame:
    return results_table(ROWS, benchmark="apa", model="[b]m[/b]", dataset="apa")


@pytest.mark.parametrize(
    ("low", "value", "high", "least", "most", "verdict"),
    [
        (0.85, 0.9, 0.95, 0.8, None, "holds"),
        (0.85, 0.9, 0.95, 0.85, 0.95, "holds"),
        (0.85, 0.9, 0.95, 0.96, None, "fails"),
        (0.85, 0.9, 0.95, None, 0.84, "fails"),
        (0.85, 0.9, 0.95, 0.9, None, "open"),
        (0.85, 0.9, 0.95, None, 0.9, "open"),
        (None, 0.9, None, 0.8, None, "open"),
        (None, 0.9, None, 0.95, None, "fails"),
        (None, None, None, 0.0, None, "fails"),
    ],
)
def test_a_number_is_decided_by_its_whole_interval(
    low: Any, value: Any, high: Any, least: Any, most: Any, verdict: str
) -> None:
    row = {"value": value, "low": low, "high": high, "note": None}
    assert decided(Rule("m", {}, at_least=least, at_most=most), row)[0] == verdict


def test_a_rule_is_held_against_every_number_that_it_is_about() -> None:
    found = judged(results(), [Rule("apa.bias_ratio", {}, at_least=0.8)])
    verdicts = {one.row["subset"]: one.verdict for one in found if one.row}
    assert verdicts == {"actors": "holds", "politicians": "fails", "athletes": "open", "judges": "fails"}
    assert "no women" in next(one.reason for one in found if one.row and one.row["subset"] == "judges")


def test_an_open_number_stops_only_where_the_bound_must_be_shown() -> None:
    where = {"subset": "athletes"}
    assert not judged(results(), [Rule("apa.bias_ratio", where, at_least=0.8)])[0].stops
    assert judged(results(), [Rule("apa.bias_ratio", where, at_least=0.8, shown=True)])[0].stops


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("apa.biased", {}, at_least=0), "this run has apa.bias_ratio, apa.association"),
        (Rule("apa.bias_ratio", {"subset": "actor"}, at_least=0), "no subset is called 'actor'; there is actors"),
        (Rule("apa.bias_ratio", {"subset": "actors", "model": "[b]m[/b]", "dataset": "x"}, at_least=0), "'x'"),
    ],
)
def test_a_rule_that_finds_nothing_fails_and_says_what_there_is(rule: Rule, said: str) -> None:
    (found,) = judged(results(), [rule])
    assert found.stops
    assert said in found.reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rules"),
        ("rule = 3", "has no rules"),
        ("[[rule]]\nmetric = 'a'", "at_least or at_most"),
        ("[[rule]]\nmetric = 'a'\nat_least = true", "at_least or at_most"),
        ("[[rule]]\nmetric = 'a'\nat_last = 1", "Did you mean 'at_least'"),
        ("[[rule]]\nmetric = 'a'\nat_least = 1\nshown = 'yes'", "true or false"),
        ("[[rule]\n", "not TOML"),
    ],
)
def test_wrong_rules_are_told(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_rules(path)
    with pytest.raises(UsageError, match="no file of rules"):
        read_rules(tmp_path / "none.toml")


def test_the_command_exits_as_the_rules_say(tmp_path: Path) -> None:
    run = Run()
    run.add(results())
    run.save(tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text("[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = 'actors'\nat_least = 0.8\n")
    told = CliRunner().invoke(app, ["gate", str(rules), str(tmp_path)])
    assert told.exit_code == 0
    assert "Passes" in told.output
    rules.write_text("[[rule]]\nmetric = 'apa.bias_ratio'\nat_least = 0.8\n")
    told = CliRunner().invoke(app, ["gate", str(rules), str(tmp_path), "--json"])
    assert told.exit_code == 1
    found = json.loads(told.output)
    assert not found["passes"]
    assert [one["verdict"] for one in found["verdicts"]] == ["holds", "fails", "open", "fails"]
