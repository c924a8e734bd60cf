"""The `config.json` of an ONNX model folder, read and checked: a wrong key is named, with its file.

    {"image": {"file": "image.onnx", "input": "pixel_values", "output": "image_embeds", "size": 224,
               "resize": "shortest edge, bicubic", "crop": "center", "mean": [3], "std": [3], "max_batch": 1},
     "text":  {"file": "text.onnx", "inputs": ["input_ids", "attention_mask"], "output": "text_embeds",
               "tokenizer": "tokenizer.json", "max_length": 64},
     "text_table": {"file": "text_table.npy", "names": "text_table.json", "template": "a photo of a {}"},
     "embedding_dim": 512, "logit_scale": 100.0, "logit_bias": 0.0}

`text` or the files of `text_table` must be there; file names, `max_batch`, `embedding_dim` and `logit_bias`
may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beholder.core.errors import ModelError, UnknownName
from beholder.core.read import read_array, read_json
from beholder.models.checkpoint.files import read_config, require_file
from beholder.models.contrastive.embedding import checked_unit_rows
from beholder.models.scorer import Floats

RESIZES = ("shortest edge", "stretch")
FILTERS = ("bicubic", "bilinear", "lanczos", "nearest")
CROPS = ("center", "none")


@dataclass(frozen=True)
class ImageConfig:
    """The image tower and the preprocessing that it was trained with."""

    file: str
    input: str
    output: str
    size: int
    resize: str
    resample: str
    crop: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    max_batch: int | None


@dataclass(frozen=True)
class TextConfig:
    """The text tower and its tokenizer."""

    file: str
    inputs: tuple[str, ...]
    output: str
    tokenizer: str
    max_length: int


@dataclass(frozen=True)
class TableConfig:
    """A closed vocabulary instead of a text tower."""

    file: str
    names: str
    template: str | None


@dataclass(frozen=True)
class OnnxConfig:
    """A whole model folder."""

    image: ImageConfig
    text: TextConfig | TableConfig
    logit_scale: float
    logit_bias: float
    embedding_dim: int | None


def read_onnx_config(folder: Path) -> OnnxConfig:
    """The folder's configuration; raises a `ModelError` that names key and file."""
    keys = _Keys(read_config(folder), folder / "config.json")
    return OnnxConfig(
        image=_image(keys.section("image")),
        text=_text(keys, folder),
        logit_scale=keys.number("logit_scale"),
        logit_bias=keys.number("logit_bias", default=0.0),
        embedding_dim=keys.whole("embedding_dim", optional=True),
    )


