"""Run the commands of the docs, with stand-ins: noise for models that would have to be fetched, the photographs of
../shared for `DIR`, random numbers for scores made elsewhere."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.datasets import load_dataset
from beholder.studies import STUDIES
from beholder.studies.inquiry import default_dataset

pytestmark = [pytest.mark.slow, pytest.mark.real]
ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:<!-- not run: .+? -->\n)?```bash\n(.*?)```", re.DOTALL)
PLACEHOLDER = re.compile(r"\b(DIR|RUN)\b|\bMODEL\b|/data/|[\w-]+/[\w.-]+|onnx:|openai:|bridge-vlm|\"")
ELSEWHERE = (
    *("visual-genome", "--plugin", "beholder bench", "glasshouse", "data verify", "data fetch", "beholder view"),
    *("LAST-RUN", "new-checkpoint", "wandb", "mlflow", "people.csv", "data collect", "replicate --run"),
    *("dinov2", "measure logs/", "inspect_ai_own_prompts", "folder:PATH", "photographs="),
)
"""Commands that need data or libraries we do not have, and commands that other tests run."""
LITTLE = {"audit": ["--limit", "2", "--draws", "100"], "measure": ["--draws", "100"]}
FILES = {
    "captions.txt": "a dog and a person\nMeryl Streep and Denzel Washington, actress and actor\n",
    "prompts.csv": "text\na photo of a warm person\na photo of a cold person\n",
    "concepts.csv": "text\na hat\na tie\n",
    "traits.csv": "trait,valence\npunctual,positive\nabsent-minded,negative\n",
    "templates.csv": "template,text\nQ1,Is this person {}?\nQ2,Would you call the person {}?\n",
    "ratings.csv": "image,trait,mean,n\nfaces/000,warmth,3.1,9\nfaces/001,warmth,2.9,9\n",
}


def commands() -> Iterator[tuple[str, list[str]]]:
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.partition(" #")[0].strip()
                runnable = command.startswith("beholder ") and PLACEHOLDER.search(command)
                if runnable and not any(word in command for word in ELSEWHERE):
                    yield f"{page.name}: {command}", shlex.split(command)[1:]


COMMANDS = dict(commands())
MODEL = re.compile(
    r"onnx:.+|openai:.+|\./.+|bridge-vlm|MODEL|OpenCLIP .+|Qwen2\.5-VL-3B-Instruct|[\w-]+/[\w.-]+(?<!\.json)"
)


def replaced(word: str, *, data: Path, people: Path) -> str:
    """The word, or its stand-in."""
    if word.startswith("folder:/data/"):
        return f"folder:{people}"
    known = {"DIR": str(data), "RUN": "null-run", "ViT-B/32": "ViT-B/32"}
    vectors = data / "word2vec" / "GoogleNews-vectors-negative300-bolukbasi.bin"
    known["GoogleNews.bin"] = str(vectors)
    return known.get(word) or ("null" if MODEL.fullmatch(word) else word)


def write_scores(files: Sequence[str], name: str, dataset: str | None, data: Path) -> None:
    """Random scores of the first images of a study, association in the first file and names in the second."""
    rng = np.random.default_rng(0)
    study = STUDIES[name]
    tasks = study.asks.tasks(load_dataset(dataset or default_dataset(study, data), data))
    for number, file in enumerate(files):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        if not Path(file).suffix or file.endswith(".json"):
            path = Path(file) if file.endswith(".json") else Path(file, "results.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_detections(path, tasks[0].dataset.table["image_id"].to_list()[:60], rng)
            continue
        parts = [task for task in tasks if len(files) == 1 or (task.kind == "identity") == bool(number)]
        sheets = [
            pl.DataFrame({"image_id": task.dataset.table["image_id"].cast(pl.String).head(40)})
            .join(task.prompts.table.select("prompt_id"), how="cross")
            .with_columns(score=pl.Series(rng.random(min(40, len(task.dataset)) * len(task.prompts))))
            for task in parts
        ]
        table = pl.concat(sheets)
        table.write_csv(file) if file.endswith(".csv") else table.write_parquet(file)


def write_detections(path: Path, images: list[str], rng: np.random.Generator) -> None:
    records = [
        {"image_id": int(image), "category_id": number, "bbox": [0, 0, 9, 9], "score": float(rng.random())}
        for image in images
        for number in (1, 2)
    ]
    path.write_text(json.dumps(records))
    labels = {"categories": [{"id": 1, "name": "tie"}, {"id": 2, "name": "handbag"}]}
    path.with_name("labels.json").write_text(json.dumps(labels))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def null_run(data: Path, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of noise, for the commands that take one."""
    out = tmp_path_factory.mktemp("run") / "null-run"
    places = ("--data", str(data), "--out", str(out), "--store", str(store))
    run("audit", "null", "--study", "apa", *places, *LITTLE["audit"])
    return out


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_runs(
    line: str,
    data: Path,
    store: Path,
    tmp_path: Path,
    people: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("beholder.comparison.power.STEPS", 0)  # that they run is asked, not what they find
    monkeypatch.setenv("BEHOLDER_STORE", str(store))
    if "--figures" not in COMMANDS[line]:  # charts are drawn in the tests of each study
        request.getfixturevalue("undrawn")
    for name, text in FILES.items():
        Path(name).write_text(text)
    folder = people(12)
    table = folder / "people.csv"
    table.write_text(
        table.read_text().replace("gender", "gender,age", 1).replace("woman", "woman,30").replace("man\n", "man,60\n")
    )
    words = [replaced(word, data=data, people=folder) for word in COMMANDS[line]]
    words = [word for word in words if word not in ("--device", "shard", "--allow-pickle")]
    if "--templates" in words:  # own wordings are questions, and the null model answers none
        words = ["glasshouse/generative" if word == "null" else word for word in words]
    if "null-run" in words:
        shutil.copytree(request.getfixturevalue("null_run"), "null-run")
    if words[0] == "measure":
        named = words[words.index("--dataset") + 1] if "--dataset" in words else None
        files = [words[number + 1].rpartition("=")[2] for number, word in enumerate(words) if word == "--scores"]
        write_scores(files, words[1], named, data)
    few = (
        ["--limit", "8"] if words[0] == "audit" and "pairs" in words else []
    )  # scenes, of which two compare nothing; the last one counts
    run(*words, *LITTLE.get(words[0], ()), *few)


def run(*words: str) -> None:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, (words, result.output[-600:], result.exception)


def test_most_commands_are_among_them():
    assert len(COMMANDS) > 25
