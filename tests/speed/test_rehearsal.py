"""Every way that is timed gives the answers of the loop; the floor is the tree's where the prefix can be shared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from beholder.core.errors import OutOfMemory, UnknownName

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import rehearsal as generative  # noqa: E402
from architectures import ARCHITECTURES, architecture  # noqa: E402
from rehearsal import Effort, Rehearsal, Shape, rehearse  # noqa: E402

from beholder.cli import app  # noqa: E402

SHAPE = Shape(before=3, trunk=4, branch=3, leaf=5, branches=2, leaves=6)
EFFORT = Effort(pictures=2, loop=4, batch=6, repeats=1)


def tiny(name: str) -> Any:
    return architecture(name).build(tiny=True, device="cpu", dtype=torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_all_ways_answer_alike(name: str) -> None:
    said: list[str] = []
    lines = list(rehearse(architecture(name), tiny(name), SHAPE, EFFORT, tell=said.append))
    ways = [line.way.split(",")[0].split(":")[0] for line in lines]
    copied = [] if name.startswith("paligemma") else ["prefix's keys and values copied"]
    assert ways == ["authors' loop", "whole prompts", *copied, "ours", "floor"]
    assert all(line.per_second > 0 for line in lines)
    assert all(line.difference <= 1e-5 for line in lines if line.difference is not None)
    assert any("share what they begin with" in text for text in said) == bool(copied)


@pytest.mark.slow
def test_the_floor_counts_what_must_be_read() -> None:
    """Of a shared prefix the unique tokens: 7 + 16 of the picture, 2 branches of 3, 12 leaves of 5."""
    said: list[str] = []
    for name in ("llava-1.5-7b", "paligemma2-3b"):
        built, model = architecture(name), tiny(name)
        generative.floor(built, model, Rehearsal.of_shape(built, model, SHAPE), said.append)
    assert said[0].startswith(f"{7 + 16 + 2 * 3 + 12 * 5} unique tokens")
    assert said[1].startswith(f"{12 * (7 + 16 + 3 + 5)} tokens")


@pytest.mark.slow
def test_copies_that_do_not_fit_are_made_fewer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inner, sizes = generative.copied_prefix, []

    def small(asked: Any, texts: Any, seen: Any) -> Any:
        sizes.append(len(texts))
        if len(texts) > 4:
            raise OutOfMemory("The model ran out of memory")
        return inner(asked, texts, seen)

    monkeypatch.setattr(generative, "copied_prefix", small)
    lines = list(rehearse(architecture("llava-1.5-7b"), tiny("llava-1.5-7b"), SHAPE, EFFORT))
    assert [line.way for line in lines if "copied" in line.way] == ["prefix's keys and values copied, 3 at once"]
    assert sizes[:3] == [4, 12, 6]


@pytest.mark.slow
def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generative, "Shape", lambda: SHAPE)
    options = ["--device", "cpu", "--pictures", "2", "--at-once", "2", "--loop", "2", "--repeats", "1", "--json"]
    result = CliRunner().invoke(app, ["bench", "generative", "llava-1.5-7b", *options], catch_exceptions=False)
    assert result.exit_code == 0
    (lines,) = json.loads(result.stdout).values()
    assert len(lines) == 5


def test_an_unknown_architecture_is_told_with_those_that_exist() -> None:
    with pytest.raises(UnknownName, match=r"qwen2\.5-vl-3b"):
        architecture("qwen")
