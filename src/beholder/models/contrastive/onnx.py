"""ONNX pairs: an image tower and a text tower (or a closed vocabulary) as files, run without torch.

`onnx:DIR` reads `image.onnx`, `text.onnx`, `tokenizer.json`, `config.json`, or `text_table.npy` and
`text_table.json` instead of the text tower. In config.json:

    {"image": {"file": "image.onnx", "input": "pixel_values", "output": "image_embeds", "size": 224,
               "resize": "shortest edge, bicubic", "crop": "center", "mean": [3], "std": [3], "max_batch": 1},
     "text":  {"file": "text.onnx", "inputs": ["input_ids", "attention_mask"], "output": "text_embeds",
               "tokenizer": "tokenizer.json", "max_length": 64},
     "text_table": {"file": "text_table.npy", "names": "text_table.json", "template": "a photo of a {}"},
     "embedding_dim": 512, "logit_scale": 100.0, "logit_bias": 0.0}

`text` or the files of `text_table` must be there; file names, `max_batch`, `embedding_dim` and `logit_bias`
may be left out. A wrong key is named, with its file.
"""

from __future__ import annotations

import json
import mmap
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory, UnknownName, first_line, is_panic
from beholder.core.read import read_array, read_json
from beholder.models.checkpoint.files import content_digest, matching, read_config, require_file
from beholder.models.preparation import Arithmetic, Array, Cut
from beholder.models.scorer import ContrastiveScorer, CutTexts, Floats, embed_in_batches, unit_rows
from beholder.models.spec import LoadOptions, ModelSpec

try:
    import onnxruntime
    from tokenizers import Encoding, Tokenizer
except ImportError as error:
    raise MissingExtra("An ONNX model", "onnx") from error

INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
TOKEN_FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
BATCH_SIZE = 16
TEXT_BATCH = 64
Arrays = dict[str, npt.NDArray[np.integer] | Floats]
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object, fits: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(fits, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


# What a key must be, in words; whether a value is that; and what becomes of it.
Form = tuple[str, Callable[[Any], bool], Callable[[Any], object]]
TEXT: Form = ("a text", lambda value: _is_text(value) and value != "", str)
TEXTS: Form = ("a list of texts", lambda value: _is_list(value, _is_text), tuple)
NUMBER: Form = ("a number", _is_number, float)
WHOLE: Form = ("a whole number above 0", lambda value: type(value) is int and value > 0, int)
COLOURS: Form = (
    "three numbers, one per colour",
    lambda value: _is_list(value, _is_number) and len(value) == 3,
    lambda value: tuple(map(float, value)),
)
OBJECT: Form = ("an object", lambda value: isinstance(value, Mapping), dict)
# By section: each key with its form, and what it is where it may be left out.
MODEL = {"image": (OBJECT,), "logit_scale": (NUMBER,), "logit_bias": (NUMBER, 0.0), "embedding_dim": (WHOLE, None)}
IMAGE = {
    **{"file": (TEXT, "image.onnx"), "input": (TEXT,), "output": (TEXT,), "size": (WHOLE,), "resize": (TEXT,)},
    **{"crop": (TEXT, "center"), "mean": (COLOURS,), "std": (COLOURS,), "max_batch": (WHOLE, None)},
}
TOWER = {
    **{"file": (TEXT, "text.onnx"), "inputs": (TEXTS,), "output": (TEXT,)},
    **{"tokenizer": (TEXT, "tokenizer.json"), "max_length": (WHOLE,)},
}
TABLE = {"file": (TEXT, "text_table.npy"), "names": (TEXT, "text_table.json"), "template": (TEXT, None)}


def read_onnx_config(folder: Path) -> OnnxConfig:
    """The folder's configuration; raises a `ModelError` that names key and file."""
    path, values = folder / "config.json", read_config(folder)
    model = _section(values, MODEL, path)
    image = _section(model["image"], IMAGE, path, "image.")
    resize, _, resample = (part.strip() for part in image["resize"].partition(","))
    if resize not in RESIZES or resample not in FILTERS:
        wanted = f"'HOW, FILTER' with HOW of {RESIZES} and FILTER of {FILTERS}"
        raise _wrong(path, "image.resize", wanted, image["resize"])
    if image["crop"] not in CROPS:
        raise _wrong(path, "image.crop", f"one of {', '.join(CROPS)}", image["crop"])
    image |= {"resize": resize, "resample": resample}
    return OnnxConfig(**{**model, "image": ImageConfig(**image), "text": _text_config(values, folder)})


def _text_config(values: Mapping[str, object], folder: Path) -> TextConfig | TableConfig:
    path = folder / "config.json"
    for key in ("text", "text_table"):
        if key in values:
            section = _section(values, {key: (OBJECT,)}, path)[key]
            form = TOWER if key == "text" else TABLE
            found = _section(section, form, path, f"{key}.")
            return TextConfig(**found) if key == "text" else TableConfig(**found)
    table = TableConfig(**_section({}, TABLE, path))
    if (folder / table.file).is_file():
        return table
    raise ModelError(
        f"{path} has no 'text', and {folder} has no {table.file}.\n"
        "A model needs a text tower (text.onnx with 'text' in config.json) or a table of texts "
        "(text_table.npy with text_table.json)."
    )


def _section(
    values: Mapping[str, object], keys: Mapping[str, tuple[Any, ...]], path: Path, prefix: str = ""
) -> dict[str, Any]:
    """The values of these keys; a missing or wrong one is named with its file."""
    found: dict[str, Any] = {}
    for key, (form, *otherwise) in keys.items():
        value, (wanted, fits, made) = values.get(key), form
        if value is None and otherwise:
            found[key] = otherwise[0]
        elif fits(value):
            found[key] = made(value)
        else:
            raise _wrong(path, f"{prefix}{key}", wanted, value)
    return found


def _wrong(path: Path, key: str, wanted: str, value: object) -> ModelError:
    problem = "it is missing" if value is None else f"it is {value!r}"
    return ModelError(f"{path}: '{key}' must be {wanted}; {problem}.")


# A closed vocabulary

TEMPLATE = "a photo of a {}"
WHY = "which config.json names as its table of texts"


class TextTable:
    """Unit vectors looked up by their exact text."""

    def __init__(self, texts: Sequence[str], vectors: Floats, *, where: str) -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = unit_rows(vectors, kind="text")
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
    """The table of a model folder: whole texts, made from class names where the file holds those."""
    path = require_file(folder, config.names, why=WHY)
    held = read_json(path, ModelError)
    listed, template = held, config.template
    if isinstance(held, dict) and "classes" in held:
        listed, template = held["classes"], template or str(held.get("template", TEMPLATE))
    elif isinstance(held, dict):
        listed = held.get("texts")
    if not _is_list(listed, _is_text):
        raise ModelError(f"{path} must hold a list of texts, or an object with 'texts' or 'classes'.")
    twice, count = Counter(listed).most_common(1)[0]
    if count > 1:
        raise ModelError(f"{path} holds '{twice}' more than once.")
    vectors_path = require_file(folder, config.file, why=WHY)
    vectors = read_array(vectors_path, ModelError)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ModelError(f"{vectors_path} must hold one row of floats per text, not {vectors.dtype} {vectors.shape}.")
    if len(listed) != len(vectors):
        raise ModelError(f"{path} has {len(listed)} texts and {vectors_path} {len(vectors)} rows.")
    texts = [template.replace("{}", text) for text in listed] if template else listed
    return TextTable(texts, np.asarray(vectors, dtype=np.float32), where=str(folder))


# Towers


class OnnxContrastive(ContrastiveScorer):
    """Cosine similarity of two ONNX towers."""

    def __init__(self, spec: ModelSpec, image: ImageTower, text: TextTower | TextTable, *, batch_size: int) -> None:
        self.spec, self.batch_size = spec, batch_size
        self._image, self._text = image, text
        one_shape = image.cut.crop is not None or isinstance(image.cut.size, tuple)
        self.preparation = image.cut if one_shape else None

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know: texts that were cut."""
        return list(self._text.cut.notes) if isinstance(self._text, TextTower) else []

    @property
    def vocabulary(self) -> list[str] | None:
        """The texts that can be scored, where that is a closed list."""
        return self._text.texts if isinstance(self._text, TextTable) else None

    def prepare(self, image: Image.Image) -> Floats:
        """Resized, cropped, normalised: float32 `[channel, height, width]`."""
        return self._image.prepare(image)

    def embed_prepared(self, prepared: Sequence[Floats]) -> Floats:
        """Unit image vectors, never more than `max_batch` pictures in one call."""
        return embed_in_batches(prepared, self.batch_size, self._image.embed, kind="image")

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Unit text vectors; a text longer than the model reads is cut, and `notes` says so."""
        return embed_in_batches(texts, TEXT_BATCH, self._text.embed, kind="text")


def open_onnx(directory: str, options: LoadOptions) -> OnnxContrastive:
    """The model that `onnx:DIR` names; `max_batch` of its config bounds the batch."""
    folder = Path(os.path.expanduser(directory))
    config = read_onnx_config(folder)
    revision = content_digest(model_files(folder, config))
    providers = _providers(options.device)
    image = ImageTower(folder, config.image, providers)
    text = _text_side(folder, config, providers)
    settings = json.loads(json.dumps(asdict(config)))  # as JSON values
    spec = ModelSpec(f"onnx:{directory.rstrip('/')}", "onnx", "folder", revision, settings=settings)
    size = min(options.batch_size or BATCH_SIZE, config.image.max_batch or BATCH_SIZE)
    return OnnxContrastive(spec, image, text, batch_size=size)


class ImageTower:
    """Pictures to vectors."""

    def __init__(self, folder: Path, config: ImageConfig, providers: list[str]) -> None:
        self._config = config
        self._session = _session(folder / config.file, providers)
        _require_names(folder / config.file, self._session, [config.input], config.output)
        self.cut, self._arithmetic = cut_of(config), Arithmetic(255.0, config.mean, config.std)

    def prepare(self, image: Image.Image) -> Floats:
        """The config's preprocessing, by PIL."""
        pixels: Floats = self._arithmetic(self.cut(image)[None])[0]
        return pixels

    def embed(self, prepared: Sequence[Array]) -> Floats:
        """One call of the graph; the pictures come prepared, or only cut."""
        batch = np.stack(prepared)
        pixels = self._arithmetic(batch) if batch.dtype == np.uint8 else batch
        return _run(self._session, self._config.output, {self._config.input: pixels})


class TextTower:
    """Texts to vectors."""

    def __init__(self, folder: Path, config: TextConfig, providers: list[str]) -> None:
        self.cut = CutTexts(config.max_length)
        self._config = config
        self._session = _session(folder / config.file, providers)
        _require_names(folder / config.file, self._session, config.inputs, config.output)
        self._tokenizer = _tokenizer(folder / config.tokenizer, config.max_length)
        self._types = {input.name: INTEGERS.get(input.type, np.int64) for input in self._session.get_inputs()}

    def embed(self, texts: Sequence[str]) -> Floats:
        """One call of the graph, padded to the longest of these texts."""
        encodings = self._tokenizer.encode_batch(list(texts))
        self.cut.record(texts, [_full_length(encoding) for encoding in encodings])
        inputs: Arrays = {
            name: np.array([getattr(encoding, TOKEN_FIELDS[name]) for encoding in encodings], dtype=self._types[name])
            for name in self._config.inputs
        }
        return _run(self._session, self._config.output, inputs)


def cut_of(config: ImageConfig) -> Cut:
    """What Pillow does with a picture, rounded as in transformers' preprocessing of CLIP."""
    resample, size = Image.Resampling[config.resample.upper()], config.size
    if config.resize == "stretch":
        return Cut((size, size), resample)
    return Cut(size, resample, None if config.crop == "none" else (size, size))


def _text_side(folder: Path, config: OnnxConfig, providers: list[str]) -> TextTower | TextTable:
    if isinstance(config.text, TextConfig):
        return TextTower(folder, config.text, providers)
    table = read_text_table(folder, config.text)
    if config.embedding_dim and table.dim != config.embedding_dim:
        raise ModelError(
            f"{folder / config.text.file} has vectors of length {table.dim}, "
            f"but {folder / 'config.json'} says 'embedding_dim' {config.embedding_dim}."
        )
    return table


def model_files(folder: Path, config: OnnxConfig) -> list[Path]:
    """All files that the model consists of, weights beside its graphs included; raises if one is missing."""
    text = config.text
    named = [config.image.file, text.file, text.tokenizer if isinstance(text, TextConfig) else text.names]
    required = [require_file(folder, name, why="which config.json names") for name in named]
    beside = matching(folder, ["*.onnx.data", "*.onnx_data"])  # the weights of a large graph
    known = [folder / "config.json", *required, *beside]
    others = (path for path in sorted(folder.rglob("*")) if path.is_file() and path not in known)
    return [*known, *(path for path in others if any(_names(graph, path, folder) for graph in required))]


def _names(graph: Path, path: Path, folder: Path) -> bool:
    """Whether a graph names this file: its weights may lie under any name."""
    if graph.suffix != ".onnx" or not graph.stat().st_size:
        return False
    with graph.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(path.relative_to(folder).as_posix().encode()) >= 0


def _providers(device: str) -> list[str]:
    """CUDA if requested; `auto` is the CPU, where quantised graphs give the scores they should."""
    available = onnxruntime.get_available_providers()
    if device in ("auto", "cpu"):
        return ["CPUExecutionProvider"]
    if device.startswith("cuda") and "CUDAExecutionProvider" in available:
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]
    raise ModelError(
        f"This machine's onnxruntime has no device '{device}': it has {', '.join(available)}.\n"
        "For CUDA install onnxruntime-gpu; or leave --device out."
    )


