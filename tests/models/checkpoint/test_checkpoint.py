"""A checkpoint is loaded whole or not at all, and its digest stands for what moves a score."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

Folders = Callable[[str], Path]


def rewrite_weights(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def rewrite_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_missing_weights_are_named(clip_copy: Path) -> None:
    rewrite_weights(clip_copy, lambda weights: weights.pop("visual_projection.weight"))
    with pytest.raises(ModelError, match=r"missing: visual_projection.weight"):
        load_model(str(clip_copy))


def test_unexpected_weights_are_named(clip_copy: Path) -> None:
    rewrite_weights(clip_copy, lambda weights: weights.update({"adapter.weight": torch.zeros(2)}))
    with pytest.raises(ModelError, match=r"unexpected: adapter.weight"):
        load_model(str(clip_copy))


def test_weights_of_another_shape_are_named(clip_copy: Path) -> None:
    rewrite_weights(clip_copy, lambda weights: weights.update({"text_projection.weight": torch.zeros(2, 2)}))
    with pytest.raises(ModelError, match=r"of another shape: text_projection.weight"):
        load_model(str(clip_copy))


def test_stored_position_numbers_are_harmless(clip_copy: Path) -> None:
    numbers = {"text_model.embeddings.position_ids": torch.arange(40)[None]}
    rewrite_weights(clip_copy, lambda weights: weights.update(numbers))
    assert load_model(str(clip_copy)).batch_size


def test_a_cut_off_weights_file_is_told(clip_copy: Path) -> None:
    weights = clip_copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot be"):
        load_model(str(clip_copy))


def pickle_weights(folder: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def test_pickled_weights_are_read_only_when_allowed(clip_copy: Path, tiny_model: Folders) -> None:
    pickle_weights(clip_copy)
    with pytest.raises(ModelError, match=r"only as pytorch_model.bin.*\n.*--allow-pickle"):
        load_model(str(clip_copy))
    allowed: Any = load_model(str(clip_copy), LoadOptions(allow_pickle=True))
    safe: Any = load_model(str(tiny_model("clip")))
    np.testing.assert_allclose(allowed.embed_texts(["dog"]), safe.embed_texts(["dog"]), atol=1e-6)


def test_a_folder_without_weights_says_what_it_holds(clip_copy: Path) -> None:
    (clip_copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has no weights(.|\n)*It holds: config.json"):
        load_model(str(clip_copy))


def test_code_in_the_folder_is_not_run_unasked(clip_copy: Path) -> None:
    (clip_copy / "modeling_own.py").write_text("raise SystemExit('code of the folder was run')")
    rewrite_json(clip_copy / "config.json", model_type="own", auto_map={"AutoConfig": "modeling_own.OwnConfig"})
    with pytest.raises(ModelError, match=r"brings code of its own.*\n.*--trust-remote-code"):
        load_model(str(clip_copy))


def test_an_unknown_model_type_is_told(clip_copy: Path) -> None:
    rewrite_json(clip_copy / "config.json", model_type="clop")
    with pytest.raises(ModelError, match="knows no model type 'clop'"):
        load_model(str(clip_copy))


def test_a_model_of_one_tower_is_told(tmp_path: Path, tiny_model: Folders) -> None:
    from transformers import CLIPTextConfig, CLIPTextModel

    shutil.copytree(tiny_model("clip"), tmp_path / "words")
    config = CLIPTextConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4)
    CLIPTextModel(config).save_pretrained(tmp_path / "words")
    with pytest.raises(ModelError, match=r"CLIPTextModel.*no tower for single images beside one for texts"):
        load_model(str(tmp_path / "words"))


def test_a_missing_tokenizer_is_told(clip_copy: Path) -> None:
    (clip_copy / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer: .*tokenizer.json(.|\n)*It holds: config.json"):
        load_model(str(clip_copy))


def test_a_missing_image_processor_is_told(clip_copy: Path) -> None:
    (clip_copy / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match=r"preprocessor_config.json"):
        load_model(str(clip_copy))


def test_loading_prints_nothing(tiny_model: Folders, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tiny_model("clip"))
    capfd.readouterr()  # what making it printed
    load_model(folder)
    assert capfd.readouterr() == ("", "")


def test_the_digest_is_of_the_contents_not_of_the_place(tiny_model: Folders, clip_copy: Path) -> None:
    (clip_copy / "README.md").write_text("a note")
    here, there = load_model(str(tiny_model("clip"))), load_model(str(clip_copy), LoadOptions(device="cpu"))
    assert here.spec.name != there.spec.name
    assert (here.spec.weights, here.spec.digest) == ("folder", there.spec.digest)


def test_another_crop_is_another_model(tiny_model: Folders, clip_copy: Path) -> None:
    rewrite_json(clip_copy / "preprocessor_config.json", do_center_crop=False, size={"height": 32, "width": 32})
    assert load_model(str(clip_copy)).spec.digest != load_model(str(tiny_model("clip"))).spec.digest


def test_another_logit_scale_is_another_model(tiny_model: Folders, clip_copy: Path) -> None:
    rewrite_weights(clip_copy, lambda weights: weights.update({"logit_scale": torch.tensor(3.0)}))
    changed, before = load_model(str(clip_copy)).spec, load_model(str(tiny_model("clip"))).spec
    assert changed.settings["logit_scale"] == pytest.approx(20.0855, abs=1e-3)
    assert changed.digest != before.digest
