"""`beholder compare`: differences on the page, in the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.audit import AuditOptions
from beholder.core.errors import UsageError
from beholder.core.record import Record
from beholder.report.comparison import Comparison, Pair
from beholder.studies.study import Study

ROW: dict[str, Any] = {
    **dict.fromkeys(("subset", "group", "against", "concept", "template", "note")),
    **{"benchmark": "apa", "dataset": "apa", "metric": "apa.association", "n": 100},
    **{"first": 0.5, "second": 0.75, "difference": 0.25, "low": 0.2, "high": 0.3, "p_value": 0.001, "p_adjusted": 0.01},
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command asks for; it is answered with one difference."""
    calls: list[Any] = []

    def answer(pair: Pair, studies: list[Study], options: AuditOptions) -> Comparison:
        calls.append((pair, [study.name for study in studies], options))
        return Comparison(pair, pl.DataFrame([ROW]), Record(left_out=["gras: not asked"]))

    monkeypatch.setattr("beholder.compare.compare_models", answer)
    return calls


@pytest.fixture
def compare(tmp_path: Path) -> list[object]:
    folders = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
    return ["compare", "null:1", "null:2", "-b", "apa", "--limit", 8, "--seed", 5, *folders]


def test_json_holds_the_differences_and_the_files_do_too(
    invoke: Callable[..., str], compare: list[object], asked: list[Any], tmp_path: Path
):
    answer = json.loads(invoke(*compare, "--json"))
    assert answer == {"differences": [ROW], "left_out": ["gras: not asked"]}
    assert pl.read_parquet(tmp_path / "out" / "comparison.parquet").height == 1
    assert (tmp_path / "out" / "comparison.html").is_file()
    ((pair, studies, options),) = asked
    assert (pair, studies) == (Pair("null:1", "null:2"), ["apa"])
    assert (options.limit, options.measure.seed, options.store) == (8, 5, tmp_path / "store")


@pytest.mark.usefixtures("asked")
def test_the_summary_counts_what_differs_and_quiet_prints_nothing(invoke: Callable[..., str], compare: list[object]):
    assert "1 of 1 numbers differ between null:1 and null:2" in " ".join(invoke(*compare).split())
    assert invoke(*compare, "--quiet") == ""


def test_a_model_is_not_compared_with_itself(invoke: Callable[..., str], tmp_path: Path):
    with pytest.raises(UsageError, match="Name two models"):
        invoke("compare", "null", "null", "-b", "apa", "--out", tmp_path / "out", "--store", tmp_path / "store")
