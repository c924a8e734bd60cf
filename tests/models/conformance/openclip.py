"""Tiny random models of open_clip's true architectures, where open_clip can be imported: there are none elsewhere.

`tests/models/test_openclip.py` runs them in an environment that has it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from PIL import Image
from tiny_two_towers import spread

SIDE = 32
TEXT = {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 4, "layers": 2}
VIT = {"image_size": SIDE, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "tiny-ViT": {"embed_dim": 24, "vision_cfg": VIT, "text_cfg": TEXT},
    "tiny-ViT-quickgelu": {"embed_dim": 24, "quick_gelu": True, "vision_cfg": VIT, "text_cfg": TEXT},
    "tiny-RN": {
        "embed_dim": 24,
        "vision_cfg": {"image_size": SIDE, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
        "text_cfg": TEXT,
    },
    "tiny-CoCa": {
        "embed_dim": 32,
        "custom_text": True,
        "vision_cfg": {**VIT, "attentional_pool": True, "attn_pooler_heads": 4, "output_tokens": True},
        "text_cfg": {**TEXT, "embed_cls": True, "output_tokens": True},
        "multimodal_cfg": {**TEXT, "attn_pooler_heads": 4},
    },
    "tiny-bias": {  # as SigLIP: a timm image tower, text read both ways and pooled at its end, a logit bias
        "embed_dim": 64,
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": {
            "image_size": 160,
            "timm_model_name": "test_vit",
            "timm_model_pretrained": False,
            "timm_pool": "token",
            "timm_proj": "none",
        },
        "text_cfg": {**TEXT, "no_causal_mask": True, "proj_bias": True, "pool_type": "last"},
    },
}


def register(folder: Path) -> None:
    """Put the tiny architectures on open_clip's list."""
    import open_clip

    configs = folder / "configs"
    configs.mkdir(parents=True, exist_ok=True)
    for name, config in CONFIGS.items():
        (configs / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(configs)


def save_weights(folder: Path, architecture: str) -> Path:
    """A safetensors file of random weights."""
    import open_clip
    from safetensors.torch import save_file

    model = open_clip.create_model(architecture)
    spread(model)
    path = folder / f"{architecture}.safetensors"
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, path)
    return path


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """One of each architecture."""
    if not importlib.util.find_spec("open_clip"):
        return {}
    register(folder)
    return {name: _case(name, save_weights(folder, name)) for name in CONFIGS}


def _case(architecture: str, weights: Path) -> dict[str, Any]:
    from beholder.models.load import load_model

    name = f"openclip:{architecture}/{weights}"
    return {
        "load": lambda options: load_model(name, options),
        "plain": plain(architecture, weights),
        "tolerance": 1e-5,
        "bf16_tolerance": 0.03,
    }


def plain(architecture: str, weights: Path) -> Any:
    """The cosine of open_clip's own forward pass, one picture and one text."""
    import open_clip
    import torch

    model, _, preprocess = open_clip.create_model_and_transforms(architecture, pretrained=str(weights))
    tokenizer = open_clip.get_tokenizer(architecture)
    model.eval()

    def cell(picture: Image.Image, prompt: str) -> list[float]:
        with torch.no_grad():
            output = model(preprocess(picture)[None], tokenizer([prompt]))
        image, text = (output["image_features"], output["text_features"]) if isinstance(output, dict) else output[:2]
        return [float(image[0] @ text[0])]

    return cell
