"""`beholder compare`: differences on the page, in the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder._options import AuditOptions
from beholder.core.errors import UsageError
from beholder.core.record import Record
from beholder.report.comparison import SCHEMA, Comparison
from beholder.studies.study import Study

ROW: dict[str, Any] = {
    **dict.fromkeys(SCHEMA),
    **{"study": "apa", "baseline": "null:1", "model": "null:2", "dataset": "apa", "metric": "apa.association"},
    **{"n": 100, "unit": "probability"},
    **{"first": 0.5, "second": 0.75, "difference": 0.25, "low": 0.2, "high": 0.3, "p_value": 0.001},
    "verdict": "difference found",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command asks for; it is answered with one difference."""
    calls: list[Any] = []

    def answer(models: list[Any], studies: list[Study], options: AuditOptions) -> Comparison:
        calls.append((models, [study.name for study in studies], options))
        return Comparison(models, pl.DataFrame([ROW], schema=SCHEMA), Record(left_out=["gras: not asked"]))

    monkeypatch.setattr("beholder.cli.audit.compare_models", answer)
    return calls


@pytest.fixture
def compare(tmp_path: Path) -> list[object]:
    folders = ["--out", tmp_path / "out", "--store", tmp_path / "store"]
    return ["compare", "null:1", "null:2", "-s", "apa", "--limit", 8, "--seed", 5, *folders]


def test_json_holds_the_differences_and_options_arrive(
    invoke: Callable[..., str], compare: list[object], asked: list[Any], tmp_path: Path
):
    answer = json.loads(invoke(*compare, "--json"))
    assert answer == {"differences": [ROW], "left_out": ["gras: not asked"]}
    ((models, studies, options),) = asked
    assert (models, studies) == (["null:1", "null:2"], ["apa"])
    assert (options.limit, options.measure.seed, options.store) == (8, 5, tmp_path / "store")


def test_own_prompts_bins_and_three_models_are_taken(
    invoke: Callable[..., str], audit: list[object], asked: list[Any], prompts: Path
):
    models = ["null:1", "null:2", "null:3"]
    invoke("compare", *models, *audit[2:-2], "--bins", "age=0,30,60", "-q")
    ((compared, studies, options),) = asked
    assert (compared, studies, dict(options.bins)) == (models, ["custom"], {"age": (0.0, 30.0, 60.0)})
    assert options.study_options == {"prompts": prompts, "by": ["gender"]}


@pytest.mark.slow
def test_runs_say_what_was_asked_and_must_agree(
    invoke: Callable[..., str], audit: list[object], asked: list[Any], undrawn: list[Any], tmp_path: Path
):
    for name, more in (("run", []), ("same", []), ("other", ["--limit", 2])):
        invoke(*audit, *more, "--out", tmp_path / name, "-q")
    invoke("compare", tmp_path / "run", tmp_path / "same", "null:9", "--out", tmp_path / "out", "-q")
    ((compared, studies, options),) = asked
    names = [each if isinstance(each, str) else (each.name, each.store) for each in compared]
    assert names == [("null (run)", tmp_path / "store"), ("null (same)", tmp_path / "store"), "null:9"]
    assert (studies, options.dataset) == (["custom"], audit[5])
    with pytest.raises(UsageError, match="were not asked the same: limit is not said in the first and 2 in the other"):
        invoke("compare", tmp_path / "run", tmp_path / "other")


@pytest.mark.usefixtures("asked")
def test_the_summary_counts_what_differs_and_quiet_prints_nothing(invoke: Callable[..., str], compare: list[object]):
    assert "Of 1 question, null:2 is different (neither is the fair one) in 1." in " ".join(invoke(*compare).split())
    assert invoke(*compare, "--quiet") == ""


def test_a_model_is_not_compared_with_itself(invoke: Callable[..., str], tmp_path: Path):
    with pytest.raises(UsageError, match="Name two models"):
        invoke("compare", "null", "null", "-s", "apa", "--out", tmp_path / "out", "--store", tmp_path / "store")
