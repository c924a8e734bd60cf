"""Generative architectures with random weights: speed depends on shapes, not on what was learnt.

Sizes are those of the checkpoints' published configurations; `tiny` keeps the architecture and makes all else small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from beholder.core.errors import UnknownName
from beholder.models.torch_scorer import torch, transformers

Features = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """How to build a model of random weights, and a picture for it."""

    name: str
    config: Callable[[bool], Any]
    """The configuration; True for the tiny one."""
    picture: Callable[[Any, Any], Features]
    """Random pixels as the model's processor would give them, from a configuration and a generator."""
    image_tokens: Callable[[Any], int]
    along: Callable[[Any], Features] = lambda picture: {}
    """What runs along the text beside ids and mask, given where the picture stands in it."""

    def build(self, *, tiny: bool, device: str, dtype: Any, seed: int = 0) -> Any:
        """A model of random weights, ready to be asked."""
        torch.manual_seed(seed)
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.device(device):
                return transformers.AutoModelForImageTextToText.from_config(self.config(tiny)).eval()
        finally:
            torch.set_default_dtype(before)


SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
SMALL_TEXT = {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 600}
MARKS = 16
"""Token numbers at the end of a vocabulary that no text uses; the first stands for the picture."""


def qwen25_vl_3b(tiny: bool) -> Any:
    text = {
        "hidden_size": 2048,
        "intermediate_size": 11008,
        "num_hidden_layers": 36,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "max_position_embeddings": 128000,
        "tie_word_embeddings": True,
    }
    vision = {
        "depth": 32,
        "hidden_size": 1280,
        "num_heads": 16,
        "out_hidden_size": 2048,
        "intermediate_size": 3420,
        "patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31],
    }
    sections = [16, 24, 24]
    if tiny:
        text = {**SMALL_TEXT, "max_position_embeddings": 2048}
        vision |= {
            "depth": 2,
            "hidden_size": 32,
            "num_heads": 2,
            "out_hidden_size": 64,
            "intermediate_size": 48,
            "fullatt_block_indexes": [1],
        }
        sections = [2, 3, 3]
    rope = {"rope_type": "default", "mrope_section": sections, "rope_theta": 1e6}
    marks = _marks(text["vocab_size"], "image", "video", "vision_start", "vision_end")
    return transformers.Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": rope},
        vision_config=vision,
        **{f"{name}_token_id": number for name, number in marks.items()},
    )


def llava_15_7b(tiny: bool) -> Any:
    text = {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 32064,
        "max_position_embeddings": 4096,
    }
    vision = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 768,
    }
    if tiny:
        text, vision = {**SMALL_TEXT}, {**SMALL, "image_size": 56, "patch_size": 14}
    return transformers.LlavaConfig(
        text_config={"model_type": "llama", **text},
        vision_config={"model_type": "clip_vision_model", **vision},
        image_token_index=_marks(text["vocab_size"], "image")["image"],
    )


def gemma3_4b(tiny: bool) -> Any:
    text: dict[str, Any]
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window": 1024,
        "query_pre_attn_scalar": 256,
    }
    vision = {**SO400M, "image_size": 896}
    tokens = 256
    if tiny:
        text = {
            **SMALL_TEXT,
            "num_hidden_layers": 3,
            "sliding_window": 48,
            "query_pre_attn_scalar": 16,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        }
        vision, tokens = {**SMALL, "image_size": 56, "patch_size": 14}, 4
    marks = _marks(text["vocab_size"], "image", "boi", "eoi")
    return transformers.Gemma3Config(
        text_config=text,
        vision_config={"model_type": "siglip_vision_model", **vision},
        mm_tokens_per_image=tokens,
        **{f"{name}_token_index": number for name, number in marks.items()},
    )


def paligemma2_3b(tiny: bool) -> Any:
    text = {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 257216,
        "query_pre_attn_scalar": 256,
    }
    vision = {**SO400M, "image_size": 224}
    if tiny:
        text = {**SMALL_TEXT, "query_pre_attn_scalar": 16}
        vision = {**SMALL, "image_size": 56, "patch_size": 14}
    width = text["hidden_size"]
    return transformers.PaliGemmaConfig(
        text_config={"model_type": "gemma2", **text},
        vision_config={
            "model_type": "siglip_vision_model",
            **vision,
            "projection_dim": width,
            "vision_use_head": False,
        },
        image_token_index=_marks(text["vocab_size"], "image")["image"],
        projection_dim=width,
        hidden_size=width,
        vocab_size=text["vocab_size"],
    )


SO400M = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "patch_size": 14,
}


def _marks(vocabulary: int, *names: str) -> dict[str, int]:
    return {name: vocabulary - MARKS + index for index, name in enumerate(names)}


def _patches(config: Any, rng: Any, side: int = 32) -> Features:
    """448 × 448 pixels as Qwen's processor cuts them."""
    vision = config.vision_config
    side = side if vision.depth > 2 else 8
    width = 3 * vision.temporal_patch_size * vision.patch_size**2
    return {
        "pixel_values": torch.randn(side * side, width, generator=rng),
        "image_grid_thw": torch.tensor([[1, side, side]]),
    }


def _square(config: Any, rng: Any) -> Features:
    side = config.vision_config.image_size
    return {"pixel_values": torch.randn(1, 3, side, side, generator=rng)}


def _all_patches(config: Any) -> int:
    return int((config.vision_config.image_size // config.vision_config.patch_size) ** 2)


ARCHITECTURES: Mapping[str, Architecture] = {
    one.name: one
    for one in (
        Architecture(
            "qwen2.5-vl-3b",
            qwen25_vl_3b,
            _patches,
            lambda config: 256 if config.vision_config.depth > 2 else 16,
            lambda picture: {"mm_token_type_ids": picture.long()},
        ),
        Architecture("llava-1.5-7b", llava_15_7b, _square, _all_patches),
        Architecture(
            "gemma-3-4b",
            gemma3_4b,
            _square,
            lambda config: int(config.mm_tokens_per_image),
            lambda picture: {"token_type_ids": picture.long()},
        ),
        Architecture(
            "paligemma2-3b",
            paligemma2_3b,
            _square,
            _all_patches,
            lambda picture: {"token_type_ids": torch.zeros_like(picture).long()},
        ),
    )
}


def architecture(name: str) -> Architecture:
    """By name."""
    if name not in ARCHITECTURES:
        raise UnknownName("architecture", name, tuple(ARCHITECTURES))
    return ARCHITECTURES[name]
