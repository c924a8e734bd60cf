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

import json
import mmap
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory, UnknownName, first_line, is_panic
from beholder.core.read import read_array, read_json
from beholder.core.types import Entry
from beholder.models.checkpoint.files import ConfigFile, content_digest, matching, read_config, require_file
from beholder.models.preparation import Arithmetic, Array, Cut
from beholder.models.scorer import ContrastiveScorer, CutTexts, Floats, embed_in_batches, unit_rows
from beholder.models.spec import LoadOptions, ModelSpec

try:
    import onnxruntime
    from tokenizers import Tokenizer
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


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """The image tower and the preprocessing that it was trained with."""

    file: str = "image.onnx"
    input: str
    output: str
    size: int
    resize: str
    resample: str = ""  # config.json has it behind the comma of `resize`
    crop: str = "center"
    mean: tuple[float, ...]
    std: tuple[float, ...]
    max_batch: int | None = None


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """The text tower and its tokenizer."""

    file: str = "text.onnx"
    inputs: tuple[str, ...]
    output: str
    tokenizer: str = "tokenizer.json"
    max_length: int


@dataclass(frozen=True)
class TableConfig:
    """A closed vocabulary instead of a text tower."""

    file: str = "text_table.npy"
    names: str = "text_table.json"
    template: str | None = None


@dataclass(frozen=True)
class OnnxConfig:
    """A whole model folder."""

    image: ImageConfig
    text: TextConfig | TableConfig
    logit_scale: float
    logit_bias: float = 0.0
    embedding_dim: int | None = None


def _is_list(value: object, kind: type) -> bool:
    kinds = (int, float) if kind is float else kind
    fits = isinstance(value, list) and all(isinstance(one, kinds) and not isinstance(one, bool) for one in value)
    return fits and value != []


# By the type of a field: what its value in config.json must be, in words; whether it is that; what becomes of it.
FORMS: dict[object, tuple[str, Callable[[Any], bool], Callable[[Any], object]]] = {
    str: ("a text", lambda value: isinstance(value, str) and value != "", str),
    int: ("a whole number above 0", lambda value: type(value) is int and value > 0, int),
    float: ("a number", lambda value: _is_list([value], float), float),
    tuple[str, ...]: ("a list of texts", lambda value: _is_list(value, str), tuple),
    tuple[float, ...]: (
        "three numbers, one per colour",
        lambda value: _is_list(value, float) and len(value) == 3,
        lambda value: tuple(map(float, value)),
    ),
}
Part = TypeVar("Part", ImageConfig, TextConfig, TableConfig, OnnxConfig)


def read_onnx_config(folder: Path) -> OnnxConfig:
    """The folder's configuration; raises a `ModelError` that names key and file."""
    path, values = folder / "config.json", read_config(folder)
    image = _part(ImageConfig, values, path, "image")
    resize, _, resample = (part.strip() for part in image.resize.partition(","))
    if resize not in RESIZES or resample not in FILTERS:
        wanted = f"'HOW, FILTER' with HOW of {RESIZES} and FILTER of {FILTERS}"
        raise _wrong(path, "image.resize", wanted, image.resize)
    if image.crop not in CROPS:
        raise _wrong(path, "image.crop", f"one of {', '.join(CROPS)}", image.crop)
    text: TextConfig | TableConfig = TableConfig()
    if "text" in values:
        text = _part(TextConfig, values, path, "text")
    elif "text_table" in values:
        text = _part(TableConfig, values, path, "text_table")
    elif not (folder / text.file).is_file():
        raise ModelError(
            f"{path} has no 'text', and {folder} has no {text.file}.\n"
            "A model needs a text tower (text.onnx with 'text' in config.json) or a table of texts "
            "(text_table.npy with text_table.json)."
        )
    return _part(OnnxConfig, values, path, image=replace(image, resize=resize, resample=resample), text=text)


def _part(cls: type[Part], values: ConfigFile, path: Path, section: str = "", **known: object) -> Part:
    """A section of config.json, or its top; a missing or wrong key is named with its file."""
    if section and not isinstance(values.get(section), Mapping):
        raise _wrong(path, section, "an object", values.get(section))
    held, prefix = (values[section], f"{section}.") if section else (values, "")
    found: Entry = dict(known)
    for each in fields(cls):
        value = held.get(each.name)
        if each.name in known or (value is None and each.default is not MISSING):
            continue
        wanted, fits, made = FORMS[each.type if each.type in FORMS else get_args(each.type)[0]]
        if not fits(value):
            raise _wrong(path, f"{prefix}{each.name}", wanted, value)
        found[each.name] = made(value)
    return cls(**found)


def _wrong(path: Path, key: str, wanted: str, value: object) -> ModelError:
    problem = "it is missing" if value is None else f"it is {value!r}"
    return ModelError(f"{path}: '{key}' must be {wanted}; {problem}.")


# A closed vocabulary

TEMPLATE = "a photo of a {}"
WHY = "which config.json names as its table of texts"


class TextTable:
    """Unit vectors looked up by their exact text."""

    def __init__(self, texts: Sequence[str], vectors: Floats, *, where: str) -> None:
        self.texts, self._where = list(texts), where
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = unit_rows(vectors, kind="text")
        self.dim = int(vectors.shape[1])

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
    if not _is_list(listed, str):
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


