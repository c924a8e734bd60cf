"""The null model: noise that depends on the picture and the prompt and on nothing else about them.

The baseline of every audit (what does a measure say when there is nothing to find?) and the test double of
every test: repeatable, order-free, instant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from PIL import Image

from beholder.core.errors import ModelError
from beholder.models.scorer import Floats
from beholder.models.spec import LoadOptions, ModelSpec


class NullScorer:
    """Uniform noise in [-1, 1), seeded by picture, prompt and seed."""

    channels: tuple[str, ...] = ("cosine",)
    batch_size = 64

    def __init__(self, seed: int = 0) -> None:
        name = f"null:{seed}" if seed else "null"
        settings = {"logit_scale": 1.0, "logit_bias": 0.0}
        self.spec = ModelSpec(name, "null", "none", str(seed), settings=settings)
        self._seed = str(seed).encode()

    def prepare(self, image: Image.Image) -> bytes:
        """The picture's own fingerprint."""
        return hashlib.blake2b(image.tobytes(), key=self._seed, digest_size=16).digest()

    def score_prepared(self, prepared: Sequence[bytes], prompts: Sequence[str]) -> Floats:
        """One draw per (picture, prompt), the same whatever else is in the batch."""
        salts = [_noise(prompt.encode()) for prompt in prompts]
        rows = [[_unit(_noise(picture), salt) for salt in salts] for picture in prepared]
        return np.array(rows, dtype=np.float32).reshape(len(prepared), len(prompts), 1)


def open_null(seed: str, options: LoadOptions) -> NullScorer:
    """The model that `null` or `null:SEED` names."""
    if seed and not seed.isdecimal():
        raise ModelError(f"'null:{seed}': the seed of a null model is a whole number, as in null:7, not '{seed}'.")
    return NullScorer(int(seed or 0))


def _noise(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _unit(picture: int, prompt: int) -> float:
    """Mix two 64-bit numbers into one in [-1, 1) (splitmix64's finaliser)."""
    mixed = (picture ^ (prompt * 0x9E3779B97F4A7C15)) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) / 2**63 - 1
