"""ONNX pairs: an image tower and a text tower (or a closed vocabulary) as files, run without torch.

`onnx:DIR` reads `image.onnx`, `text.onnx`, `tokenizer.json`, `config.json`, or `text_table.npy` and
`text_table.json` instead of the text tower. The layout and its checks are in `onnx_config`.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory, first_line, is_panic
from beholder.models.checkpoint.files import content_digest, matching, require_file
from beholder.models.contrastive.embedding import CutTexts, embed_in_batches
from beholder.models.contrastive.onnx_config import (
    ImageConfig,
    OnnxConfig,
    TextConfig,
    TextTable,
    read_onnx_config,
    read_text_table,
)
from beholder.models.preparation import Arithmetic, Array, Cut
from beholder.models.scorer import ContrastiveScorer, Floats
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
