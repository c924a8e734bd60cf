"""Shapes: what a model computes for a picture and for words, read off its config.json. No weights, no torch.

A FLOP is one multiplication or one addition. Counted are the products with weights and those of attention, as torch
counts them; norms, activations and positions are left out (about 1 %). A model whose config is not understood has no
shapes: `UnknownShape` says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from beholder.core.errors import ModelError
from beholder.models.checkpoint.files import ConfigFile

GATED = {
    *("gemma", "gemma2", "gemma3_text", "llama", "mistral", "qwen2", "qwen2_5_vl_text", "qwen2_vl_text"),
    *("qwen3", "qwen3_vl_text"),
}
"""Language models whose feed-forward part has three matrices, one of them a gate."""
WIDTH_BY_HEADS = {"llama", "mistral", "qwen2", "qwen2_5_vl_text", "qwen2_vl_text"}
"""Those whose heads share the width evenly unless the config says otherwise; of others it must say."""
LOOKS_BACK = {"paligemma"}
"""Generative models whose picture looks at the question: only the image tower's work is shared."""


class UnknownShape(ModelError):  # noqa: N818
    """A model of which it is not known what it computes."""


@dataclass(frozen=True)
class Layers:
    """A stack of equal transformer layers."""

    count: int
    width: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    gated: bool = False

    @property
    def attention(self) -> int:
        """Weights of one layer's attention."""
        return 2 * self.width * self.head_width * (self.heads + self.key_heads)

    @property
    def feed_forward(self) -> int:
        """Weights of one layer's feed-forward part."""
        return (3 if self.gated else 2) * self.width * self.inner

    @property
    def parameters(self) -> int:
        return self.count * (self.attention + self.feed_forward)

    def flop(self, tokens: float, pairs: float, *, read: float | None = None) -> float:
        """For so many tokens, of which so many pairs look at each other; the last layer's feed-forward part is
        computed for the tokens that are read off alone, where their number is given."""
        spared = 0.0 if read is None else 2 * (tokens - read) * self.feed_forward
        return 2 * tokens * self.parameters - spared + self.of_attention(pairs)

    def of_attention(self, pairs: float) -> float:
        """Scores and sums of the pairs, in all layers."""
        return 4 * pairs * self.heads * self.head_width * self.count


