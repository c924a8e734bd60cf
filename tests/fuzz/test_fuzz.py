"""Whatever a file holds, only errors of ours come out; files that once failed are read again in every run.

`make fuzz` runs many more cases (`fuzz.py`), in processes that may die.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import fuzz
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mutations import damaged
from targets import Target, targets

HEAVY = 0.1
"""Targets of less weight load a model: the long run has them."""
LIGHT = {name: target for name, target in targets().items() if target.weight >= HEAVY}
KEPT = [path for path in sorted(fuzz.CORPUS.iterdir()) if path.name.partition("@")[0] in LIGHT]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def checked(target: Target, data: bytes, scratch: Path) -> None:
    error = fuzz.attempt(target, scratch, data)
    if error is not None:
        raise AssertionError(fuzz.place_of(error)) from error


@pytest.mark.parametrize("name", sorted({path.name.partition("@")[0] for path in KEPT}))
def test_what_once_failed_is_told(name: str, scratch: Path) -> None:
    for path in KEPT:
        if path.name.partition("@")[0] == name:
            checked(LIGHT[name], path.read_bytes(), scratch)


@pytest.mark.parametrize("name", sorted(LIGHT))
def test_a_sound_file_is_read(name: str, scratch: Path) -> None:
    target = LIGHT[name]
    if name != "model.name":  # there is no network
        target.call(target.prepare(scratch))


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
@pytest.mark.parametrize("name", sorted(name for name, target in LIGHT.items() if target.weight == 1))
def test_a_damaged_file_is_told(name: str, scratch: Path, data: st.DataObject) -> None:
    target = LIGHT[name]
    rng: Random = data.draw(st.randoms(use_true_random=False))
    checked(target, damaged(target.file, target.files[target.file], rng), scratch)


@pytest.mark.slow
def test_a_process_that_dies_or_hangs_is_counted(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(fuzz.__file__)), "rules", "labels", "--cases", "40", "--no-keep"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "40 cases of 2 targets" in done.stdout
    assert done.returncode == 0, done.stdout
