"""Beholder from Python: one call audits a name, an object or a function, and gives a run to look into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import beholder
from beholder._audit import audit
from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder._run import Run, load_run
from beholder.cli import app
from beholder.core.errors import MissingData, UnknownName, UsageError
from beholder.core.results import KEY
from beholder.models.scorer import NullScorer
from beholder.prompts.prompt_set import read_prompts
from beholder.studies.custom.study import custom_study

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def ask(tmp_path: Path, people: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """An audit with two prompts of our own on ten pictures, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moods.csv").write_text("text\na warm person\na cold person\n")
    folder = people(10)

    def asked(model: Any, **options: Any) -> Run:
        given = {"dataset": f"folder:{folder}", "prompts": "moods.csv", "by": "gender", "draws": 100, "store": "store"}
        return audit(model, **{**given, **options})

    return asked


def redness(images: list[Image.Image], prompts: list[str]) -> Any:
    return np.array([[np.asarray(image)[:, :, 0].mean() + len(prompt) for prompt in prompts] for image in images])


def test_a_bare_string_is_one_thing(ask: Callable[..., Run]):
    run = ask("null")
    assert set(run.results["model"]) == {"null"}
    assert set(run.by_group("custom.probability", by="gender")["group"]) == {"woman", "man"}
    assert run.folder is not None
    assert load_run(run.folder).results.equals(run.results)
    assert run.folder.parent == Path("runs"), "a new folder for each run, as on the command line"


def test_several_models_go_in_a_list(ask: Callable[..., Run]):
    run = ask(["null", NullScorer(3)])
    assert run.results["model"].unique(maintain_order=True).to_list() == ["null", "null:3"]


def test_a_function_is_audited_and_asked_again_each_time(ask: Callable[..., Run]):
    calls = []

    def counted(images: list[Image.Image], prompts: list[str]) -> Any:
        calls.append(len(images))
        return redness(images, prompts)

    run = ask(counted)
    first = sum(calls)
    ask(counted)
    assert sum(calls) == 2 * first, "nothing says that it is still the same function"
    assert not list(Path("store").glob("*/scores")), "and nothing of it is kept"
    assert run.scores().height == 20, "but the run that was made of it can be looked into"


def test_scores_of_a_function_with_a_revision_are_kept(ask: Callable[..., Run]):
    calls = []

    def counted(images: list[Image.Image], prompts: list[str]) -> Any:
        calls.append(len(images))
        return redness(images, prompts)

    ask(counted, name="red", revision="1")
    first = sum(calls)
    ask(counted, name="red", revision="1", seed=2)
    assert sum(calls) < 2 * first
    ask(counted, name="red", revision="2")
    assert sum(calls) >= 2 * first


def test_raw_scores_come_with_their_labels(ask: Callable[..., Run], tmp_path: Path):
    run = ask(redness, name="red", revision="1")
    scores = run.scores("custom", model="red")
    assert {"image_id", "gender", "prompt_id", "text", "channel", "score"} <= set(scores.columns)
    folder = Path(str(run.record.datasets[0]["origin"]).removeprefix("folder:"))
    for row in scores.iter_rows(named=True):
        picture = np.asarray(Image.open(folder / row["image_id"]).convert("RGB"))
        assert row["score"] == pytest.approx(picture[:, :, 0].mean() + len(row["text"]), rel=1e-6)
    again = load_run(str(run.folder)).scores(store="store")
    assert again.equals(scores)
    with pytest.raises(MissingData, match=r"elsewhere has no scores of this run\.\nName the store"):
        load_run(str(run.folder)).scores(store=tmp_path / "elsewhere")
    with pytest.raises(UnknownName, match="This run has no model 'blue'"):
        run.scores(model="blue")


def test_printed_frames_show_value_low_and_high(ask: Callable[..., Run]):
    run = ask("null")
    with pl.Config(tbl_cols=8):
        for frame in (run.results, run.by_group("custom.probability")):
            head = str(frame).splitlines()[2]
            assert [word for word in ("value", "low", "high") if word in head] == ["value", "low", "high"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"promts": "x.csv"}, UnknownName, r"audit\(\) has no option 'promts'.*Did you mean 'prompts'"),
        ({"studies": "grass", "prompts": None, "by": None}, UnknownName, "gras"),
        ({"name": "a", "model": ["null", "null:2"]}, UsageError, "those of one model"),
    ],
)
def test_what_is_wrong_is_said(ask: Callable[..., Run], options: dict[str, Any], error: type[Exception], said: str):
    model = options.pop("model", "null")
    with pytest.raises(error, match=f"(?s){said}"):
        ask(model, **options)


def test_exported_scores_give_the_same_numbers(ask: Callable[..., Run], tmp_path: Path):
    run = ask(redness, name="red", revision="1")
    exported = CliRunner().invoke(
        app, ["export", str(run.folder), "--to", "scores", "--store", "store", "-o", "s.jsonl"]
    )
    assert exported.exit_code == 0, exported.output
    study = custom_study(read_prompts(Path("moods.csv")), by=("gender",))
    options = AuditOptions(dataset=run.record.datasets[0]["origin"], draws=100, out=Path("again"))
    again = measure_scores(study, [Path("s.jsonl")], options, model="red")
    assert_frame_equal(again.results, run.results, rel_tol=1e-6)


@pytest.mark.slow
def test_runs_are_compared_by_the_scores_behind_them(ask: Callable[..., Run]):
    first, second = ask("null"), ask("null:2")
    found = beholder.compare(first, second, parts=5)
    assert found.models == ["null", "null:2"]
    values = {run.results["model"][0]: run.results for run in (first, second)}
    assert found.table.height
    for row in found.table.head(20).iter_rows(named=True):
        where = [pl.col(name).eq_missing(pl.lit(row[name])) for name in KEY]
        ends = {
            "group": pl.col("group").eq_missing(pl.lit(row["against"])),
            "against": pl.col("against").eq_missing(pl.lit(row["group"])),
        }
        back = [ends.get(name, each) for name, each in zip(KEY, where, strict=True)]
        rows = [(values[name].filter(*where), values[name].filter(*back)) for name in found.models]
        one, other = (mine["value"].item() if mine.height else -turned["value"].item() for mine, turned in rows)
        assert (row["first"], row["second"]) == (one, other)
        assert row["difference"] == pytest.approx(other - one)
    same = ask(redness), ask(redness, draws=101)
    assert len(set(beholder.compare(*same, parts=5).models)) == 2, "two runs of one name are called after their folders"


@pytest.mark.slow
def test_runs_of_earlier_programs_are_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEHOLDER_STORE", str(tmp_path / "store"))
    here = [audit(name, "apa", limit=6, draws=100, out=f"run{name[-1]}") for name in ("null:1", "null:2")]
    now = beholder.compare(*here, parts=4, out="a")
    again = beholder.compare("run1", "run2", parts=4, out="b")
    assert_frame_equal(now.table, again.table)
    with pytest.raises(UsageError, match="Name two runs or more"):
        beholder.compare("run1")


def test_a_printed_run_says_what_was_asked_and_found(gras_run: Run):
    first, *findings = repr(gras_run).splitlines()
    assert first.startswith("Run of ")
    assert [line.strip() for line in findings] == [f"{each.marked}: {each.headline}" for each in gras_run.findings]
