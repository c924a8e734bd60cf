"""`beholder runs` lists what there is; `beholder verify` measures a run again from its stored scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder._measure import compared
from beholder._run import Run
from beholder.cli import app
from beholder.core.errors import MissingData, UsageError
from beholder.core.results import SCHEMA, read_results


def test_runs_are_listed_with_their_verdicts_the_newest_first(
    invoke: Callable[..., str], apa_run: Run, two_models: Run, tmp_path: Path
):
    apa_run.save(tmp_path / "old")
    apa_run.save_findings(tmp_path / "old")
    two_models.record.created, two_models.record.finished = "2026-11-15T12:00:00+00:00", False
    two_models.save(tmp_path / "new")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("[]")
    (tmp_path / "no run").mkdir()
    (tmp_path / "latest").symlink_to("old")
    new, old, bad = json.loads(invoke("runs", tmp_path, "--json"))
    assert (new["models"], new["problem"]) == (["clip", "siglip"], "unfinished: the same command continues it")
    assert (old["models"], old["studies"], old["created"][:10]) == (["clip"], ["apa"], "2026-08-01")
    assert sum(old["verdicts"].values()) == len(apa_run.findings)
    assert bad["problem"].startswith("cannot be read")
    assert "found" in invoke("runs", tmp_path)
    with pytest.raises(MissingData, match="There is no folder"):
        invoke("runs", tmp_path / "nothing")


def verify(folder: Path, *more: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["verify", str(folder), *map(str, more)])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.exit_code, result.stdout


def test_a_run_is_measured_again_without_its_model(
    invoke: Callable[..., str],
    audit: list[object],
    tmp_path: Path,
    undrawn: list[object],
    monkeypatch: pytest.MonkeyPatch,
):
    invoke(*audit, "-q")
    monkeypatch.setattr("beholder._steps.load_model", None)
    rows = read_results(tmp_path / "run")
    assert verify(tmp_path / "run") == (0, f"{rows.height} rows are as they were, 0 changed, 0 are gone, 0 are new.\n")
    for name, was in (("findings.json", "difference"), ("results.csv", "gender")):
        told = (tmp_path / "run" / name).read_text()
        (tmp_path / "run" / name).write_text(told.replace(was, f"no {was}", 1))
        code, text = verify(tmp_path / "run")
        assert code == 1
        assert f"{name} does not say what the rows show" in text
        (tmp_path / "run" / name).write_text(told)
    for forged in ("landmark", "delta"):
        changed = pl.when(pl.int_range(pl.len()) == 0).then(7.5).otherwise(forged).alias(forged)
        rows.with_columns(changed).write_parquet(tmp_path / "run" / "results.parquet")
        assert f"{rows.height - 1} rows are as they were, 1 changed" in verify(tmp_path / "run")[1]
    rows.with_columns(value=pl.col("value") + 0.25 * (pl.int_range(pl.len()) == 0)).write_parquet(
        tmp_path / "run" / "results.parquet"
    )
    code, text = verify(tmp_path / "run")
    assert code == 1
    assert f"{rows.height - 1} rows are as they were, 1 changed" in text
    answer = json.loads(verify(tmp_path / "run", "--json")[1])
    assert answer["rows"][0]["value"] == pytest.approx(answer["rows"][0]["value_now"] + 0.25)
    with pytest.raises(MissingData, match="lacks scores of null for custom"):
        verify(tmp_path / "run", "--store", tmp_path / "elsewhere")


def test_a_run_that_was_not_made_by_an_audit_cannot_be_verified(apa_run: Run, tmp_path: Path):
    apa_run.save(tmp_path)
    with pytest.raises(UsageError, match=r"has no audit\.toml"):
        verify(tmp_path)


def test_rows_are_counted_by_what_became_of_them(apa_run: Run):
    old = apa_run.results
    new = pl.concat([old.slice(2), old.head(1).with_columns(metric=pl.lit("apa.new"))])
    new = new.with_columns(n=pl.col("n") + (pl.int_range(pl.len()) == 3), low=pl.col("low") + 1e-9)
    found = compared(old, new)
    assert (found.same, found.changed.height, found.gone.height, found.new.height) == (old.height - 3, 1, 2, 1)
    assert not found.holds
    assert compared(old, old.select(list(SCHEMA))).holds


def test_who_counts_as_a_person_is_recorded_and_verified(
    audit: list[object], invoke: Callable[..., str], undrawn: list[object], tmp_path: Path
):
    invoke(*audit, "--person", "name", "--within", "name", "-q")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["settings"]["person"], record["settings"]["within"]) == ("name", ["name"])
    assert record["datasets"][0]["persons"]["described"] == "5 people, 10 pictures; each person counts once"
    assert "person = " in (tmp_path / "run" / "audit.toml").read_text()
    assert verify(tmp_path / "run")[0] == 0


def test_an_unknown_person_column_names_what_exists(audit: list[object], refused: Callable[..., str]):
    assert "gender" in refused(*map(str, audit), "--person", "who")
