"""Tasks of inspect_ai and lmms-eval ask what an audit asks, and their logs are measured to the numbers of an audit."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import BadScores, BeholderError, MissingExtra, UsageError
from beholder.datasets.images import open_image
from beholder.harness import Questions, picture_file, write_tasks
from beholder.models.served.protocol import read_draws
from beholder.prompts.prompt_set import Instruction
from beholder.scores.imported import asked_in, read_harness_log

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
LOGS = {
    "inspect_ai": ROOT / "docs" / "examples" / "inspect_ai_own_prompts.json",
    "lmms-eval": HERE / "lmms_samples_beholder_custom.jsonl",
}
PROMPTS = "text\na drawing of a doctor\na drawing of a nurse\na drawing of a warm person\n"
CELL = ("metric", "subset", "group", "concept", "template")


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    return result.output + (str(result.exception) if isinstance(result.exception, BeholderError) else "")


# What is asked


def questions(**given: object) -> Questions:
    texts = ["a drawing of a doctor", "a drawing of a nurse"]
    return Questions("custom", prompts=texts, dataset="glasshouse-faces", by="gender", limit=2, **given)


def test_a_task_asks_what_an_audit_asks_about_the_same_picture(tmp_path: Path) -> None:
    asked = questions()
    first = next(asked.each(tmp_path))
    assert first.text == asked.instruction.ask("a drawing of a doctor")
    assert first.about["image_id"] == "faces/000"
    with Image.open(first.image) as picture:
        assert np.array_equal(picture, open_image(asked._inquiry.dataset.table["uri"][0]))


def test_a_photograph_is_named_where_any_program_sees_it_as_beholder_does(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    plain, turned, clear, large = (tmp_path / name for name in ("a.jpg", "b.jpg", "c.png", "d.png"))
    Image.fromarray(pixels).save(plain)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(turned, exif=exif)
    Image.fromarray(np.dstack([pixels, np.full((40, 60), 9, np.uint8)]), "RGBA").save(clear)
    Image.new("RGB", (2000, 10)).save(large)
    made = tmp_path / "made"
    assert picture_file(str(plain), made) == str(plain)
    for path, size in ((turned, (40, 60)), (clear, (60, 40)), (large, (1024, 5))):
        name = picture_file(str(path), made)
        with Image.open(name) as picture:
            assert (Path(name).parent, picture.size) == (made, size)
            assert path == large or np.array_equal(picture, open_image(str(path)))


def test_a_study_of_own_prompts_needs_them() -> None:
    with pytest.raises(UsageError, match="custom needs prompts: name the file"):
        Questions("custom", dataset="glasshouse-faces")


# inspect_ai


def test_without_inspect_ai_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "inspect_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "beholder.harness.tasks", raising=False)
    with pytest.raises(MissingExtra, match=r"A task for inspect_ai needs.*\n.*\[inspect\]"):
        importlib.import_module("beholder.harness.tasks")


def test_the_entry_point_names_the_module_of_the_tasks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["inspect_ai"] == {"beholder": "beholder.harness.tasks"}
    assert (ROOT / "src" / "beholder" / "harness" / "tasks.py").is_file()
    assert any(need.startswith("inspect-ai") for need in project["optional-dependencies"]["inspect"])


# lmms-eval


def functions(folder: Path) -> Any:
    spec = spec_from_file_location("utils_of_a_task", folder / "utils.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("draws", [0, 3])
def test_a_folder_for_lmms_eval_holds_all_it_needs(draws: int, tmp_path: Path) -> None:
    asked = questions(draws=draws)
    assert write_tasks(asked, tmp_path / "task") == len(asked._inquiry.dataset) * 2 * (draws or 1)
    task = (tmp_path / "task" / "beholder_custom.yaml").read_text()
    assert f'output_type: "{"generate_until" if draws else "multiple_choice"}"' in task
    docs = [json.loads(line) for line in (tmp_path / "task" / "beholder_custom.jsonl").read_text().splitlines()]
    own = functions(tmp_path / "task")
    assert own.doc_to_visual(docs[0])[0].mode == "RGB"
    assert docs[0]["choices"][:3] == ["true", "True", "TRUE"]
    answers = [" True.", "no idea", ""] if draws else [(-2.5, False)] * 6 + ["(-9.0, False)"] * 6
    values = [own.process_results(docs[0], [each] if draws else answers)["beholder"] for each in answers[:3]]
    assert [round(each["p_yes"], 4) for each in values] == ([1, 0, 0] if draws else [0.4925] * 3)
    assert own.p_yes(values) == pytest.approx(sum(each["p_yes"] for each in values) / 3)


# Logs, back into numbers


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """What an audit of the model that made the logs gives."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "prompts.csv").write_text(PROMPTS)
    asked = ["--prompts", folder / "prompts.csv", "--dataset", "glasshouse-faces", "--by", "gender", "--limit", 6]
    command("audit", "glasshouse/generative", *asked, "--out", folder / "run", "--store", folder / "store", "-q")
    return pl.read_parquet(folder / "run" / "results.parquet")


