"""Every run has its own folder: none is overwritten, a stopped one is continued, two at once are refused."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder._run import finish, folder_name, load_run, locked, run_folder
from beholder.core.errors import UnknownName, UsageError
from beholder.core.record import Record
from beholder.prompts.prompt_set import prompt_set
from beholder.studies.custom.study import custom_study

STUDY = custom_study(prompt_set("words", [{"text": w, "level": "w", "concept": w} for w in ("kind", "cold")]))
LOCKS = "from pathlib import Path; from beholder._run import locked; import sys\n"


@pytest.fixture
def options(
    tmp_path: Path, people: Callable[..., Path], undrawn: list[object], monkeypatch: pytest.MonkeyPatch
) -> AuditOptions:
    monkeypatch.chdir(tmp_path)
    return AuditOptions(store=tmp_path / "store", dataset=f"folder:{people(6)}", draws=100)


def begin(digest: str, out: Path | None = None, named: str = "m-apa") -> tuple[Path, Record]:
    record = Record(digest=digest)
    with run_folder(record, out, named) as (folder, _):
        return folder, record


def test_each_run_gets_a_new_folder_and_latest_leads_to_the_last(options: AuditOptions) -> None:
    one, two = (audit_models(["null"], [STUDY], options) for _ in range(2))
    assert one.folder
    assert two.folder
    assert [one.folder.name, two.folder.name] == [f"{one.record.created[:10]}-null-custom{n}" for n in ("", "-2")]
    assert Path("runs/latest").resolve() == two.folder.resolve()
    assert load_run("runs/latest").record.finished


def test_a_stopped_run_is_found_the_day_after_and_keeps_its_start_and_its_page(
    options: AuditOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = audit_models(["null"], [STUDY], options)
    assert whole.folder
    page = (whole.folder / "report.html").read_bytes()
    entry = json.loads((whole.folder / "run.json").read_text())
    (whole.folder / "run.json").write_text(json.dumps({**entry, "finished": False}))
    (whole.folder / "report.html").unlink()
    yesterday = whole.folder.rename(whole.folder.with_name("2001-01-01-null-custom"))
    clock = SimpleNamespace(now=lambda _: datetime(2999, 1, 1, tzinfo=UTC))
    monkeypatch.setattr("beholder.core.record.datetime", clock)
    jumps = itertools.count(10**9, -1000)  # backwards, too
    monkeypatch.setattr("beholder._audit.time", SimpleNamespace(monotonic=lambda: float(next(jumps))))
    again = audit_models(["null"], [STUDY], options)
    assert again.folder == yesterday
    assert (yesterday / "report.html").read_bytes() == page


def test_a_folder_of_another_run_is_refused_and_the_same_run_goes_on(options: AuditOptions, tmp_path: Path) -> None:
    options = replace(options, out=tmp_path / "out")
    created = audit_models(["null"], [STUDY], options).record.created
    assert audit_models(["null"], [STUDY], options).record.created == created
    for other in (replace(options, limit=2), replace(options, study_options={"by": ["gender"]})):
        with pytest.raises(UsageError, match="out holds another run, which is not overwritten"):
            audit_models(["null"], [STUDY], other)
    with pytest.raises(UsageError, match="holds another run"):
        audit_models(["null:3"], [STUDY], options)


def test_a_model_with_other_weights_is_another_run(options: AuditOptions, tmp_path: Path) -> None:
    options = replace(options, out=tmp_path / "out")
    audit_models(["null"], [STUDY], options)
    entry = json.loads((tmp_path / "out" / "run.json").read_text())
    entry["models"][0]["digest"] = "of other weights"
    (tmp_path / "out" / "run.json").write_text(json.dumps(entry))
    with pytest.raises(UsageError, match="a run of null with other weights or settings"):
        audit_models(["null"], [STUDY], options)


def test_a_run_that_cannot_begin_leaves_no_folder(options: AuditOptions) -> None:
    with pytest.raises(UnknownName):
        audit_models(["no such model!"], [STUDY], options)
    assert not list(Path("runs").iterdir())


def test_the_second_process_in_a_folder_is_refused_and_a_dead_one_keeps_nobody_out(tmp_path: Path) -> None:
    code = f"{LOCKS}with locked(Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"in\n"
        with pytest.raises(UsageError, match="Another process is writing into"):
            begin("a", tmp_path)
        process.kill()
    assert (tmp_path / ".lock").exists()
    assert begin("a", tmp_path)[0] == tmp_path
    assert not (tmp_path / ".lock").exists()


def test_a_run_in_progress_is_left_to_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, _ = begin("a")
    with locked(first):
        assert begin("a")[0] != first
    assert begin("b")[0].name.endswith("m-apa-3")


def test_a_finished_run_is_not_continued_in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, record = begin("a")
    assert begin("a")[0] == first
    finish(record, first)
    assert begin("a")[0] != first


def test_a_folder_in_the_place_of_a_file_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "results.csv").mkdir()
    with pytest.raises(UsageError, match=r"results\.csv is a folder, but the run writes a file of that name"):
        begin("a", tmp_path)


@pytest.mark.parametrize(
    ("models", "studies", "name"),
    [
        (["./ckpt/CLIP B16/"], ["apa"], "clip-b16-apa"),
        (["a/b", "c", "d"], ["apa", "gras"], "b-and-2-more-apa-gras"),
        (["x"], ["a", "b", "c", "d", "e"], "x-a-b-c-and-2-more"),
        (["n" * 300], ["apa"], "n" * 60 + "-apa"),
        (["../.."], [], ""),
    ],
)
def test_a_folder_is_called_after_model_and_studies(models: list[str], studies: list[str], name: str) -> None:
    assert folder_name(models, studies) == name


def test_a_damaged_record_keeps_results_safe(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[" * 100_000)
    (tmp_path / "results.parquet").touch()
    with pytest.raises(UsageError, match="holds another run"):
        begin("a", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["results.parquet", "run.json"]
