"""What the commands' tests share: a small audit, and the answer of a command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app, main


@pytest.fixture
def invoke() -> Callable[..., str]:
    """What a command prints that ends well."""

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.csv"
    path.write_text("text,concept\na kind person,kind\na cold person,cold\n")
    return path


@pytest.fixture
def audit(people: Callable[..., Path], prompts: Path, tmp_path: Path) -> list[object]:
    folder = people(10)
    folders = ["--out", tmp_path / "run", "--store", tmp_path / "store", "--draws", 100]
    return ["audit", "null", "--prompts", prompts, "--dataset", f"folder:{folder}", "--by", "gender", *folders]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the program says on leaving with an error."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["beholder", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        return capsys.readouterr().err

    return run
