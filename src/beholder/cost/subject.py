"""What is known of a model without loading it: its family, its shapes, where its files are. Nothing is fetched.

FLOP are counted as torch counts them; norms, activations and positions are left out (about 1 %).
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from beholder.core.errors import ModelError, UnknownName
from beholder.core.read import read_json
from beholder.models.catalog import BYTES, FAMILIES, ModelEntry, family_of, lookup, name_forms, nearest
from beholder.models.checkpoint.files import ConfigFile, matching, read_config
from beholder.models.generative.model_types import model_type_of
from beholder.models.load import REFERENCE_MODELS, reference_models
from beholder.models.served.address import Address, read_address, read_hosted

LONGEST_HEADER = 100_000_000  # bytes, as safetensors has it
WEIGHTS = ("*.safetensors", "*.bin", "*.onnx")
CONTRASTIVE = ("clip", "metaclip_2", "siglip", "siglip2")
GENERATIVE = ("llava", "gemma3", "paligemma", "qwen2_vl", "qwen2_5_vl", "qwen3_vl")
KNOWN = (*CONTRASTIVE, *GENERATIVE)
TOWERS = ("clip_vision_model", "siglip_vision_model")
EVEN_HEADS = ("llama", "mistral", "qwen2", "qwen2_5_vl_text", "qwen2_vl_text")  # heads share the width by default
LANGUAGE_MODELS = (*EVEN_HEADS, "gemma", "gemma2", "gemma3_text", "qwen3", "qwen3_vl_text")


@dataclass(frozen=True)
class Subject:
    """A model as far as it is known."""

    name: str
    kind: str  # contrastive, matching, generative, detection, segmentation or baseline
    shapes: "Shapes | None" = None
    unknown: str = ""  # why its shapes are not known
    folder: Path | None = None  # where its files are on this machine
    here: bool = False  # whether its weights are on this machine
    parameters: int | None = None
    served: Address | None = None
    width: int | None = None  # numbers in an image's vector, if it gives vectors
    file_bytes: int | None = None  # of weights that are used as they lie on disk

    def weights(self, precision: str) -> int | None:
        """Bytes that its weights take in memory."""
        if self.file_bytes is not None:
            return self.file_bytes
        return self.parameters * BYTES.get(precision, 2) if self.parameters else None


def subject_of(name: str) -> Subject:
    """What is known of the model of this name."""
    scheme, colon, rest = name.partition(":")
    if scheme == "openai" and colon:
        return _served(name, read_address(rest))
    if scheme in ("anthropic", "gemini") and colon:
        return _served(name, read_hosted(scheme, rest, urlsplit("")))
    if scheme == "onnx" and colon:
        return _onnx(name, Path(rest).expanduser())
    if name == "null" or (scheme == "null" and colon):
        return Subject(name, "baseline", unknown="it computes nothing", here=True)
    folder = REFERENCE_MODELS / name.removeprefix("glasshouse/") if name in reference_models() else Path(name)
    if name and folder.expanduser().is_dir():
        return _folder(name, folder.expanduser())
    entry = lookup(name)
    load = entry.load if entry else name
    if cached := _cached(load):
        return _folder(load, cached)
    if load in known_configs():
        subject = _by_config(name, known_configs()[load])
        return replace(subject, parameters=entry.parameters or subject.parameters) if entry else subject
    if entry:
        why = f"no table has the sizes of {entry.name}, and it is not on this machine"
        return Subject(name, entry.family, unknown=why, parameters=entry.parameters)
    if (colon and scheme in FAMILIES) or name.count("/") == 1:
        raise ModelError(
            f"What {name} computes is not known: it is not on this machine, and no table has its sizes.\n"
            "Name a folder that holds its config.json (the weights may be missing), or a model of "
            "`beholder list models`."
        )
    raise UnknownName("model", name, [*name_forms(), *reference_models(), *nearest(name)])


def _by_config(name: str, config: ConfigFile) -> Subject:
    try:
        shapes = _shapes(config)
    except UnknownShape as error:
        return Subject(name, family_of(config).kind, unknown=str(error))
    return Subject(name, shapes.kind, shapes, parameters=shapes.parameters, width=shapes.width)


def _folder(name: str, folder: Path) -> Subject:
    config = read_config(folder)
    known = _by_config(name, config)
    size = known.parameters or _indexed(folder, config) or _counted(folder / "model.safetensors")
    return replace(known, parameters=size, folder=folder, here=bool(matching(folder, WEIGHTS)))


def sized(entry: ModelEntry) -> ModelEntry:
    """The entry, with what its files say of its size if the catalogue does not know it and they are here."""
    folder = None if entry.parameters else _cached(entry.load)
    with suppress(ModelError, OSError):  # broken files: the model itself says so when it is loaded
        return replace(entry, parameters=_folder(entry.load, folder).parameters) if folder else entry
    return entry


def _counted(weights: Path) -> int | None:
    """Parameters by what a file of weights says of its tensors at its beginning; None where it says nothing clear."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError), weights.open("rb") as file:
        tensors = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), LONGEST_HEADER)))
        return sum(math.prod(each["shape"]) for name, each in tensors.items() if name != "__metadata__") or None
    return None


