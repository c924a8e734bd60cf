"""The shape of the house: imports point down, studies are rooms, and nothing outside a room names it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from beholder.studies import STUDIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "beholder"
NAMES = set(STUDIES)
DATA_SETS = ("datasets", "glasshouse")
"""Two data sets are called as their studies are: apa and gras."""
OUTSIDE = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).parts[0] not in DATA_SETS and "studies" not in path.relative_to(SOURCE).parts[:-1]
]
SHARED = sorted((SOURCE / "studies").glob("*.py"))


def strings(path: Path) -> list[str]:
    """Every string constant of a module, the pieces of f-strings too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


@pytest.mark.parametrize("path", [*OUTSIDE, *SHARED], ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_outside_a_room_names_a_study(path: Path):
    if path == SOURCE / "studies" / "__init__.py":
        return  # the one list
    named = [text for text in strings(path) if text in NAMES or (text.split(".")[0] in NAMES and "." in text)]
    named = [text for text in named if not re.search(r"\s", text)]
    rooms = [module for module in imports(path) if re.match(rf"beholder\.studies\.({'|'.join(NAMES)})\b", module)]
    assert not named
    assert not rooms


def test_imports_point_down_and_rooms_do_not_know_each_other():
    """In a process of its own: import-linter switches off the loggers of the one that it runs in."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_drawing_of_the_packages_is_of_those_there_are():
    code = "import architecture as a; a.draw(); assert {*sum(a.layers(), [])} == {*a.WHAT}, a.layers()"
    tools = ROOT / "tools"
    done = subprocess.run([sys.executable, "-c", code], cwd=tools, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_import_of_ours_inside_a_function_without_a_reason():
    bare = []
    for path in sorted(SOURCE.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if re.match(r"\s+(from|import) beholder\b", line) and not _explained(lines, number):
                bare.append(f"{path.relative_to(SOURCE)}:{number + 1}")
    assert not bare


def _explained(lines: list[str], number: int) -> bool:
    """A comment in the line or above its block; imports for type checkers need none, nor examples in docstrings."""
    for line in reversed(lines[:number]):
        stripped = line.strip()
        if stripped.startswith("if TYPE_CHECKING") or stripped.startswith("#"):
            return True
        if stripped and not stripped.startswith(("from ", "import ")):
            break
    return "#" in lines[number] or ('"""' in "".join(lines[:number]) and "".join(lines[:number]).count('"""') % 2 == 1)