class _Keys:
    """A JSON object whose keys are read one by one; a missing or wrong one is named with its file."""

    def __init__(self, values: Mapping[str, object], path: Path, prefix: str = "") -> None:
        self._values, self._path, self._prefix = values, path, prefix

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def section(self, key: str) -> _Keys:
        value = self._values.get(key)
        if not isinstance(value, Mapping):
            raise self.wrong(key, "an object", value)
        return _Keys(value, self._path, f"{self._prefix}{key}.")

    def text(self, key: str, *, default: str | None = None) -> str:
        value = self._values.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "a text", value)
        return value

    def number(self, key: str, *, default: float | None = None) -> float:
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number", value)
        return float(value)

    def whole(self, key: str, *, optional: bool = False) -> int | None:
        value = self._values.get(key)
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(key, "a whole number above 0", value)
        return value

    def size(self, key: str) -> int:
        return self.whole(key) or 0

    def colours(self, key: str) -> tuple[float, ...]:
        value = self._values.get(key)
        if not isinstance(value, list) or len(value) != 3 or not all(isinstance(each, int | float) for each in value):
            raise self.wrong(key, "three numbers, one per colour", value)
        return tuple(float(number) for number in value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise self.wrong(key, "a list of texts", value)
        return tuple(value)

    def wrong(self, key: str, wanted: str, value: object) -> ModelError:
        problem = "it is missing" if value is None else f"it is {value!r}"
        return ModelError(f"{self._path}: '{self._prefix}{key}' must be {wanted}; {problem}.")


def _image(keys: _Keys) -> ImageConfig:
    resize, resample = _resize(keys)
    crop = keys.text("crop", default="center")
    if crop not in CROPS:
        raise keys.wrong("crop", f"one of {', '.join(CROPS)}", crop)
    return ImageConfig(
        file=keys.text("file", default="image.onnx"),
        input=keys.text("input"),
        output=keys.text("output"),
        size=keys.size("size"),
        resize=resize,
        resample=resample,
        crop=crop,
        mean=keys.colours("mean"),
        std=keys.colours("std"),
        max_batch=keys.whole("max_batch", optional=True),
    )


def _resize(keys: _Keys) -> tuple[str, str]:
    value = keys.text("resize")
    resize, _, resample = (part.strip() for part in value.partition(","))
    if resize not in RESIZES or resample not in FILTERS:
        raise keys.wrong("resize", f"'HOW, FILTER' with HOW of {RESIZES} and FILTER of {FILTERS}", value)
    return resize, resample


def _text(keys: _Keys, folder: Path) -> TextConfig | TableConfig:
    if "text" in keys:
        return _tower(keys.section("text"))
    table = _table(keys.section("text_table") if "text_table" in keys else _Keys({}, folder / "config.json"))
    if "text_table" in keys or (folder / table.file).is_file():
        return table
    raise ModelError(
        f"{folder}/config.json has no 'text', and {folder} has no {table.file}.\n"
        "A model needs a text tower (text.onnx with 'text' in config.json) or a table of texts "
        "(text_table.npy with text_table.json)."
    )


def _tower(keys: _Keys) -> TextConfig:
    return TextConfig(
        file=keys.text("file", default="text.onnx"),
        inputs=keys.texts("inputs"),
        output=keys.text("output"),
        tokenizer=keys.text("tokenizer", default="tokenizer.json"),
        max_length=keys.size("max_length"),
    )


def _table(keys: _Keys) -> TableConfig:
    return TableConfig(
        file=keys.text("file", default="text_table.npy"),
        names=keys.text("names", default="text_table.json"),
        template=keys.text("template") if "template" in keys else None,
    )


# A closed vocabulary

TEMPLATE = "a photo of a {}"
WHY = "which config.json names as its table of texts"


class TextTable:
    """Unit vectors looked up by their exact text."""

    def __init__(self, texts: Sequence[str], vectors: Floats, *, where: str) -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = checked_unit_rows(vectors, kind="text")
        self._where = where

    @property
    def texts(self) -> list[str]:
        """All texts that can be scored."""
        return list(self._rows)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text; raises `UnknownName` with the nearest text there is."""
        for text in texts:
            if text not in self._rows:
                raise UnknownName("text", text, self._rows, where=f"The closed vocabulary of {self._where}")
        return self._vectors[[self._rows[text] for text in texts]]


def read_text_table(folder: Path, config: TableConfig) -> TextTable:
    """The table of a model folder."""
    names_path = require_file(folder, config.names, why=WHY)
    texts = _texts(read_json(names_path, ModelError), config.template, names_path)
    vectors = _vectors(require_file(folder, config.file, why=WHY))
    if len(texts) != len(vectors):
        raise ModelError(f"{names_path} has {len(texts)} texts and {folder / config.file} {len(vectors)} rows.")
    return TextTable(texts, vectors, where=str(folder))


def _texts(value: object, template: str | None, path: Path) -> list[str]:
    """Whole texts, made from class names where the file holds those."""
    if isinstance(value, dict) and "classes" in value:
        pattern = template or value.get("template", TEMPLATE)
        return [pattern.replace("{}", name) for name in _strings(value["classes"], path)]
    texts = _strings(value.get("texts") if isinstance(value, dict) else value, path)
    return [template.replace("{}", text) for text in texts] if template else texts


def _strings(value: object, path: Path) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise ModelError(f"{path} must hold a list of texts, or an object with 'texts' or 'classes'.")
    if len(set(value)) < len(value):
        twice = next(text for text in value if value.count(text) > 1)
        raise ModelError(f"{path} holds '{twice}' more than once.")
    return value


def _vectors(path: Path) -> Floats:
    vectors = read_array(path, ModelError)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ModelError(f"{path} must hold one row of floats per text, not {vectors.dtype} {vectors.shape}.")
    return np.asarray(vectors, dtype=np.float32)
