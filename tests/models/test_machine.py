"""What is free for a model: of the largest card in bytes, and nothing where no card can be asked."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from beholder.models import spec
from beholder.models.spec import this_machine


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | Exception], None]:
    """A tool of the driver's that says this, or fails so."""

    def answer(said: str | Exception) -> None:
        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            assert command[1:] == ["--query-gpu=memory.free", "--format=csv,noheader,nounits"]
            assert options["check"]
            assert options["timeout"] <= 10
            if isinstance(said, Exception):
                raise said
            return subprocess.CompletedProcess(command, 0, stdout=said)

        monkeypatch.setattr(spec.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(spec.subprocess, "run", run)

    return answer


def test_of_several_cards_the_one_with_most_mebibytes_counts(answering: Callable[[str], None]):
    answering("1024\n81000\n512\n")
    assert this_machine().gpu_memory == 81_000 * 1024 * 1024


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[N/A]\n",
        subprocess.TimeoutExpired("nvidia-smi", 10),
        subprocess.CalledProcessError(9, "nvidia-smi"),
        PermissionError(),
    ],
)
def test_a_card_that_does_not_answer_is_as_good_as_none(
    said: str | Exception, answering: Callable[[str | Exception], None]
):
    answering(said)
    assert this_machine().gpu_memory == 0


def test_without_the_tool_there_is_no_card_and_main_memory_is_more_than_a_little(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spec.shutil, "which", lambda name: None)
    found = this_machine()
    assert found.gpu_memory == 0
    assert 2**26 < found.memory < 2**50