def _indexed(folder: Path, config: ConfigFile) -> int | None:
    """Parameters by the index that lies beside weights in several files: their number, or the bytes of all."""
    path = folder / "model.safetensors.index.json"
    told = read_json(path, ModelError).get("metadata", {}) if path.is_file() else {}
    text = config.get("text_config") or {}
    precision = str(config.get("dtype") or config.get("torch_dtype") or text.get("dtype") or "bfloat16")
    size = told.get("total_parameters") or told.get("total_size", 0) // BYTES.get(precision, 2)
    return int(size) or None


def _shapes(config: ConfigFile) -> "Shapes":
    """What the config says, with the library's defaults where it leaves something out."""
    try:
        return shapes_of(config)
    except UnknownShape:
        if config.get("model_type") not in KNOWN:
            raise
        with suppress(ImportError, UnknownShape, TypeError, ValueError, AttributeError):
            from transformers import CONFIG_MAPPING  # optional, and slow to start

            return shapes_of(CONFIG_MAPPING[str(config["model_type"])].from_dict(config).to_dict())
        raise


def _served(name: str, address: Address) -> Subject:
    """Behind a server; its shapes say how many tokens a picture takes, if the catalogue has a model of that name."""
    entry = lookup(address.model) or lookup(address.model.rpartition("/")[2])
    config = known_configs().get(entry.load if entry else address.model)
    if config is None:
        return Subject(name, "generative", unknown=f"no table has the sizes of {address.model}", served=address)
    return replace(_by_config(name, config), kind="generative", served=address)


def _onnx(name: str, folder: Path) -> Subject:
    width, graphs = read_config(folder).get("embedding_dim"), matching(folder, ("*.onnx",))
    known = Subject(name, "contrastive", unknown="an ONNX graph does not state its layers", folder=folder)
    size = sum(path.stat().st_size for path in graphs)
    return replace(known, here=bool(graphs), width=width if isinstance(width, int) else None, file_bytes=size)


def _cached(load: str) -> Path | None:
    if ":" in load or load.count("/") != 1 or load.startswith("/"):
        return None
    repository, _, revision = load.partition("@")
    try:
        from huggingface_hub import try_to_load_from_cache  # an optional dependency

        path = try_to_load_from_cache(repository, "config.json", revision=revision or None)
    except (ImportError, ValueError):
        return None
    return Path(path).parent if isinstance(path, str) else None


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
    gated: bool = False  # the feed-forward part has three matrices, one of them a gate

    @property
    def feed_forward(self) -> int:
        """Weights of one layer's feed-forward part."""
        return (3 if self.gated else 2) * self.width * self.inner

    @property
    def parameters(self) -> int:
        attention = 2 * self.width * self.head_width * (self.heads + self.key_heads)
        return self.count * (attention + self.feed_forward)

    def flop(self, tokens: float, pairs: float, *, answers: float | None = None) -> float:
        """For so many tokens and pairs of them; where `answers` are known, only they meet the last feed-forward."""
        spared = 0.0 if answers is None else 2 * (tokens - answers) * self.feed_forward
        return 2 * tokens * self.parameters - spared + 4 * pairs * self.heads * self.head_width * self.count


