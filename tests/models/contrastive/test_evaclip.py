"""EVA-CLIP by its published key names, beside a slow computation of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
from family_sweep import pictures
from tiny_two_towers import clip_tokenizer

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

WIDTH, HEADS, LAYERS, SIDE, DIM = 32, 4, 2, 28, 16
TOWER = {"hidden_size": WIDTH, "intermediate_size": 40, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
VISION = {**TOWER, "image_size": SIDE, "patch_size": 14, "layer_norm_eps": 1e-6, "hidden_act": "gelu"}
TEXTS = ["a nurse", "a photo of a doctor"]
FORMS = {
    "8B": {"q_bias": False, "k_bias": False, "v_bias": False, "use_rms_norm": True, "post_layernorm": False},
    "after": {"q_bias": True, "k_bias": False, "v_bias": True, "use_rms_norm": False, "post_layernorm": True},
}


def published(folder: Path, form: dict[str, bool]) -> dict[str, Any]:
    """A tiny checkpoint as the authors' own conversion writes it, in two pickled shards."""
    tokenizer = clip_tokenizer()
    tokenizer.save_pretrained(folder)
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 40, "layer_norm_eps": 1e-5}
    config = {
        "architectures": ["EvaCLIPModel"],
        "auto_map": {"AutoModel": "modeling_evaclip.EvaCLIPModel"},
        "model_type": "clip",
        "projection_dim": DIM,
        "logit_scale_init_value": 2.6592,
        "text_config": text,
        "vision_config": {**VISION, **form},
    }
    (folder / "config.json").write_text(json.dumps(config))
    draw = torch.Generator().manual_seed(5)
    weights: dict[str, Any] = {"logit_scale": torch.tensor(3.0)}

    def add(name: str, *shape: int) -> None:
        weights[name] = torch.randn(shape, generator=draw) * 0.3

    def layers(tower: str, bias: dict[str, bool], rms: bool) -> None:
        for number in range(LAYERS):
            start = f"{tower}.encoder.layers.{number}"
            for part in ("q", "k", "v", "out"):
                add(f"{start}.self_attn.{part}_proj.weight", WIDTH, WIDTH)
                if bias.get(f"{part}_bias", True):
                    add(f"{start}.self_attn.{part}_proj.bias", WIDTH)
            for part, one, two in (("fc1", 40, WIDTH), ("fc2", WIDTH, 40)):
                add(f"{start}.mlp.{part}.weight", one, two)
                add(f"{start}.mlp.{part}.bias", one)
            for part in ("layer_norm1", "layer_norm2"):
                norm(f"{start}.{part}", rms)

    def norm(name: str, rms: bool) -> None:
        add(f"{name}.weight", WIDTH)
        if not rms:
            add(f"{name}.bias", WIDTH)

    add("vision_model.embeddings.class_embedding", WIDTH)
    add("vision_model.embeddings.patch_embedding.weight", WIDTH, 3, 14, 14)
    add("vision_model.embeddings.patch_embedding.bias", WIDTH)
    add("vision_model.embeddings.position_embedding.weight", 5, WIDTH)
    layers("vision_model", form, form["use_rms_norm"])
    norm("vision_model.post_layernorm", form["use_rms_norm"])
    add("text_model.embeddings.token_embedding.weight", len(tokenizer), WIDTH)
    add("text_model.embeddings.position_embedding.weight", 40, WIDTH)
    layers("text_model", {}, False)
    norm("text_model.final_layer_norm", False)
    add("visual_projection.weight", DIM, WIDTH)
    add("visual_projection.bias", DIM)
    add("text_projection.weight", DIM, WIDTH)
    names = list(weights)
    for number, part in enumerate((names[:20], names[20:]), start=1):
        torch.save({name: weights[name] for name in part}, folder / f"pytorch_model-0000{number}-of-00002.bin")
    (folder / "pytorch_model.bin.index.json").write_text("{}")
    return weights