@pytest.mark.parametrize("program", LOGS)
def test_a_log_gives_the_numbers_of_an_audit(
    program: str, audited: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.csv").write_text(PROMPTS)
    said = command("measure", LOGS[program], "--out", "run", "-q")
    mine = pl.read_parquet(tmp_path / "run" / "results.parquet")
    # Of every prompt by itself: an audit of a local model divides belief by raw logits, which no log holds. Bounds of
    # gaps hold for everything that is compared, so they differ too; those of means are of each number alone.
    alone = pl.col("metric").str.starts_with("custom.p_yes")
    both = audited.filter(alone).join(mine.filter(alone), on=CELL, how="full", nulls_equal=True, suffix="_log")
    means = both.filter(metric="custom.p_yes")
    assert (both.height, means.height) == (21, 9), said
    for table, names in ((both, ["value"]), (means, ["value", "low", "high"])):
        for name in names:
            assert table[name].is_null().equals(table[f"{name}_log"].is_null())
            assert (table[name] - table[f"{name}_log"]).abs().max() < 2e-5


def test_counted_answers_are_shares_of_the_answers() -> None:
    path = HERE / "inspect_ai_counted.json"
    log, found = read_harness_log(path), dict[tuple[str, str], list[str]]()
    for sample in json.loads(path.read_text())["samples"]:
        about, answer = sample["metadata"], sample["output"]["choices"][0]["message"]["content"]
        found.setdefault((about["image_id"], about["prompt_id"]), []).append(answer)
    assert log.table.height == len(found) == 4
    assert set(map(len, found.values())) == {4}
    for row in log.table.to_dicts():
        answers = found[row["image_id"], row["prompt_id"]]
        cell = read_draws(answers, Instruction("{}", "true", "false"))
        assert np.exp(row["log_p_yes"]) == pytest.approx(cell.yes.value)
        assert row["yes_draws"] == answers.count("true")


def test_lmms_eval_counts_the_same_answers_alike(tmp_path: Path) -> None:
    inspect, lines = json.loads((HERE / "inspect_ai_counted.json").read_text())["samples"], []
    for sample in inspect:
        about = {**sample["metadata"], "answers": sample["metadata"].pop("choices")}
        answer = sample["output"]["choices"][0]["message"]["content"]
        lines.append(json.dumps({"filtered_resps": answer, "beholder": about}))
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    read, theirs = (read_harness_log(path) for path in (tmp_path / "samples.jsonl", HERE / "inspect_ai_counted.json"))
    assert read.table.equals(theirs.table)


def test_a_loss_in_place_of_a_log_likelihood_is_refused(tmp_path: Path) -> None:
    about = {"image_id": "a", "prompt_id": "p"}
    line = json.dumps({"filtered_resps": ["(0.73, False)", "(1.2, False)"], "beholder": about})
    (tmp_path / "samples.jsonl").write_text(line)
    with pytest.raises(
        BadScores, match=r"line 1: 1\.2 is no logarithm of a probability.*give the loss.*\n.*--draws 20"
    ):
        read_harness_log(tmp_path / "samples.jsonl")


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({}, "does not say what was asked.*\n.*beholder measure STUDY --scores"),
        ({"study": "custom", "prompts": ["a"], "dataset": "hf:somebody/faces"}, "not on this machine"),
        (
            {"study": "custom", "prompts": ["a"], "limit": "x"},
            r"says that limit was 'x', which it cannot be.*\nSay the study",
        ),
        ({"study": "custom", "prompts": 3}, "says that prompts was 3, which it cannot be"),
    ],
)
def test_a_log_that_cannot_be_measured_by_itself_says_why(
    about: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = json.loads(LOGS["inspect_ai"].read_text())["samples"][0]
    sample["metadata"]["beholder"] = about or None
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": {}, "samples": [sample]}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BeholderError, match=said):
        CliRunner().invoke(app, ["measure", str(path)], catch_exceptions=False)


def test_measure_without_scores_says_what_to_name() -> None:
    with pytest.raises(UsageError, match="Say where the scores of gras are: --scores FILE"):
        CliRunner().invoke(app, ["measure", "gras"], catch_exceptions=False)


def test_a_log_names_its_model() -> None:
    assert asked_in(LOGS["inspect_ai"])[1] == "tiny"
