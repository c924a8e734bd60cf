"""The conversion commands of the docs, on tiny checkpoints with the published key names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")

import convert_checkpoint
import torch
import transformers
from conformance import matching
from safetensors.torch import load_file, save_file

from beholder.models.load import load_model
from beholder.models.torch_scorer import sample_picture


def test_albef_loads_without_a_flag(tmp_path: Path) -> None:
    published = matching.make_albef(tmp_path / "published")
    weights = load_file(published / "model.safetensors")
    pickled, out = tmp_path / "ALBEF.pth", tmp_path / "albef"
    torch.save({"model": weights | {"queue_ptr": torch.zeros(1)}}, pickled)
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary_of(published)))
    convert_checkpoint.main(["albef", str(pickled), str(tmp_path / "vocab.txt"), str(out)])
    config = json.loads((published / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config))  # the published sizes are the defaults; these are tiny
    scorer, theirs = load_model(str(out)), load_model(str(published))
    picture = sample_picture()
    ours, same = (each.score_prepared([each.prepare(picture)], ["a nurse"]) for each in (scorer, theirs))
    assert np.array_equal(ours, same)


def vocabulary_of(folder: Path) -> list[str]:
    """The words of a folder's tokenizer, in the order of their numbers."""
    words: dict[str, int] = transformers.AutoTokenizer.from_pretrained(folder).get_vocab()
    return sorted(words, key=lambda word: words[word])


@pytest.mark.parametrize("prefix", ["", "base_model.model."])
def test_phi4_takes_its_picture_weights_in(prefix: str, tmp_path: Path) -> None:
    """Merged weights answer as the base with the low-rank path beside it, computed by hooks."""
    torch.manual_seed(1)
    config = transformers.Phi3Config(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, pad_token_id=0
    )
    model = transformers.Phi3ForCausalLM(config).eval()
    snapshot = tmp_path / "snapshot"
    (snapshot / "vision-lora").mkdir(parents=True)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    save_file(weights, snapshot / "model.safetensors", metadata={"format": "pt"})
    (snapshot / "config.json").write_text(config.to_json_string())
    low_rank, layers = {}, [name for name, part in model.named_modules() if name.endswith(("qkv_proj", "down_proj"))]
    for name in layers:
        rows, columns = model.get_submodule(name).weight.shape
        low_rank[f"{prefix}{name}.lora_A.weight"] = torch.randn(4, columns)
        low_rank[f"{prefix}{name}.lora_B.weight"] = torch.randn(rows, 4)
    save_file(low_rank, snapshot / "vision-lora" / "adapter_model.safetensors")
    (snapshot / "vision-lora" / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8}))
    convert_checkpoint.main(["phi4", str(snapshot), str(tmp_path / "out")])
    merged = transformers.Phi3ForCausalLM.from_pretrained(tmp_path / "out").eval()
    for name in layers:
        down, up = (low_rank[f"{prefix}{name}.lora_{side}.weight"] for side in "AB")
        model.get_submodule(name).register_forward_hook(
            lambda _, inputs, output, down=down, up=up: output + 2.0 * (inputs[0] @ down.T @ up.T)
        )
    ids = torch.tensor([[5, 7, 9]])
    with torch.no_grad():
        assert torch.allclose(merged(ids).logits, model(ids).logits, atol=1e-4)
    assert set(load_file(tmp_path / "out" / "model.safetensors")) == set(weights)


def test_weights_that_are_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "in" / "vision-lora").mkdir(parents=True)
    parts = {f"model.layers.0.mlp.up.lora_{side}.weight": torch.zeros(2, 2) for side in "AB"}
    save_file(parts, tmp_path / "in" / "vision-lora" / "adapter_model.safetensors")
    (tmp_path / "in" / "vision-lora" / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 2}))
    with pytest.raises(SystemExit, match="lacks 1 weights"):
        convert_checkpoint.main(["phi4", str(tmp_path / "in"), str(tmp_path / "out")])
