"""Trackers: a run's headline numbers in Weights & Biases, MLflow or TensorBoard, beside those of training.

Each library is an extra and logs where its own settings say: offline, in a folder or to a server (WANDB_MODE,
MLFLOW_TRACKING_URI). What is logged is the number of every question, with its interval, by a name that stays the same
from run to run; and where the tracker has tables, the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from beholder.chapter.numbers import Result
from beholder.core.errors import MissingExtra, UnknownName
from beholder.core.results import place
from beholder.report.report import Report

PROJECT = "beholder"
COLUMNS = ("model", "study", "dataset", "question", "verdict", "headline", "sentence", "value", "low", "high", "n")
Numbers = dict[str, float]


def headline_numbers(report: Report) -> Numbers:
    """Value, low and high of the first number of every finding, by a name that trackers take.

    Where nothing is found, of every number that has an interval and is not about a single wording. The model is part of
    the name where there are several.
    """
    rows = [finding.rows[0] for finding in report.findings if finding.rows]
    rows = rows or report.results.filter(pl.col("low").is_not_null(), pl.col("template").is_null()).to_dicts()
    several = report.results["model"].n_unique() > 1
    numbers: Numbers = {}
    for row in rows:
        for end, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
            if row.get(end) is not None:
                numbers.setdefault(f"{_name(row, several=several)}{suffix}", float(row[end]))
    return numbers


def _name(row: Result, *, several: bool) -> str:
    """Of what a number is; only signs that all trackers take.

    >>> _name({"model": "m", "dataset": "d", "metric": "b.ratio", "subset": "women & men"}, several=True)
    'm/d/b.ratio/women men'
    """
    parts = (row["model"] if several else "", row["dataset"], row["metric"], place(row))
    return "/".join(" ".join(re.sub(r"[^\w. -]+", " ", part).split()) for part in parts if part)


def require_tracker(name: str) -> None:
    """Raise, before any work, if there is no such tracker or its library is not installed."""
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    try:
        import_module(name)
    except ImportError as error:
        raise MissingExtra(f"Logging to {name}", name) from error


def log_run(report: Report, to: str, *, folder: Path | None = None, name: str = "beholder") -> str:
    """Log a run; says where it went."""
    require_tracker(to)
    return TRACKERS[to](report, folder, name)


def _settings(report: Report) -> dict[str, Any]:
    """How the run was made, as trackers keep it; no paths."""
    record = report.record
    return {
        "beholder": record.beholder,
        "studies": ", ".join(record.studies),
        "datasets": ", ".join(f"{entry.get('name')} {entry.get('revision')}" for entry in record.datasets),
        "models": ", ".join(dict.fromkeys(report.results["model"])),
        **{name: value for name, value in record.settings.items() if isinstance(value, str | int | float | bool)},
    }


def _table(report: Report) -> list[list[Any]]:
    return [[finding.as_dict().get(column) for column in COLUMNS] for finding in report.findings]


def _to_wandb(report: Report, folder: Path | None, name: str) -> str:
    import wandb  # an extra

    with wandb.init(project=PROJECT, name=name, job_type="audit", config=_settings(report), dir=folder) as run:
        run.summary.update(headline_numbers(report))
        run.log({"findings": wandb.Table(columns=list(COLUMNS), data=_table(report))})
        return f"Logged to Weights & Biases: {run.dir if run.offline else run.url}"


def _to_mlflow(report: Report, folder: Path | None, name: str) -> str:
    import mlflow  # an extra

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(f"sqlite:///{folder.resolve()}/mlflow.db")
        if mlflow.get_experiment_by_name(PROJECT) is None:
            mlflow.create_experiment(PROJECT, artifact_location=(folder.resolve() / "artifacts").as_uri())
    mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_params(_settings(report))
        mlflow.log_metrics(headline_numbers(report))
        columns = zip(*_table(report), strict=True)
        mlflow.log_table(dict(zip(COLUMNS, map(list, columns), strict=False)), "findings.json")
        return f"Logged to MLflow: run {run.info.run_id} of {PROJECT}, {mlflow.get_tracking_uri()}"


def _to_tensorboard(report: Report, folder: Path | None, name: str) -> str:
    from tensorboard.compat.proto.event_pb2 import Event  # an extra
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    where = (folder or Path("runs") / "tensorboard") / name
    writer = EventFileWriter(str(where))
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in headline_numbers(report).items()]
    writer.add_event(Event(step=0, summary=Summary(value=values)))
    writer.close()
    return f"Logged to TensorBoard: {where.resolve()}"


TRACKERS: Mapping[str, Callable[[Report, Path | None, str], str]] = {
    "wandb": _to_wandb,
    "mlflow": _to_mlflow,
    "tensorboard": _to_tensorboard,
}
