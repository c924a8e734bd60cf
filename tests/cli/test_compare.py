"""`beholder compare`: differences on the page, in the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import UsageError


@pytest.fixture
def compare(tmp_path: Path) -> list[object]:
    folders = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
    return ["compare", "null:1", "null:2", "-b", "apa", "--limit", 8, *folders]


def test_json_holds_the_table_of_differences(invoke: Callable[..., str], compare: list[object], tmp_path: Path):
    answer = json.loads(invoke(*compare, "--json"))
    rows = answer["differences"]
    assert rows
    assert all(row["difference"] == pytest.approx(row["second"] - row["first"]) for row in rows)
    assert pl.read_parquet(tmp_path / "out" / "comparison.parquet").height == len(rows)
    assert (tmp_path / "out" / "comparison.html").is_file()


def test_the_summary_counts_what_differs(invoke: Callable[..., str], compare: list[object]):
    assert "numbers differ between" in " ".join(invoke(*compare).split())


def test_a_model_is_not_compared_with_itself(invoke: Callable[..., str], tmp_path: Path):
    with pytest.raises(UsageError, match="Name two models"):
        invoke("compare", "null", "null", "-b", "apa", "--out", tmp_path / "out", "--store", tmp_path / "store")