@dataclass(frozen=True)
class Vision:
    """An image tower up to what it hands on."""

    layers: Layers
    patch: int
    """Pixels on a patch's side."""
    side: int | None
    """Pixels on the side of every picture; None: pictures keep their shape."""
    extra: int = 0
    """Tokens beside the patches."""
    frames: int = 1
    merged: int = 1
    """Patches on the side of a square that becomes one token."""
    tokens: int | None = None
    """What it hands on for each picture, where that is not one token per merged square."""
    window: int | None = None
    """Patches on the side of a window that most layers look through."""
    whole: int = 0
    """Layers that look at the whole picture although there are windows."""
    per_patch: int = 0
    """Further weights that every patch meets."""
    per_token: int = 0
    """Further weights that every token meets on its way out."""
    once: int = 0
    """Further weights that the picture meets once."""
    pooled: bool = False
    """Whether a probe looks at all patches in the end (SigLIP)."""

    def grid(self, size: tuple[int, int] | None) -> tuple[int, int]:
        """Patches down and across of a picture that the tower is given at this size (height, width)."""
        height, width = size or (self.side or 0, self.side or 0)
        return height // self.patch, width // self.patch

    def handed_on(self, size: tuple[int, int] | None = None) -> int:
        """Tokens that stand for a picture."""
        down, across = self.grid(size)
        return self.tokens or (down // self.merged) * (across // self.merged)

    def flop(self, size: tuple[int, int] | None = None) -> float:
        """For one picture."""
        down, across = self.grid(size)
        patches, layers = down * across, self.layers
        tokens = patches + self.extra
        pairs: float = tokens**2
        if self.window:
            share = self.whole / layers.count
            pairs = share * pairs + (1 - share) * _squares(down, self.window) * _squares(across, self.window)
        flop = layers.flop(tokens, pairs) + 2 * patches * (self.embedding + self.per_patch)
        return (
            flop
            + 2 * self.handed_on(size) * self.per_token
            + 2 * self.once
            + (4 * patches * layers.width) * self.pooled
        )

    @property
    def embedding(self) -> int:
        """Weights that make a patch a token."""
        return 3 * self.frames * self.patch**2 * self.layers.width

    @property
    def parameters(self) -> int:
        positions = (self.grid(None)[0] * self.grid(None)[1] + self.extra) * self.layers.width
        return self.layers.parameters + self.embedding + self.per_patch + self.per_token + self.once + positions


@dataclass(frozen=True)
class Words:
    """A text tower, or a language model with its head."""

    layers: Layers
    vocabulary: int
    head: int
    """Weights that a text's last token meets: a projection, or the whole vocabulary."""
    length: int = 0
    """The most tokens that it reads."""
    padded: bool = False
    """Whether every text is padded to that length."""
    untied: bool = False
    """Whether the head's weights are its own."""

    @property
    def parameters(self) -> int:
        positions = self.length * self.layers.width if not self.layers.gated else 0
        return self.layers.parameters + self.vocabulary * self.layers.width + positions + self.head * self.untied


@dataclass(frozen=True)
class Shapes:
    """A model: what looks and what reads."""

    kind: str
    """`contrastive` or `generative`."""
    model_type: str
    vision: Vision
    words: Words
    width: int = 0
    """Numbers in a vector that stands for a picture or a text."""
    config: ConfigFile = field(default_factory=dict, repr=False)

    @property
    def parameters(self) -> int:
        """All weights, but for norms and biases."""
        return self.vision.parameters + self.words.parameters

    @property
    def looks_back(self) -> bool:
        return self.model_type in LOOKS_BACK

    def text_flop(self, tokens: float, pairs: float, texts: float) -> float:
        """Of a text tower, for texts of so many tokens and pairs in all."""
        return self.words.layers.flop(tokens, pairs) + 2 * texts * self.words.head

    def resized(self, height: int, width: int) -> tuple[int, int] | None:
        """How large the tower is given a picture whose shape is kept; None where all become one size.

        As Qwen's processor does by default: sides in whole merged patches, area within its bounds.
        """
        if self.vision.side:
            return None
        step = self.vision.patch * self.vision.merged
        down, across = (max(step, round(length / step) * step) for length in (height, width))
        return down, across


def shapes_of(config: ConfigFile) -> Shapes:
    """What a config.json says; `UnknownShape` where that is not enough."""
    kind = str(config.get("model_type"))
    if kind not in READERS:
        raise UnknownShape(f"What a model of type '{kind}' computes is not known; known are: {', '.join(READERS)}.")
    try:
        return READERS[kind](config)
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise UnknownShape(f"The config of a model of type '{kind}' does not say {error}.") from error


@cache
def known_configs() -> Mapping[str, ConfigFile]:
    """Configs of models of the catalogue by what they are loaded with, as far as a table of sizes needs them."""
    table: dict[str, Any] = json.loads((files("beholder.cost") / "shapes.json").read_text(encoding="utf-8"))
    return {name: entry["config"] for entry in table["configs"] for name in entry["names"]}


# Reading configs


def _layers(config: Mapping[str, Any], *, gated: bool = False) -> Layers:
    width = config.get("hidden_size") or config["embed_dim"]
    heads = config.get("num_attention_heads") or config["num_heads"]
    inner = config.get("intermediate_size") or int(width * config["mlp_ratio"])
    count = config.get("num_hidden_layers") or config["depth"]
    keys = config.get("num_key_value_heads") or heads
    return Layers(count, width, inner, heads, keys, config.get("head_dim") or width // heads, gated)


def _clip(config: ConfigFile) -> Shapes:
    vision, text, width = config["vision_config"], config["text_config"], config["projection_dim"]
    tower = _clip_tower(vision)
    words = _layers(text)
    return Shapes(
        "contrastive",
        str(config["model_type"]),
        Vision(**{**vars(tower), "once": tower.layers.width * width}),
        Words(words, text["vocab_size"], words.width * width, text["max_position_embeddings"], untied=True),
        width,
        config,
    )


def _siglip(config: ConfigFile) -> Shapes:
    vision, text = config["vision_config"], config["text_config"]
    tower, words = _siglip_tower(vision), _layers(text)
    width = text.get("projection_size") or words.width
    length = text["max_position_embeddings"]
    head = Words(words, text["vocab_size"], words.width * width, length, padded=True, untied=True)
    return Shapes("contrastive", str(config["model_type"]), tower, head, width, config)


def _clip_tower(vision: Mapping[str, Any]) -> Vision:
    return Vision(_layers(vision), vision["patch_size"], vision["image_size"], extra=1)


def _siglip_tower(vision: Mapping[str, Any]) -> Vision:
    layers = _layers(vision)
    tower = Vision(layers, vision["patch_size"], vision["image_size"])
    if not vision.get("vision_use_head", True):
        return tower
    square = layers.width**2  # keys and values of every patch; query, output and feed-forward part of one probe
    return Vision(**{**vars(tower), "per_patch": 2 * square, "once": 2 * square + layers.feed_forward, "pooled": True})


def _tower(vision: Mapping[str, Any]) -> Vision:
    towers = {"clip_vision_model": _clip_tower, "siglip_vision_model": _siglip_tower}
    kind = str(vision.get("model_type"))
    if kind not in towers:
        raise UnknownShape(
            f"What an image tower of type '{kind}' computes is not known; known are: {', '.join(towers)}."
        )
    return towers[kind](vision)


def _language_model(config: ConfigFile) -> Words:
    text = config.get("text_config", config)
    kind = str(text.get("model_type") or f"{config['model_type']}_text")
    if kind not in GATED:
        raise UnknownShape(f"What a language model of type '{kind}' computes is not known.")
    for name in ("num_key_value_heads", *(() if kind in WIDTH_BY_HEADS else ("head_dim",))):
        text[name]  # what is not said has another default in each of them
    layers, words = _layers(text, gated=True), text["vocab_size"]
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", kind.startswith("gemma")))
    return Words(layers, words, words * layers.width, untied=not tied)


def _generative(config: ConfigFile, tower: Vision, words: Words, **more: Any) -> Shapes:
    return Shapes("generative", str(config["model_type"]), Vision(**{**vars(tower), **more}), words, config=config)


def _llava(config: ConfigFile) -> Shapes:
    tower, words = _tower(config["vision_config"]), _language_model(config)
    width = words.layers.width
    kept = 0 if config.get("vision_feature_select_strategy", "default") == "default" else tower.extra
    down, across = tower.grid(None)
    joined = (tower.layers.width + width) * width
    return _generative(config, tower, words, per_token=joined, tokens=down * across + kept)


def _gemma3(config: ConfigFile) -> Shapes:
    tower, words = _tower(config["vision_config"]), _language_model(config)
    joined = tower.layers.width * words.layers.width
    return _generative(config, tower, words, per_token=joined, tokens=config["mm_tokens_per_image"])


def _paligemma(config: ConfigFile) -> Shapes:
    tower, words = _tower(config["vision_config"]), _language_model(config)
    return _generative(config, tower, words, per_token=tower.layers.width * words.layers.width)


def _qwen(config: ConfigFile) -> Shapes:
    vision, words, kind = config["vision_config"], _language_model(config), config["model_type"]
    layers = _layers(vision if kind != "qwen2_vl" else {**vision, "hidden_size": vision["embed_dim"]})
    layers = Layers(**{**vars(layers), "gated": kind == "qwen2_5_vl"})
    merged, patch = vision.get("spatial_merge_size", 2), vision["patch_size"]
    inner = layers.width * merged**2
    mergers = 1 + len(vision.get("deepstack_visual_indexes", ())) * (kind == "qwen3_vl")
    whole = vision.get("fullatt_block_indexes", ())
    tower = Vision(
        layers,
        patch,
        None,
        frames=vision.get("temporal_patch_size", 2),
        merged=merged,
        window=vision["window_size"] // patch if kind == "qwen2_5_vl" else None,
        whole=len([layer for layer in whole if layer < layers.count]),
        per_token=mergers * inner * (inner + words.layers.width),
    )
    return _generative(config, tower, words)


def _squares(length: int, window: int) -> int:
    """The sum of the squares of the windows that a side is cut into."""
    full, rest = divmod(length, window)
    return full * window**2 + rest**2


READERS = {
    "clip": _clip,
    "metaclip_2": _clip,
    "siglip": _siglip,
    "siglip2": _siglip,
    "llava": _llava,
    "gemma3": _gemma3,
    "paligemma": _paligemma,
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "qwen3_vl": _qwen,
}
"""The architectures that are understood, by the model type in config.json."""
