"""`beholder store`: what is stored, whether it is sound, and what can go."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.runs import AGES, SIZES, _parsed
from beholder.core.errors import MissingData, UnknownName, UsageError
from beholder.datasets import load_dataset
from beholder.models.scorer import NullScorer
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store


@pytest.fixture
def store(people: Callable[..., Path], tmp_path: Path) -> Path:
    """Two models, six images, three prompts."""
    task = Task(
        "words",
        load_dataset(f"folder:{people(6)}"),
        prompt_set("words", [{"text": word} for word in ("warm", "cold", "wet")]),
    )
    for seed in (0, 1):
        fill([task], NullScorer(seed), Store(tmp_path / "store"))
    return tmp_path / "store"


def shown(store: Path, invoke: Callable[..., str]) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(invoke("store", "--store", store, "--json"))}


def verified(store: Path) -> tuple[int, dict[str, list[str]]]:
    result = CliRunner().invoke(app, ["store", "verify", "--store", str(store), "--json"], catch_exceptions=False)
    return result.exit_code, json.loads(result.stdout)


def test_what_is_stored_is_shown_by_model(store: Path, invoke: Callable[..., str]):
    rows = shown(store, invoke)
    assert [(row["images"], row["prompts"], row["blocks"]) for row in rows.values()] == [(6, 3, 1), (6, 3, 1)]
    assert rows["null:1"]["bytes"] == sum(
        path.stat().st_size for path in (store / rows["null:1"]["folder"]).rglob("*") if path.is_file()
    )
    assert "null:1" in invoke("store", "--store", store)


def test_a_store_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(MissingData, match="no store at"):
        CliRunner().invoke(app, ["store", "--store", str(tmp_path / "no")], catch_exceptions=False)


def test_a_sound_store_passes(store: Path):
    code, found = verified(store)
    assert (code, found) == (0, {"blocks": 2, "rows": 12, "problems": [], "notes": []})


def first(store: Path, pattern: str) -> Path:
    return sorted(store.glob(pattern))[0]


def exchange(one: Path, other: Path) -> None:
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def exchange_rows(store: Path) -> None:
    with closing(sqlite3.connect(store / "digests.sqlite")) as connection, connection:
        (one, a), (two, b) = connection.execute("select stamp, digest from files limit 2")
        connection.execute("update files set digest = ? where stamp = ?", (b, one))
        connection.execute("update files set digest = ? where stamp = ?", (a, two))


def change_an_image(store: Path) -> None:
    path = store.parent / "people" / "00002.png"
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda store: first(store, "*/scores/*/*.parquet").write_bytes(b""), "not those that were written"),
        (lambda store: first(store, "*/complete/*.json").write_text("{}"), "is damaged"),
        (lambda store: first(store, "*/spec.json").unlink(), "is missing or damaged"),
        (lambda store: exchange(*store.glob("*/spec.json")), "describes another model"),
        (lambda store: first(store, "*/scores/*/*.parquet").unlink(), "6 contents were scored; 0 are here"),
        (lambda store: (store / "notes.txt").write_text("mine"), "no part of a store"),
        (lambda store: exchange_rows(store), "2 rows have a wrong seal"),
        (lambda store: change_an_image(store), "00002.png: its content is not what"),
    ],
)
def test_whatever_is_wrong_is_told(store: Path, spoil: Callable[[Path], object], told: str):
    spoil(store)
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    code, found = verified(store)
    assert code == 1
    assert told in "\n".join(found["problems"])
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*")}


def test_a_block_of_another_model_is_told(store: Path):
    one, two = store.glob("*/scores/*")
    shutil.copy(next(one.glob("*.parquet")), two)
    assert "another place of the store (other model)" in verified(store)[1]["problems"][0]


def test_leftovers_and_open_folders_are_notes(store: Path, invoke: Callable[..., str]):
    block = first(store, "*/scores/*/*.parquet")
    shutil.copy(block, block.with_suffix(".damaged"))
    store.chmod(0o755)
    code, found = verified(store)
    assert (code, len(found["notes"])) == (0, 2)
    invoke("store", "clean", "--store", store, "--leftovers", "--yes")
    assert len(verified(store)[1]["notes"]) == 1


def test_models_are_removed_by_name_age_and_size(store: Path, invoke: Callable[..., str]):
    old = store / shown(store, invoke)["null"]["folder"]
    for path in old.rglob("*"):
        os.utime(path, (1, 1))
    invoke("store", "clean", "--store", store, "--older-than", "30d", "--larger-than", "1GB", "--yes")
    invoke("store", "clean", "--store", store, "--older-than", "30d")  # nobody says yes
    assert set(shown(store, invoke)) == {"null", "null:1"}
    invoke("store", "clean", "--store", store, "--older-than", "30d", "--larger-than", "1KB", "--yes")
    assert set(shown(store, invoke)) == {"null:1"}
    invoke("store", "clean", "--store", store, "--model", "null:1", "--yes")
    assert shown(store, invoke) == {}


def test_what_to_remove_must_be_said_and_known(store: Path):
    for arguments, error in (([], UsageError), (["--model", "nul"], UnknownName)):
        with pytest.raises(error):
            CliRunner().invoke(app, ["store", "clean", "--store", str(store), *arguments], catch_exceptions=False)


def test_ages_and_sizes_are_read_with_their_units():
    assert _parsed("1.5d", AGES, "--older-than", "30d") == 1.5 * 86400
    assert _parsed("10 gb", SIZES, "--larger-than", "10GB") == 1e10
    with pytest.raises(UsageError, match="such as 10GB"):
        _parsed("10", SIZES, "--larger-than", "10GB")
