"""Run folders of Beholder 0.1 are read: what stood in text has its column, and the page says so."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from beholder.core.results import SCHEMA
from beholder.report.page import render
from beholder.run import load_run

NEW = ("against", "landmark", "expected", "verdict", "delta", "variant")
ROWS = [
    {"benchmark": "gras", "metric": "gras.group_mean", "group": "60 and over", "concept": "kind"},
    {"benchmark": "gras", "metric": "gras.group_mean", "group": "20-29", "concept": "kind"},
    {"benchmark": "gras", "metric": "gras.largest_gap", "group": "60 and over over 20-29", "concept": "kind"},
    {"benchmark": "gras", "metric": "gras.biased_traits", "note": "any wording; 21.4 expected without any bias"},
    {"benchmark": "gras", "metric": "gras.bias_score", "note": "a variant, not the published measure"},
    {"benchmark": "gras", "metric": "gras.equivalence", "note": "alike; δ = 1e-05; p: corrected"},
    {"benchmark": "perception", "metric": "perception.gap", "group": "Black over White", "concept": "warmth"},
    {"benchmark": "disparity", "metric": "disparity.ap_gap", "group": "man less woman", "concept": "tie"},
    {"benchmark": "disparity", "metric": "disparity.reliability", "note": "mean confidence 0.1250; n counts"},
    {"benchmark": "custom", "metric": "custom.probability", "note": "among the 3 prompts of level 'work'"},
    {"benchmark": "custom", "metric": "custom.probability", "group": "A over B", "note": None},
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder as 0.1 left it."""
    schema = {name: kind for name, kind in SCHEMA.items() if name not in NEW}
    whole = [
        {"model": "m", "dataset": "photos", "value": 0.1, "n": 9, "unit": "x", "subset": "race", **row} for row in ROWS
    ]
    pl.DataFrame(whole, schema=schema).write_parquet(tmp_path / "results.parquet")
    record = {"beholder": "0.1.0", "created": "2026-11-15T12:00:00+00:00", "benchmarks": ["gras"]}
    (tmp_path / "run.json").write_text(json.dumps(record))
    return tmp_path


def row(results: pl.DataFrame, metric: str) -> dict[str, object]:
    return results.filter(metric=metric).row(0, named=True)


@pytest.mark.parametrize(
    ("metric", "column", "value"),
    [
        ("gras.largest_gap", "group", "60 and over"),
        ("gras.largest_gap", "against", "20-29"),
        ("gras.biased_traits", "expected", 21.4),
        ("gras.biased_traits", "variant", "not the published measure"),
        ("gras.equivalence", "verdict", "alike"),
        ("gras.equivalence", "delta", 1e-5),
        ("perception.gap", "against", "White"),
        ("disparity.ap_gap", "group", "man"),
        ("disparity.ap_gap", "against", "woman"),
        ("disparity.reliability", "expected", 0.125),
        ("custom.probability", "template", "work"),
    ],
)
def test_what_stood_in_text_has_its_column(old: Path, metric: str, column: str, value: object):
    assert row(load_run(old).results, metric)[column] == value


def test_a_group_of_no_pair_keeps_its_name(old: Path):
    assert "A over B" in set(load_run(old).results["group"])


def test_nothing_is_lost_and_the_page_says_where_it_comes_from(old: Path):
    run = load_run(old)
    assert run.results.height == len(ROWS)
    assert "made by Beholder 0.1" in render(run.report)
