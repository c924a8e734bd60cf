"""A user's own Python is run where it is named, and nowhere else."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from beholder.core.catalog import ENVIRONMENT, Catalog, entry_points_of, load_plugins
from beholder.core.errors import BrokenPlugin, UsageError


@pytest.fixture(autouse=True)
def modules_as_they_were() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(folder: Path, name: str, code: str) -> Path:
    (folder / name).write_text(code)
    return folder / name


def test_a_file_is_run_once_and_found_under_its_name(tmp_path: Path):
    path = written(tmp_path, "my_colours.py", "import pickle\nclass Colour: pass\npickle.dumps(Colour())")
    load_plugins([str(path), str(path)])
    assert sys.modules["my_colours"].Colour.__module__ == "my_colours"


def test_a_file_that_was_imported_before_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, "imported_before.py", "ran = []")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("imported_before")
    load_plugins([path.name])
    assert sys.modules["imported_before"] is module


def test_those_of_the_environment_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first, second = (
        written(tmp_path, f"plug_{n}.py", f"import sys; sys.ran = getattr(sys, 'ran', '') + '{n}'") for n in "ab"
    )
    monkeypatch.setattr(sys, "ran", "", raising=False)
    monkeypatch.setenv(ENVIRONMENT, os.pathsep.join(["", str(first)]))
    load_plugins([str(second)])
    assert sys.ran == "ab"


def test_a_module_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written(tmp_path, "my_module.py", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_plugins(["my_module"])
    assert "my_module" in sys.modules


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("broken.py", "1 / 0", "broken.py failed: ZeroDivisionError"), ("json.py", "", "already loaded: rename the file")],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, code: str, said: str):
    import json  # noqa: F401  (so that its name is taken)

    with pytest.raises(UsageError, match=said):
        load_plugins([str(written(tmp_path, name, code))])


def test_a_plug_in_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="There is no plug-in at"):
        load_plugins([str(tmp_path / "none.py")])
    with pytest.raises(UsageError, match="no_such_module failed: ModuleNotFoundError"):
        load_plugins(["no_such_module"])


def test_a_broken_plug_in_can_be_mended_and_run_again(tmp_path: Path):
    path = written(tmp_path, "mended.py", "1 / 0")
    with pytest.raises(UsageError):
        load_plugins([str(path)])
    path.write_text("right = True")
    load_plugins([str(path)])
    assert sys.modules["mended"].right


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that brings things along; the first is whole, the second broken, the third known already."""
    written(tmp_path, "made_elsewhere.py", "from beholder.core import catalog\nHARE = 'a hare'\nimported = True\n")
    written(tmp_path, "made_badly.py", "1 / 0\n")
    info = tmp_path / "zoo_things-1.0.dist-info"
    info.mkdir()
    written(info, "METADATA", "Metadata-Version: 2.1\nName: zoo-things\nVersion: 1.0\n")
    points = "hare = made_elsewhere:HARE\nsnark = made_badly:SNARK\nhorse = made_badly:HORSE"
    written(info, "entry_points.txt", f"[beholder.animals]\n{points}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points_of.cache_clear()
    yield tmp_path
    entry_points_of.cache_clear()


@pytest.mark.usefixtures("package")
def test_an_installed_package_adds_names_that_are_imported_when_used(caplog: pytest.LogCaptureFixture):
    animals: Catalog[object] = Catalog("animal", {"horse": "a horse"}, installed="beholder.animals")
    assert list(animals) == ["horse", "hare", "snark"]
    assert "made_elsewhere" not in sys.modules
    assert animals["hare"] == "a hare"
    assert animals["horse"] == "a horse"
    assert not animals.came_with_beholder("hare")
    assert "'horse' of the package zoo-things is left out" in caplog.text


@pytest.mark.usefixtures("package")
def test_a_broken_one_is_told_by_name_and_the_others_work(caplog: pytest.LogCaptureFixture):
    animals: Catalog[object] = Catalog("animal", {"horse": "a horse"}, installed="beholder.animals")
    with pytest.raises(BrokenPlugin, match="animal 'snark' of the package zoo-things cannot be loaded: ZeroDivision"):
        animals["snark"]
    assert animals.values() == ["a horse", "a hare"]
    assert caplog.text.count("'snark'") == 1
    assert animals.values() == ["a horse", "a hare"]
    assert caplog.text.count("'snark'") == 1, "it is told once"


@pytest.mark.slow
def test_a_model_of_an_installed_package_goes_by_its_name(tmp_path: Path):
    """A real little package beside Beholder, in a Python of its own."""
    written(
        tmp_path,
        "noisy.py",
        "from beholder.models.catalog import Family\nfrom beholder.models.scorer import NullScorer\n"
        "FAMILY = Family('noisy', 'baseline', 'noise', lambda rest, options: NullScorer(5), form='noisy:ANY')\n",
    )
    info = tmp_path / "noisy-1.0.dist-info"
    info.mkdir()
    written(info, "METADATA", "Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    written(
        info, "entry_points.txt", "[beholder.models]\nnoisy = noisy:FAMILY\n[beholder.studies]\nlost = nowhere:IT\n"
    )
    code = (
        "from beholder import load_model; from beholder.ext import STUDIES; print(load_model('noisy:x').spec.name);"
        "print(len(STUDIES.values())); from beholder.models.catalog import FAMILIES; print('noisy' in FAMILIES)"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["null:5", "10", "True"]
    assert "The study 'lost' of the package noisy cannot be loaded: ModuleNotFoundError" in done.stderr
