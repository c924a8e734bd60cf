"""ONNX pairs: an image tower and a text tower (or a closed vocabulary) as files, run without torch.

`onnx:DIR` reads `image.onnx`, `text.onnx`, `tokenizer.json`, `config.json`, or `text_table.npy` and
`text_table.json` instead of the text tower. The layout and its checks are in `onnx_config`.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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


class OnnxContrastive(ContrastiveScorer):
    """Cosine similarity of two ONNX towers."""

    def __init__(self, spec: ModelSpec, image: ImageTower, text: TextTower | TextTable, *, batch_size: int) -> None:
        self.spec, self.batch_size = spec, batch_size
        self._image, self._text = image, text
        self.preparation = image.cut if image.one_shape else None

    @classmethod
    def from_folder(
        cls, folder: Path, *, name: str, device: str = "auto", batch_size: int | None = None
    ) -> OnnxContrastive:
        """Load a folder; `max_batch` of its config bounds the batch."""
        config = read_onnx_config(folder)
        revision = content_digest(model_files(folder, config))
        providers = _providers(device)
        image = ImageTower(folder, config.image, providers)
        text = _text_side(folder, config, providers)
        settings = json.loads(json.dumps(asdict(config)))  # as JSON values
        spec = ModelSpec(name, "onnx", "folder", revision, settings=settings)
        size = min(batch_size or BATCH_SIZE, config.image.max_batch or BATCH_SIZE)
        return cls(spec, image, text, batch_size=size)

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
    """The model that `onnx:DIR` names."""
    return OnnxContrastive.from_folder(
        Path(os.path.expanduser(directory)),
        name=f"onnx:{directory.rstrip('/')}",
        device=options.device,
        batch_size=options.batch_size,
    )


class ImageTower:
    """Pictures to vectors."""

    def __init__(self, folder: Path, config: ImageConfig, providers: list[str]) -> None:
        self._config = config
        self._session = _session(folder / config.file, providers)
        _require_names(folder / config.file, self._session, [config.input], config.output)
        self.cut, self._arithmetic = cut_of(config), Arithmetic(255.0, config.mean, config.std)

    @property
    def one_shape(self) -> bool:
        """Whether all pictures reach the graph in one shape."""
        return self.cut.crop is not None or isinstance(self.cut.size, tuple)

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
        return _run(self._session, self._config.output, self._inputs(encodings))

    def _inputs(self, encodings: Sequence[Encoding]) -> Arrays:
        return {
            name: np.array([getattr(encoding, TOKEN_FIELDS[name]) for encoding in encodings], dtype=self._types[name])
            for name in self._config.inputs
        }


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
