"""FLOP and sizes read off a config are those that torch counts on the model itself."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

from beholder.cost.subject import UnknownShape, known_configs, shapes_of
from beholder.models.catalog import catalog

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

import torch
import transformers
from architectures import ARCHITECTURES
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}


def counted(call) -> int:
    """By torch; it does not know its own fused attention for CPUs, so attention is written out."""
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def clip():
    text = {**TOWER, "vocab_size": 60, "max_position_embeddings": 40, "eos_token_id": 2}
    return transformers.CLIPConfig(
        text_config=text, vision_config={**TOWER, "image_size": 64, "patch_size": 8}, projection_dim=24
    )


def siglip():
    text = {**TOWER, "vocab_size": 60, "max_position_embeddings": 12, "projection_size": 32}
    return transformers.SiglipConfig(text_config=text, vision_config={**TOWER, "image_size": 64, "patch_size": 8})


@pytest.mark.parametrize("config", [clip(), siglip()], ids=lambda config: config.model_type)
def test_two_towers_compute_what_their_shapes_say(config):
    shapes, model = shapes_of(config.to_dict()), transformers.AutoModel.from_config(config).eval()
    images, length = 5, 11
    pixels = torch.randn(images, 3, 64, 64)
    looking = counted(lambda: model.get_image_features(pixel_values=pixels))
    assert images * shapes.vision.flop() == pytest.approx(looking, rel=0.02)
    words = torch.full((images, length), 2)
    reading = counted(lambda: model.get_text_features(input_ids=words))
    ours = shapes.text_flop(images * length, images * length**2, images)
    assert ours == pytest.approx(reading, rel=0.02)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_generative_models_compute_what_their_shapes_say(name: str):
    """One whole prompt with its picture, through the model's own forward pass."""
    built = ARCHITECTURES[name]
    model = built.build(tiny=True, device="cpu", dtype=torch.float32)
    picture = built.picture(model.config, torch.Generator().manual_seed(0))
    config = model.config.to_dict()
    shapes = shapes_of(config)
    size = None
    if "image_grid_thw" in picture:
        size = tuple(int(side) * shapes.vision.patch for side in picture["image_grid_thw"][0, 1:])
    seen = built.image_tokens(model.config)
    assert shapes.vision.handed_on(size) == seen
    mark = model.config.get_text_config().vocab_size - 16
    ids = torch.cat([torch.full((1, 7), 5), torch.full((1, seen), mark), torch.arange(3, 43)[None]], dim=1)
    text = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **built.along(ids == mark)}
    torch_counts = counted(lambda: model(**text, **picture, use_cache=False, logits_to_keep=1))
    tokens = ids.shape[1]
    ours = shapes.vision.flop(size) + shapes.text_flop(tokens, tokens**2, 1)
    assert ours == pytest.approx(torch_counts, rel=0.03)


def test_the_table_of_sizes_has_as_many_weights_as_the_catalogue_says():
    known = known_configs()
    entries = [entry for entry in catalog() if entry.load in known and entry.parameters]
    ratios = [shapes_of(known[entry.load]).parameters / entry.parameters for entry in entries if entry.parameters]
    assert len(ratios) > 25
    np.testing.assert_allclose(ratios, 1, atol=0.003)


def test_unknown_architectures_are_said_to_be_unknown():
    with pytest.raises(UnknownShape, match="'chameleon' computes is not known"):
        shapes_of({"model_type": "chameleon"})
    with pytest.raises(UnknownShape, match="does not say 'projection_dim'"):
        shapes_of({"model_type": "clip", "vision_config": {}, "text_config": {}})
    gemma = copy.deepcopy(known_configs()["google/gemma-3-4b-it"])
    del gemma["text_config"]["head_dim"]  # 256, and not width by heads
    with pytest.raises(UnknownShape, match="does not say 'head_dim'"):
        shapes_of(gemma)
    with pytest.raises(UnknownShape, match="image tower of type 'dinov2'"):
        shapes_of({"model_type": "llava", "vision_config": {"model_type": "dinov2"}, "text_config": {}})
