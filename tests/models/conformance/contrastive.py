"""Tiny random two-tower models of transformers, scored the slow way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from tiny_two_towers import BUILDERS

from beholder.models.load import load_model

# What a user who follows the model's documentation would pass to its processor.
OPTIONS: dict[str, dict[str, Any]] = {
    "siglip": {"padding": "max_length", "max_length": 12, "truncation": True},
    "siglip2": {"images_kwargs": {"patch_size": 8, "max_num_patches": 16}},
}


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """One of each family."""
    return {family: case(folder / family, family, build) for family, build in BUILDERS.items()}


def case(folder: Path, family: str, build: Callable[[Path], None]) -> dict[str, Any]:
    build(folder)
    return {
        "load": lambda options: load_model(str(folder), options),
        "plain": plain(folder, family),
        "tolerance": 1e-5,
        "bf16_tolerance": 0.05,
    }


def plain(folder: Path, family: str) -> Callable[[Image.Image, str], list[float]]:
    """The logit of the model's own forward pass, taken back to a cosine."""
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False)
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    kind = transformers.models.auto.processing_auto.PROCESSOR_MAPPING_NAMES[family]
    processor = getattr(transformers, kind)(images, transformers.AutoTokenizer.from_pretrained(folder))
    scale = 1 / float(model.temperature) if family == "align" else float(model.logit_scale.exp())
    bias = float(getattr(model, "logit_bias", 0.0))

    def cosine(picture: Image.Image, prompt: str) -> list[float]:
        inputs = processor(text=[prompt], images=picture, return_tensors="pt", **OPTIONS.get(family, {}))
        return [(float(model(**inputs).logits_per_image[0, 0]) - bias) / scale]

    return cosine
