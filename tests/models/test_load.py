"""A model's name finds its adapter, or says what exists and what to do."""

from __future__ import annotations

import builtins
import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beholder.core.errors import MissingExtra, ModelError, UnknownName, UsageError
from beholder.models import load
from beholder.models.catalog import FAMILIES, Family
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import NullScorer

Folders = Callable[[str], Path]


def test_null_takes_a_seed() -> None:
    assert load_model("null").spec.name == "null"
    assert load_model("null:7").spec.revision == "7"
    with pytest.raises(ModelError, match="a whole number, as in null:7, not 'x'"):
        load_model("null:x")


@pytest.mark.parametrize("name", ["", "clip", "spam:eggs", "onnx"])
def test_a_name_of_no_known_form_answers_with_the_forms(name: str) -> None:
    with pytest.raises(UnknownName, match=r"onnx:DIR"):
        load_model(name)


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a/b/c", "~/nowhere-at-all"])
def test_a_folder_that_is_not_there_is_told_without_asking_the_hub(name: str) -> None:
    with pytest.raises(ModelError, match="There is no model folder"):
        load_model(name)


def test_a_folder_without_config_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").touch()
    with pytest.raises(ModelError, match=r"has no config.json.*\nIt holds: weights.bin"):
        load_model(str(tmp_path))


def test_a_broken_config_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": \n')
    with pytest.raises(ModelError, match=r"config.json is not readable JSON: .*line 2"):
        load_model(str(tmp_path))


def test_reference_models_are_found_by_name(
    tiny_model: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_model("clip"), tmp_path / "contrastive")
    monkeypatch.setattr(load, "REFERENCE_MODELS", tmp_path)
    assert load_model("glasshouse/contrastive").spec.name == "glasshouse/contrastive"
    with pytest.raises(UnknownName, match="Did you mean 'glasshouse/contrastive'"):
        load_model("glasshouse/contrastiv")


def test_wrong_options_are_told() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'float16'"):
        LoadOptions(precision="float61")
    with pytest.raises(UsageError, match="at least 1"):
        LoadOptions(batch_size=0)


def test_a_device_that_is_not_here_is_told(tiny_model: Folders) -> None:
    with pytest.raises(ModelError, match=r"no device 'cuda:9'.\nIt has: auto, cpu"):
        load_model(str(tiny_model("clip")), LoadOptions(device="cuda:9"))


def test_batch_size_is_the_users_if_given(tiny_model: Folders) -> None:
    assert load_model(str(tiny_model("clip")), LoadOptions(batch_size=5)).batch_size == 5


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("torch_scorer", "torch", "torch"),
        ("contrastive.onnx", "onnxruntime", "onnx"),
        ("checkpoint.files", "huggingface_hub", "torch"),
    ],
)
def test_a_missing_library_says_what_to_install(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real_import(name, *rest, **options)

    monkeypatch.delitem(sys.modules, f"beholder.models.{module}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=rf"pip install 'beholder-audit\[{extra}\]'"):
        importlib.import_module(f"beholder.models.{module}").fetch("a/b", LoadOptions())


def test_knowing_the_names_needs_neither_torch_nor_onnxruntime() -> None:
    code = (
        "import sys, beholder.models.load as load; load.load_model('null'); load.reference_models();"
        "assert not {'torch', 'transformers', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": _sources()})


def _sources() -> str:
    return str(Path(load.__file__).parents[2])


def test_a_printed_name_that_looks_like_a_folder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    opener = lambda name, options: asked.append(name) or NullScorer()  # noqa: E731
    fake = Family("openclip", "contrastive", "a fake", opener, form="openclip:ARCH/TAG")
    monkeypatch.setitem(FAMILIES._things, "openclip", fake)
    load_model("ViT-B/32 w/ L2B")
    assert asked == ["ViT-B-32/laion2b_s34b_b79k"]


def test_a_name_near_a_printed_one_is_suggested_when_the_hub_does_not_help() -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(ModelError, match=r"did you mean 'ViT-B/32'"):
        load_model("ViT-B/33")