@dataclass(frozen=True)
class Vision:
    """An image tower up to what it hands on."""

    layers: Layers
    patch: int  # pixels on a patch's side
    side: int | None  # pixels on the side of every picture; None: pictures keep their shape
    per_patch: int  # weights beside the layers that every patch meets
    extra: int = 0  # tokens beside the patches
    merged: int = 1  # patches on the side of a square that becomes one token
    tokens: int | None = None  # what it hands on for each picture, where that is not one token per merged square
    window: int | None = None  # patches on the side of a window that most layers look through
    whole: int = 0  # layers that look at the whole picture although there are windows
    per_token: int = 0  # further weights that every token meets on its way out
    once: int = 0  # further weights that the picture meets once

    def grid(self, size: tuple[int, int] | None = None) -> tuple[int, int]:
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
        tokens = down * across + self.extra
        pairs: float = tokens**2
        if self.window:
            share = self.whole / self.layers.count
            pairs = share * pairs + (1 - share) * _squares(down, self.window) * _squares(across, self.window)
        beside = down * across * self.per_patch + self.handed_on(size) * self.per_token + self.once
        return self.layers.flop(tokens, pairs) + 2 * beside

    @property
    def parameters(self) -> int:
        down, across = self.grid()
        positions = (down * across + self.extra) * self.layers.width
        return self.layers.parameters + self.per_patch + self.per_token + self.once + positions


def _squares(length: int, window: int) -> int:
    """The sum of the squares of the windows that a side is cut into."""
    full, rest = divmod(length, window)
    return full * window**2 + rest**2


@dataclass(frozen=True)
class Words:
    """A text tower, or a language model with its head."""

    layers: Layers
    head: int  # weights that a text's last token meets: a projection, or the whole vocabulary
    stored: int  # weights of vocabulary, positions and head
    length: int = 0  # the most tokens that it reads
    padded: bool = False  # whether every text is padded to that length


@dataclass(frozen=True)
class Shapes:
    """A model: what looks and what reads."""

    kind: str  # `contrastive` or `generative`
    vision: Vision
    words: Words
    width: int = 0  # numbers in a vector that stands for a picture or a text
    looks_back: bool = False

    @property
    def parameters(self) -> int:
        """All weights, but for norms and biases."""
        return self.vision.parameters + self.words.layers.parameters + self.words.stored

    def text_flop(self, tokens: float, pairs: float, texts: float) -> float:
        """Of a text tower, for texts of so many tokens and pairs in all."""
        return self.words.layers.flop(tokens, pairs) + 2 * texts * self.words.head

    def resized(self, height: int, width: int) -> tuple[int, int] | None:
        """How large the tower is given a picture whose shape is kept, as by Qwen's processor; else None."""
        if self.vision.side:
            return None
        step = self.vision.patch * self.vision.merged
        down, across = (max(step, round(length / step) * step) for length in (height, width))
        return down, across


@cache
def known_configs() -> Mapping[str, ConfigFile]:
    """Configs of models of the catalogue by what they are loaded with, as far as a table of sizes needs them."""
    table: ConfigFile = json.loads((files("beholder.cost") / "shapes.json").read_text(encoding="utf-8"))
    return {name: entry["config"] for entry in table["configs"] for name in entry["names"]}


def shapes_of(config: ConfigFile) -> Shapes:
    """What a config.json says; `UnknownShape` where that is not enough."""
    kind = str(config.get("model_type"))
    if kind not in KNOWN:
        raise UnknownShape(f"What a model of type '{kind}' computes is not known; known are: {', '.join(KNOWN)}.")
    try:
        return _two_towers(config, kind) if kind in CONTRASTIVE else _generative(config, kind)
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise UnknownShape(f"The config of a model of type '{kind}' does not say {error}.") from error


