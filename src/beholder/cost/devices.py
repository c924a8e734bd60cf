"""Devices that are not here: what they could do by their data sheets, and the share of it that Beholder reaches.

Shares and decoding were measured on one H200 with 16 cores on 2026-11-15 and 16 (speed/RESULTS.md); that other cards
reach the same share is assumed. Rates are those of dense products; float32 runs outside the tensor cores.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from beholder.core.errors import UnknownName

CORES = 16
"""Cores beside a card, unless the user says otherwise: as where we measured."""
START = 1.0
"""Seconds that starting worker processes and reading vectors back take."""


class Span(NamedTuple):
    """A number with how low and how high it may be."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Span:
        return Span(*(value * factor for value in self))

    def plus(self, other: Span) -> Span:
        return Span(*(a + b for a, b in zip(self, other, strict=True)))


TOWER_SHARE = Span(0.22, 0.29, 0.38)
"""Of the rate of bfloat16 products, by image towers alone: CLIP B/32 22 %, L/14 38 %."""
TREE_SHARE = Span(0.50, 0.55, 0.60)
"""By a language model over a prompt tree: Qwen2.5-VL-3B, LLaVA-1.5-7B, Gemma-3-4B."""
PROMPTS_SHARE = Span(0.25, 0.33, 0.42)
"""By a language model that reads whole prompts: PaliGemma 2."""
DECODE = Span(0.023, 0.028, 0.033)
"""Seconds of a core for a megapixel of JPEG: hashed, decoded, cut."""
CARD_DECODE = Span(0.00006, 0.00008, 0.0001)
"""Seconds of a card for a picture with --decode gpu, beside the model."""
CARD_DECODE_MEGAPIXEL = 0.00009
"""And for each of its megapixels."""


class Device(NamedTuple):
    """A card by its data sheet."""

    name: str
    card: str
    memory: float
    """Bytes."""
    bandwidth: float
    """Bytes a second."""
    bfloat16: float
    """FLOP a second."""
    float32: float

    def rate(self, precision: str) -> float:
        """FLOP a second at the precision."""
        return self.float32 if precision == "float32" else self.bfloat16


@cache
def devices() -> dict[str, Device]:
    """Every card that is known, by name."""
    text = (files("beholder.cost") / "devices.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        row["name"]: Device(
            row["name"],
            row["card"],
            1e9 * float(row["memory_gb"]),
            1e9 * float(row["bandwidth_gb_s"]),
            1e12 * float(row["bfloat16_tflop_s"]),
            1e12 * float(row["float32_tflop_s"]),
        )
        for row in rows
    }


def device(name: str) -> Device:
    """The card of that name."""
    if name not in devices():
        raise UnknownName("device to plan for", name, list(devices()))
    return devices()[name]
