"""A run is a file: options by their names, flags above them, every mistake with its line; paths begin in its folder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import UsageError


@pytest.fixture
def config(people: Callable[..., Path], tmp_path: Path) -> Path:
    words = tmp_path / "words.csv"
    words.write_text("text\nkind\ncold\n")
    path = tmp_path / "audit.toml"
    path.write_text(
        "# what our release is audited with\n"
        'models = "null"\n'
        f'dataset = "folder:{people(12).name}"\n'
        'prompts = "words.csv"\n'
        'by = ["gender"]\n'
        "draws = 100\n"
        'out = "run"\n'
        'store = "store"\n'
    )
    return path


def run(*arguments: object) -> None:
    CliRunner().invoke(app, ["audit", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.slow
def test_a_file_makes_the_run_and_the_run_makes_the_file(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--config", config, "-q")
    first = pl.read_parquet(tmp_path / "run" / "results.parquet")
    written = tmp_path / "run" / "audit.toml"
    assert tomllib.loads(written.read_text())["models"] == ["null"]
    # From another folder, and after everything was moved together
    monkeypatch.chdir(tmp_path / "store")
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    run("--config", moved / "audit.toml", "--out", tmp_path / "again", "-q")
    assert pl.read_parquet(tmp_path / "again" / "results.parquet").equals(first)
    said = tomllib.loads((moved / "audit.toml").read_text())
    assert said["dataset"] == "folder:" + os.path.relpath(tmp_path / "people", tmp_path / "run")


def test_flags_win(config: Path, tmp_path: Path) -> None:
    run("null:7", "--config", config, "--out", tmp_path / "other", "-q")
    assert set(pl.read_parquet(tmp_path / "other" / "results.parquet")["model"]) == {"null:7"}
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('sudy = "apa"', "line 9: 'sudy' is not known. Did you mean 'study'?"),
        ('limit = "many"', "line 9: 'limit' is 'many'. Input should be a valid integer"),
        ("limit = [1, 2]", "line 9: 'limit' takes one value, not"),
        ("study = [[]]", r"line 9: 'study' takes a list of plain values, not \[\[\]\]"),
        ("limit = 0", "line 9: 'limit' is 0. Input should be greater than or equal to 1"),
        ("draws = ", "is not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_line(config: Path, line: str, message: str) -> None:
    config.write_text(config.read_text() + line + "\n")
    with pytest.raises(UsageError, match=message.replace("?", r"\?").replace("(", r"\(")):
        run("--config", config)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not there"):
        run("--config", tmp_path / "nothing.toml")