def _layers(config: ConfigFile, *, gated: bool = False) -> Layers:
    width = config.get("hidden_size") or config["embed_dim"]
    heads = config.get("num_attention_heads") or config["num_heads"]
    inner = config.get("intermediate_size") or int(width * config["mlp_ratio"])
    count = config.get("num_hidden_layers") or config["depth"]
    keys = config.get("num_key_value_heads") or heads
    return Layers(count, width, inner, heads, keys, config.get("head_dim") or width // heads, gated)


def _tower(vision: ConfigFile, *, siglip: bool) -> Vision:
    layers, patch = _layers(vision), vision["patch_size"]
    tower = Vision(layers, patch, vision["image_size"], 3 * patch**2 * layers.width, extra=0 if siglip else 1)
    if not siglip or not vision.get("vision_use_head", True):
        return tower
    # A probe looks at all patches: their keys and values; its own query, output and feed-forward part.
    square = layers.width**2
    per_patch = tower.per_patch + 2 * square + 2 * layers.width
    return replace(tower, per_patch=per_patch, once=2 * square + layers.feed_forward)


def _two_towers(config: ConfigFile, kind: str) -> Shapes:
    text, siglip = config["text_config"], kind.startswith("siglip")
    width = text.get("projection_size") or text["hidden_size"] if siglip else config["projection_dim"]
    tower, layers = _tower(config["vision_config"], siglip=siglip), _layers(text)
    if not siglip:
        tower = replace(tower, once=tower.layers.width * width)
    length, head = text["max_position_embeddings"], layers.width * width
    words = Words(layers, head, (text["vocab_size"] + length) * layers.width + head, length, padded=siglip)
    return Shapes("contrastive", tower, words, width)


def _generative(config: ConfigFile, kind: str) -> Shapes:
    vision = config["vision_config"]
    if kind.startswith("qwen"):
        words = _language_model(config)
        return Shapes("generative", _qwen_tower(vision, kind, words.layers.width), words)
    tower_kind = str(vision.get("model_type"))
    if tower_kind not in TOWERS:
        known = f"known are: {', '.join(TOWERS)}."
        raise UnknownShape(f"What an image tower of type '{tower_kind}' computes is not known; {known}")
    tower, words = _tower(vision, siglip=tower_kind == "siglip_vision_model"), _language_model(config)
    seen, read = tower.layers.width, words.layers.width
    if kind == "llava":
        kept = 0 if config.get("vision_feature_select_strategy", "default") == "default" else tower.extra
        tower = replace(tower, per_token=(seen + read) * read, tokens=tower.handed_on() + kept)
    else:
        tokens = config["mm_tokens_per_image"] if kind == "gemma3" else None
        tower = replace(tower, per_token=seen * read, tokens=tokens)
    return Shapes("generative", tower, words, looks_back=model_type_of(kind).reuse is not None)


def _language_model(config: ConfigFile) -> Words:
    text = config.get("text_config", config)
    kind = str(text.get("model_type") or f"{config['model_type']}_text")
    if kind not in LANGUAGE_MODELS:
        raise UnknownShape(f"What a language model of type '{kind}' computes is not known.")
    for name in ("num_key_value_heads", *(() if kind in EVEN_HEADS else ("head_dim",))):
        text[name]  # what is not said has another default in each of them
    layers = _layers(text, gated=True)
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", kind.startswith("gemma")))
    head = text["vocab_size"] * layers.width
    return Words(layers, head, head if tied else 2 * head)


def _qwen_tower(vision: ConfigFile, kind: str, width: int) -> Vision:
    layers = _layers(vision if kind != "qwen2_vl" else {**vision, "hidden_size": vision["embed_dim"]})
    layers = replace(layers, gated=kind == "qwen2_5_vl")
    merged, patch = vision.get("spatial_merge_size", 2), vision["patch_size"]
    inner = layers.width * merged**2
    mergers = 1 + len(vision.get("deepstack_visual_indexes", ())) * (kind == "qwen3_vl")
    per_patch = 3 * vision.get("temporal_patch_size", 2) * patch**2 * layers.width
    tower = Vision(layers, patch, None, per_patch, merged=merged, per_token=mergers * inner * (inner + width))
    whole = sum(layer < layers.count for layer in vision.get("fullatt_block_indexes", ()))
    return replace(tower, window=vision["window_size"] // patch if kind == "qwen2_5_vl" else None, whole=whole)