def slow(weights: dict[str, Any], states: Any, tower: str, form: dict[str, bool], eps: float, *, causal: bool) -> Any:
    """One sequence `[tokens, width]` through a tower, token by token and head by head, in float64."""

    def linear(name: str, values: Any) -> Any:
        bias = weights.get(f"{name}.bias")
        return values @ weights[f"{name}.weight"].double().T + (0 if bias is None else bias.double())

    def norm(name: str, values: Any) -> Any:
        weight, bias = weights[f"{name}.weight"].double(), weights.get(f"{name}.bias")
        if bias is None:
            return values / (values.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight
        centred = values - values.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight + bias.double()

    def attend(start: str, values: Any) -> Any:
        query, key, value = (linear(f"{start}.self_attn.{part}_proj", values) for part in "qkv")
        size, out = WIDTH // HEADS, torch.zeros_like(values)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for token in range(len(values)):
                seen = token + 1 if causal else len(values)
                scores = key[:seen, part] @ query[token, part] / size**0.5
                out[token, part] = torch.softmax(scores, 0) @ value[:seen, part]
        return linear(f"{start}.self_attn.out_proj", out)

    for number in range(LAYERS):
        start = f"{tower}.encoder.layers.{number}"
        one, two = f"{start}.layer_norm1", f"{start}.layer_norm2"

        def think(values: Any, start: str = start) -> Any:
            inner = linear(f"{start}.mlp.fc1", values)
            inner = inner * 0.5 * (1 + torch.erf(inner / 2**0.5))
            return linear(f"{start}.mlp.fc2", inner)

        if form.get("post_layernorm"):
            states = states + norm(one, attend(start, states))
            states = states + norm(two, think(states))
        else:
            states = states + attend(start, norm(one, states))
            states = states + think(norm(two, states))
    last = "vision_model.post_layernorm" if tower == "vision_model" else "text_model.final_layer_norm"
    return norm(last, states)


@pytest.mark.parametrize("name", FORMS)
def test_published_weights_score_as_a_slow_computation(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    weights = published(tmp_path, form)
    scorer = load_model(str(tmp_path), LoadOptions(allow_pickle=True))
    prepared = [scorer.prepare(picture) for picture in pictures()]
    ours = scorer.score_prepared(prepared, TEXTS)[..., 0]
    tokenizer = clip_tokenizer()
    for row, pixels in enumerate(prepared):
        grid = torch.from_numpy(pixels).double().unfold(1, 14, 14).unfold(2, 14, 14)
        patches = grid.permute(1, 2, 0, 3, 4).reshape(4, -1)
        start = "vision_model.embeddings"
        flat = weights[f"{start}.patch_embedding.weight"].double().flatten(1)
        states = torch.cat(
            [
                weights[f"{start}.class_embedding"].double()[None],
                patches @ flat.T + weights[f"{start}.patch_embedding.bias"].double(),
            ]
        )
        states = states + weights[f"{start}.position_embedding.weight"].double()
        image = slow(weights, states, "vision_model", form, 1e-6, causal=False)[0]
        image = image @ weights["visual_projection.weight"].double().T + weights["visual_projection.bias"].double()
        for column, text in enumerate(TEXTS):
            ids = torch.tensor(tokenizer(text)["input_ids"])
            start = "text_model.embeddings"
            states = weights[f"{start}.token_embedding.weight"].double()[ids]
            states = states + weights[f"{start}.position_embedding.weight"].double()[: len(ids)]
            words = slow(weights, states, "text_model", {}, 1e-5, causal=True)[-1]
            words = words @ weights["text_projection.weight"].double().T
            expected = float(image @ words / (image.norm() * words.norm()))
            assert ours[row, column] == pytest.approx(expected, abs=1e-5)
    assert scorer.spec.settings["logit_scale"] == pytest.approx(np.exp(3.0))


def test_weights_of_another_shape_and_unknown_options_are_refused(tmp_path: Path) -> None:
    published(tmp_path, FORMS["8B"])
    with pytest.raises(ModelError, match="--allow-pickle"):
        load_model(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"projection_dim": 20}))
    with pytest.raises(ModelError, match=r"of another shape: text_projection\.weight"):
        load_model(str(tmp_path), LoadOptions(allow_pickle=True))
    config["vision_config"]["use_swiglu_mlp"] = True
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="use_swiglu_mlp, which Beholder does not compute"):
        load_model(str(tmp_path), LoadOptions(allow_pickle=True))