class Graph:
    """An ONNX graph that takes and gives what config.json says."""

    def __init__(self, path: Path, inputs: Sequence[str], output: str, providers: list[str]) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors only
        # Threads that wait for work by spinning would take the cores from those that prepare the next pictures.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=providers)
        except Exception as error:  # onnxruntime's errors share no base but Exception
            raise ModelError(f"{path} is not a graph that onnxruntime can run: {first_line(error)}") from error
        self.types = {each.name: INTEGERS.get(each.type, np.int64) for each in self._session.get_inputs()}
        outputs = [each.name for each in self._session.get_outputs()]
        if set(inputs) != set(self.types) or output not in outputs:
            raise ModelError(
                f"config.json says that {path} takes {', '.join(inputs)} and gives {output}; "
                f"it takes {', '.join(sorted(self.types))} and gives {', '.join(outputs)}."
            )
        self._output = output

    def run(self, inputs: Arrays) -> Floats:
        """One call."""
        try:
            return np.asarray(self._session.run([self._output], inputs)[0], dtype=np.float32)
        except Exception as error:
            kind = OutOfMemory if "allocat" in str(error).lower() else ModelError
            raise kind(f"onnxruntime failed: {first_line(error)}") from error


class TextTower:
    """Texts to vectors."""

    def __init__(self, folder: Path, config: TextConfig, providers: list[str]) -> None:
        self.cut, self._inputs = CutTexts(config.max_length), config.inputs
        self._graph = Graph(folder / config.file, config.inputs, config.output, providers)
        self._tokenizer = _tokenizer(folder / config.tokenizer, config.max_length)

    def embed(self, texts: Sequence[str]) -> Floats:
        """One call of the graph, padded to the longest of these texts."""
        encodings = self._tokenizer.encode_batch(list(texts))
        overflow = [sum(part.special_tokens_mask.count(0) for part in one.overflowing) for one in encodings]
        self.cut.record(texts, [sum(one.attention_mask) + cut for one, cut in zip(encodings, overflow, strict=True)])
        tokens = {name: [getattr(one, TOKEN_FIELDS[name]) for one in encodings] for name in self._inputs}
        return self._graph.run({name: np.array(rows, self._graph.types[name]) for name, rows in tokens.items()})


class OnnxContrastive(ContrastiveScorer):
    """Cosine similarity of two ONNX towers."""

    def __init__(self, spec: ModelSpec, folder: Path, config: OnnxConfig, options: LoadOptions) -> None:
        image, providers = config.image, _providers(options.device)
        self.spec = spec
        self.batch_size = min(options.batch_size or BATCH_SIZE, image.max_batch or BATCH_SIZE)
        self._input, self._graph = image.input, Graph(folder / image.file, [image.input], image.output, providers)
        self._cut, self._arithmetic = cut_of(image), Arithmetic(255.0, image.mean, image.std)
        one_shape = self._cut.crop is not None or isinstance(self._cut.size, tuple)
        self.preparation = self._cut if one_shape else None
        self._text: TextTower | TextTable
        if isinstance(config.text, TextConfig):
            self._text = TextTower(folder, config.text, providers)
            return
        self._text = read_text_table(folder, config.text)
        if config.embedding_dim and self._text.dim != config.embedding_dim:
            raise ModelError(
                f"{folder / config.text.file} has vectors of length {self._text.dim}, "
                f"but {folder / 'config.json'} says 'embedding_dim' {config.embedding_dim}."
            )

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know: texts that were cut."""
        return list(self._text.cut.notes) if isinstance(self._text, TextTower) else []

    def prepare(self, image: Image.Image) -> Floats:
        """Resized, cropped, normalised: float32 `[channel, height, width]`."""
        return np.asarray(self._arithmetic(self._cut(image)[None])[0])

    def embed_prepared(self, prepared: Sequence[Array]) -> Floats:
        """Unit image vectors, never more than `max_batch` pictures in one call; they come prepared, or only cut."""

        def embed(part: Sequence[Array]) -> Floats:
            batch = np.stack(part)
            return self._graph.run({self._input: self._arithmetic(batch) if batch.dtype == np.uint8 else batch})

        return embed_in_batches(prepared, self.batch_size, embed, kind="image")

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Unit text vectors; a text longer than the model reads is cut, and `notes` says so."""
        return embed_in_batches(texts, TEXT_BATCH, self._text.embed, kind="text")


def open_onnx(directory: str, options: LoadOptions) -> OnnxContrastive:
    """The model that `onnx:DIR` names; `max_batch` of its config bounds the batch."""
    folder = Path(os.path.expanduser(directory))
    config = read_onnx_config(folder)
    revision = content_digest(model_files(folder, config))
    settings = json.loads(json.dumps(asdict(config)))  # as JSON values
    spec = ModelSpec(f"onnx:{directory.rstrip('/')}", "onnx", "folder", revision, settings=settings)
    return OnnxContrastive(spec, folder, config, options)


def cut_of(config: ImageConfig) -> Cut:
    """What Pillow does with a picture, rounded as in transformers' preprocessing of CLIP."""
    resample, size = Image.Resampling[config.resample.upper()], config.size
    if config.resize == "stretch":
        return Cut((size, size), resample)
    return Cut(size, resample, None if config.crop == "none" else (size, size))


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
