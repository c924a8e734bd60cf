"""Commands that studies bring along."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from beholder.cli.audit import study_command
from beholder.core.record import Record
from beholder.core.results import Row, results_table
from beholder.studies import STUDIES
from beholder.studies.study import CommandOptions, Measured


def test_every_command_of_a_study_is_found_by_its_name():
    names = [study.command.name for study in STUDIES.values() if study.command]
    assert "exposure" in names
    for name in names:
        assert study_command(name).name == name
    assert study_command("nothing") is None


def test_a_command_leaves_a_run_with_its_own_files(
    invoke: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    given: list[CommandOptions] = []

    def measured(files: list[Path], options: CommandOptions) -> Measured:
        given.append(options)
        row = Row("exposure.captions", float(len(files)), 9, "captions", subset="senate", group="woman")
        results = results_table([row], study="exposure", model="captions", dataset="apa")
        return Measured(results, Record(studies=["exposure"]), {"own.txt": b"more"})

    monkeypatch.setattr("beholder.studies.exposure.study.expose", measured)
    out = tmp_path / "run"
    words = ["exposure", "a.txt", "b.txt", "--out", out, "--column", "text", "--draws", 150, "--json"]
    answer = json.loads(invoke(*words))
    assert [row["value"] for row in answer["results"]] == [2.0]
    assert (out / "own.txt").read_bytes() == b"more"
    assert {"results.parquet", "run.json", "findings.json", "report.html"} <= {path.name for path in out.iterdir()}
    assert given[0].study_options == {"column": "text"}
    assert given[0].measure.draws == 150
