"""The null model, whose one draw for a picture and a prompt is written out again here."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from PIL import Image

from beholder.models.load import load_model


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """Two seeds."""
    return {
        name: {
            "load": lambda options, name=name: load_model(name, options),
            "plain": lambda picture, prompt, seed=seed: [draw(picture, prompt, seed)],
            "tolerance": 1e-7,
            "bf16_tolerance": None,
        }
        for name, seed in (("null", b"0"), ("null:7", b"7"))
    }


def draw(picture: Image.Image, prompt: str, seed: bytes) -> float:
    """Two hashes, mixed by the last steps of splitmix64, as a number in [-1, 1)."""
    fingerprint = hashlib.blake2b(picture.tobytes(), key=seed, digest_size=16).digest()
    one, other = (
        int.from_bytes(hashlib.blake2b(part, digest_size=8).digest(), "little")
        for part in (fingerprint, prompt.encode())
    )
    mixed = one ^ other * 0x9E3779B97F4A7C15 % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> shift) * factor % 2**64
    return float((mixed ^ mixed >> 31) / 2**63 - 1)