def _session(path: Path, providers: list[str]) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    # Threads that wait for work by spinning would take the cores from those that prepare the next pictures.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # onnxruntime's errors share no base but Exception
        raise ModelError(f"{path} is not a graph that onnxruntime can run: {first_line(error)}") from error


def _require_names(path: Path, session: onnxruntime.InferenceSession, inputs: Iterable[str], output: str) -> None:
    has_inputs = {value.name for value in session.get_inputs()}
    has_outputs = [value.name for value in session.get_outputs()]
    if set(inputs) != has_inputs or output not in has_outputs:
        raise ModelError(
            f"config.json says that {path} takes {', '.join(inputs)} and gives {output}; "
            f"it takes {', '.join(sorted(has_inputs))} and gives {', '.join(has_outputs)}."
        )


def _run(session: onnxruntime.InferenceSession, output: str, inputs: Arrays) -> Floats:
    try:
        return np.asarray(session.run([output], inputs)[0], dtype=np.float32)
    except Exception as error:
        kind = OutOfMemory if "allocat" in str(error).lower() else ModelError
        raise kind(f"onnxruntime failed: {first_line(error)}") from error


def _tokenizer(path: Path, max_length: int) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except BaseException as error:  # the library raises plain Exception, or panics
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        raise ModelError(f"{path} is not a tokenizer file: {first_line(error)}") from error
    padding = tokenizer.padding or {}
    names = ("direction", "pad_id", "pad_type_id", "pad_token")
    tokenizer.enable_padding(**{name: padding[name] for name in names if name in padding})
    tokenizer.enable_truncation(max_length)
    return tokenizer


def _full_length(encoding: Encoding) -> int:
    """Tokens before cutting."""
    cut = sum(part.special_tokens_mask.count(0) for part in encoding.overflowing)
    return int(sum(encoding.attention_mask) + cut)
