"""Run the examples of the docs: Python, files that are shown, and commands that need no other data.

A block runs unless `<!-- not run: REASON -->` stands before it. A block after a line that ends in a file's name and a
colon is that file. All blocks of a page share a folder and their Python names.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from beholder.cli import app

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\n)?(?:[^\n]*`(?P<file>[\w./-]+)`:\n\n)?"
    r"```(?P<kind>python|bash|csv|json|toml)\n(?P<text>.*?)```",
    re.DOTALL,
)
NEEDS_MORE = re.compile(
    r"\b(DIR|MODEL|RUN|PICTURE|CLIP|BRIDGE)\b|/data/|openai[:/]|onnx:|--data data|bridge-vlm|\.parquet|[\"']|"
    r"\b(google|llava-hf|Qwen|Salesforce|identity\.csv|traits\.csv|albef|my-vlm)\b|calibrate|bench\b|cuda|mine\.py|"
    r"VLbias|bias-run|--with-photographs|"
    r"audit (glasshouse/\w+ )?--study (perception|gras|disparity)"
)
"""A command with one of these needs a model, photographs, scores or minutes, or is part of `make demo`."""


class Block(NamedTuple):
    kind: str
    text: str
    file: str | None


def blocks(page: Path) -> list[Block]:
    matches = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(match["kind"], match["text"], match["file"]) for match in matches if not match["reason"]]


def commands(block: Block) -> Iterator[list[str]]:
    for line in block.text.replace("\\\n", " ").splitlines():
        command = line.partition(" #")[0].strip()
        if block.kind == "bash" and command.startswith("beholder ") and not NEEDS_MORE.search(command):
            yield shlex.split(command)[1:]


def runs(page: Path) -> bool:
    return any(block.kind == "python" or list(commands(block)) for block in blocks(page))


PAGES = [page for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]) if runs(page)]


@pytest.fixture
def example_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with docs/examples in it; what examples add to Beholder is removed after them."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("beholder.comparison.power.STEPS", 0)  # that they run is asked, not what they find
    monkeypatch.setenv("BEHOLDER_STORE", str(tmp_path / "store"))
    for path in (ROOT / "docs" / "examples").glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)  # another test may have loaded it
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.usefixtures("quick_plans", "undrawn")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, example_folder: Path):
    names: dict[str, Any] = {"__name__": "example"}
    for number, block in enumerate(blocks(page), start=1):
        if block.file:
            path = example_folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            exec(compile(block.text, f"{page.name}, block {number}", "exec"), names)
        for words in commands(block):
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, (words, result.output, result.exception)


def test_most_pages_have_something_to_run():
    assert {"add-a-model.md", "add-a-dataset.md", "add-a-study.md", "add-a-prompt-set.md", "scores.md"} <= {
        page.name for page in PAGES
    }
