"""A run's headline numbers reach each tracker, offline; a tracker that is not installed is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder._run import Run
from beholder.cli import app
from beholder.core.errors import BeholderError, MissingExtra
from beholder.report.exports import headline_numbers, log_run


def expected(run: Run) -> dict[str, float]:
    """The first rows of the findings, written out another way."""
    found = {}
    for finding in run.findings:
        row = finding.rows[0]
        words = [row[key] for key in ("subset", "group", "against", "concept", "template") if row[key]]
        for end in ("value", "low", "high"):
            if row["value"] is not None and row[end] is not None:
                name = "/".join([row["dataset"], row["metric"], *([" ".join(words)] if words else [])])
                found.setdefault(name + {"value": ""}.get(end, f"_{end}"), row[end])
    return found


def test_numbers_have_names_that_stay_the_same(apa_run: Run) -> None:
    numbers = headline_numbers(apa_run.report)
    assert {name.replace("against ", ""): value for name, value in numbers.items()} == expected(apa_run)
    assert numbers["apa/apa.bias_ratio/politicians"] == 0.62


@pytest.mark.parametrize("to", ["wandb", "mlflow", "tensorboard"])
def test_a_tracker_that_is_not_here_is_named(to: str, apa_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, to, None)
    with pytest.raises(MissingExtra, match=rf"Logging to {to} needs.*\n.*beholder-audit\[{to}\]"):
        log_run(apa_run.report, to)


def test_an_audit_asks_for_its_tracker_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    for name, said in (("wandb", r"beholder-audit\[wandb\]"), ("wandbb", "Did you mean 'wandb'")):
        with pytest.raises(BeholderError, match=said):
            CliRunner().invoke(app, ["audit", "no-such-model", "--log", name], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_an_audit_logs_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    words = ["audit", "null", "-s", "apa", "--limit", "4", "--draws", "100", "--store", "store", "--log", "tensorboard"]
    done = CliRunner().invoke(app, [*words, "--out", "mine"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert list(Path("runs/tensorboard/mine").iterdir())
    again = CliRunner().invoke(app, ["audit", "--config", "mine/audit.toml", "--out", "other"], catch_exceptions=False)
    assert again.exit_code == 0, again.output


@pytest.mark.slow
def test_tensorboard_reads_the_numbers(apa_run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    apa_run.save(tmp_path / "run")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--to", "tensorboard", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    log = EventAccumulator(str(tmp_path / "run"))
    log.Reload()
    logged = {tag: log.Scalars(tag)[0].value for tag in log.Tags()["scalars"]}
    assert logged == pytest.approx(headline_numbers(apa_run.report), rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_the_numbers_offline(apa_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert "offline-run" in log_run(apa_run.report, "wandb", folder=tmp_path, name="mine")
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    data = log.read_bytes()
    assert b"apa/apa.bias_ratio/politicians" in data


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_the_numbers_in_a_folder(apa_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    assert "Logged to MLflow: run " in log_run(apa_run.report, "mlflow", folder=tmp_path / "log", name="mine")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    (run,) = mlflow.search_runs(experiment_names=["beholder"], output_format="list")
    assert run.data.metrics == pytest.approx(headline_numbers(apa_run.report))
    assert run.data.params["studies"] == ", ".join(apa_run.record.studies)
    findings = json.loads(
        Path(mlflow.artifacts.download_artifacts(f"runs:/{run.info.run_id}/findings.json")).read_text()
    )
    assert len(findings["data"]) == len(apa_run.findings)
