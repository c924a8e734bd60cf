"""A plain path is a data set, a list of texts is a prompt set, and a processor may come before its model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import beholder
from beholder.cli import app
from beholder.models.load import as_scorer
from beholder.models.spec import LoadOptions


def brightness(images: list[Any], prompts: list[str]) -> list[list[float]]:
    return [[sum(image.resize((1, 1)).getpixel((0, 0))) / 100 + len(prompt) for prompt in prompts] for image in images]


def test_a_path_and_a_list_of_texts_are_what_their_files_are(
    people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = people(12)
    texts = ["a kind person", "a cold person"]
    (tmp_path / "prompts.csv").write_text("\n".join(["text", *texts]) + "\n")
    common: dict[str, Any] = {"by": "gender", "draws": 100, "store": tmp_path / "store"}
    one = beholder.audit(brightness, dataset=folder, prompts=texts, out=tmp_path / "one", **common)
    other = beholder.audit(
        brightness, dataset=f"folder:{folder}", prompts=tmp_path / "prompts.csv", out=tmp_path / "two", **common
    )
    assert one.results.equals(other.results)
    assert one.results.height
    assert len(beholder.load_dataset(str(folder))) == 12
    with pytest.raises(beholder.BeholderError, match="prompts= takes a file, a PromptSet or a list of texts, not"):
        beholder.audit(brightness, dataset=folder, prompts=["", 3], out=tmp_path / "three", **common)


def test_a_processor_may_come_before_its_model(monkeypatch: pytest.MonkeyPatch):
    seen: list[Any] = []
    monkeypatch.setattr("beholder.models.load._saved", lambda *parts: seen.append(parts[:2]))
    model = SimpleNamespace(state_dict=dict, save_pretrained=print)
    processor = SimpleNamespace(save_pretrained=print)
    for given in ((model, processor), (processor, model)):
        as_scorer(given, LoadOptions())
    assert seen == [(model, (processor,))] * 2


def test_a_pair_of_onnx_files_is_a_model_by_its_folder(tmp_path: Path):
    (tmp_path / "image.onnx").write_bytes(b"no model")
    with pytest.raises(beholder.BeholderError, match=r"config\.json"):
        beholder.load_model(str(tmp_path))


def test_the_settings_of_ones_own_data_are_listed():
    said = CliRunner().invoke(app, ["data", "settings", "folder", "--json"], catch_exceptions=False).stdout
    assert '"setting": "image"' in said
    assert '"setting": "outside"' in said
