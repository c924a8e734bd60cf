"""A transformers checkpoint, loaded strictly: what the library warns of and what moves a score is an error.

Weights that are missing, left over or of another shape, unknown architectures, code of the folder's own: each
is refused with a message that names it. Of our two-tower adapters only these modules import torch.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from beholder.core.errors import BeholderError, MissingExtra, ModelError, OutOfMemory, is_panic
from beholder.models.checkpoint.files import CheckpointFiles, read_config
from beholder.models.spec import Module, Processor

try:
    import torch as torch  # for the adapters too
    import transformers as transformers
except ImportError as error:
    raise MissingExtra("A transformers model", "torch") from error

SCORE_MOVING = re.compile(r"to instantiate a model of type|newly initialized|not used when initializing")
NO_MEMORY = re.compile("out of memory|can.t allocate memory")
CHATTER = re.compile(r"requires torchvision")  # the PIL image processors are asked for by name
HARMLESS_KEYS = re.compile(r"(^|\.)position_ids$")  # a counter, which old checkpoints stored as a weight


class Checkpoint(NamedTuple):
    """A model with the preprocessing that travels with its weights."""

    model: Module
    image_processor: Processor
    tokenizer: Processor
    notes: list[str]
    """What the loader had to say and what moves no score."""


def load_checkpoint(
    files: CheckpointFiles,
    *,
    device: str,
    precision: str,
    trust_remote_code: bool = False,
    auto: str = "AutoModel",
    placement: Mapping[str, object] | None = None,
) -> Checkpoint:
    """Model, image processor and tokenizer of one folder; `auto` names the class of transformers that loads it.

    `placement` holds the options of that class (device_map, quantization_config) that decide where the weights go.
    """
    folder = files.folder
    _refuse_unknown_code(folder, trust_remote_code)
    common = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    with as_model_error(folder), captured_warnings() as messages:
        model = _strict_model(files, auto, dtype=getattr(torch, precision), **(placement or {}), **common)
        # The PIL backend by name: with torchvision installed the library would pick another, and its pixels.
        image_processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **common)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **common)
        with memory_errors():
            model = (model if placement else model.to(device)).eval().requires_grad_(False)
    return Checkpoint(model, image_processor, tokenizer, _judged(folder, messages))


def model_class(model_type: str | None) -> type[Module] | None:
    """The class that transformers has for a model type, if it has one."""
    if not isinstance(model_type, str) or model_type not in transformers.CONFIG_MAPPING:
        return None
    classes = transformers.MODEL_MAPPING.get(transformers.CONFIG_MAPPING[model_type], None)
    kind: type[Module] | None = classes[0] if isinstance(classes, tuple) else classes
    return kind


def resolve_device(asked: str) -> str:
    """`auto` is CUDA where there is one, else the CPU; anything else must exist here."""
    if asked == "auto":
        # mps only for the asking: its kernels have changed scores between versions of torch.
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked not in (known := _devices()):
        raise ModelError(f"This machine has no device '{asked}'.\nIt has: auto, {', '.join(known)}.")
    return asked


def _devices() -> list[str]:
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *(["cuda"] if cuda else []), *cuda, *mps]


@contextmanager
def memory_errors() -> Iterator[None]:
    """Whatever torch says when memory runs out becomes `OutOfMemory`."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not NO_MEMORY.search(str(error)):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise OutOfMemory(f"The model ran out of memory: {str(error).splitlines()[0]}") from error


def _refuse_unknown_code(folder: Path, trust_remote_code: bool) -> None:
    config = read_config(folder)
    model_type = str(config.get("model_type"))
    if trust_remote_code or model_type in transformers.CONFIG_MAPPING:
        return
    if "auto_map" in config:
        raise ModelError(
            f"{folder} (model type '{model_type}') brings code of its own, which is not run unasked.\n"
            "If you trust its source, allow it with --trust-remote-code (LoadOptions.trust_remote_code)."
        )
    raise ModelError(
        f"transformers {transformers.__version__} knows no model type '{model_type}', "
        f"which {folder}/config.json names.\nA newer transformers may: pip install --upgrade transformers."
    )


def _strict_model(files: CheckpointFiles, auto: str, **options: object) -> Module:
    model, info = getattr(transformers, auto).from_pretrained(
        files.folder,
        use_safetensors=not files.pickled,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # reported by name, and then refused
        **options,
    )
    refuse_other_weights(files.folder, info)
    return model


def refuse_other_weights(folder: Path, info: Mapping[str, Any]) -> None:
    """Raise unless the weights are the model's, all of them and no others; `info` is what transformers tells."""
    problems = {
        "missing": info["missing_keys"],
        "unexpected": info["unexpected_keys"],
        "of another shape": [key for key, *_ in info["mismatched_keys"]],
        "unreadable": info["error_msgs"],
    }
    wrong = {what: [key for key in keys if not HARMLESS_KEYS.search(key)] for what, keys in problems.items()}
    faults = [f"{what}: {_listed(keys)}" for what, keys in wrong.items() if keys]
    if faults:
        raise ModelError(
            f"The weights in {folder} are not those of the model that its config.json describes.\n"
            + "\n".join(faults)
            + "\nScores of a partly random model mean nothing: get the checkpoint again or mend config.json."
        )


def _listed(keys: list[str]) -> str:
    return ", ".join(sorted(keys)[:12]) + (f" … ({len(keys)} in all)" if len(keys) > 12 else "")


@contextmanager
def as_model_error(folder: Path | str, library: str = f"transformers {transformers.__version__}") -> Iterator[None]:
    """The libraries' own errors while loading, told with the folder's name."""
    try:
        yield
    except (BeholderError, MemoryError):
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        reason = " ".join(str(error).split())[:600] or type(error).__name__
        raise ModelError(f"{folder} cannot be loaded by {library}: {reason}") from error


class _Listener(logging.Handler):
    def __init__(self, messages: list[str], level: int) -> None:
        super().__init__(level)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())


@contextmanager
def captured_warnings(library: str = "transformers", level: int = logging.WARNING) -> Iterator[list[str]]:
    """A library without its progress bars and log lines; its warnings as a list. `""` listens to the root."""
    messages: list[str] = []
    logger = logging.getLogger(library)
    handlers, level_before = logger.handlers, logger.level
    bars = transformers.utils.logging.is_progress_bar_enabled()
    logger.handlers = [_Listener(messages, level)]
    logger.setLevel(level)
    transformers.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield messages
        messages.extend(str(warning.message) for warning in caught)
    finally:
        logger.handlers = handlers
        logger.setLevel(level_before)
        if bars:
            transformers.utils.logging.enable_progress_bar()


def _judged(folder: Path, messages: list[str]) -> list[str]:
    """Warnings that move a score are errors, chatter is dropped, the rest is kept as notes."""
    for message in messages:
        if SCORE_MOVING.search(message):
            raise ModelError(f"{folder}: transformers warns of what would change every score: {message}")
    return [message for message in dict.fromkeys(messages) if not CHATTER.search(message)]


@contextmanager
def replaced_forward(module: Module, forward: Callable[..., object]) -> Iterator[None]:
    """While this lasts, the module's forward pass is another; whatever stood there before comes back."""
    before = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before
