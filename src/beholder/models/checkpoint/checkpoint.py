"""A transformers checkpoint, loaded strictly.

What the library warns of and what moves a score is an error: weights that are missing, left over or of another shape,
unknown architectures, code of the folder's own.
"""

import json
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from beholder.core.errors import ModelError
from beholder.core.types import Entry
from beholder.models.checkpoint.files import CheckpointFiles, read_config
from beholder.models.spec import LoadOptions, Module, Processor, Tensor
from beholder.models.torch_scorer import LIBRARY, as_model_error, memory_errors, resolve_device, torch, transformers

SCORE_MOVING = re.compile(r"to instantiate a model of type|newly initialized|not used when initializing")
CHATTER = re.compile(r"requires torchvision")  # the PIL image processors are asked for by name
HARMLESS_KEYS = re.compile(r"(^|\.)position_ids$")  # a counter, which old checkpoints stored as a weight


class Checkpoint(NamedTuple):
    """A model with the preprocessing that travels with its weights."""

    model: Module
    image_processor: Processor
    tokenizer: Processor
    notes: list[str]  # what the loader had to say and what moves no score


def load_checkpoint(
    files: CheckpointFiles,
    options: LoadOptions,
    *,
    auto: str = "AutoModel",
    placement: Mapping[str, object] = {},
    tokenizer: bool = True,
) -> Checkpoint:
    """Model and processors of one folder by the class `auto` of transformers; `placement`: its device_map and such."""
    folder, device, precision = files.folder, resolve_device(options.device), options.resolved_precision
    common = {"local_files_only": True, "trust_remote_code": options.trust_remote_code}
    _refuse_unknown_code(folder, options.trust_remote_code)
    with as_model_error(folder), captured_warnings() as messages:
        model, info = getattr(transformers, auto).from_pretrained(
            folder,
            use_safetensors=not files.pickled,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by name, and then refused
            dtype=getattr(torch, precision),
            **placement,
            **common,
        )
        other = [key for key, *_ in info["mismatched_keys"]]
        refuse_other_weights(folder, info["missing_keys"], info["unexpected_keys"], other, info["error_msgs"])
        image_processor = transformers.AutoImageProcessor.from_pretrained(folder, backend=backend_of(folder), **common)
        words = transformers.AutoTokenizer.from_pretrained(folder, **common) if tokenizer else None
        with memory_errors():
            model = (model if placement else model.to(device)).eval().requires_grad_(False)
    for message in messages:
        if SCORE_MOVING.search(message):
            raise ModelError(f"{folder}: transformers warns of what would change every score: {message}")
    notes = [message for message in dict.fromkeys(messages) if not CHATTER.search(message)]
    return Checkpoint(model, image_processor, words, notes)


def backend_of(folder: Path) -> str:
    """PIL by name: with torchvision installed the library would pick another, and its pixels."""
    unread = read_config(folder).get("model_type") == "fuyu"  # whose processor cannot go on with PIL's arrays (5.22)
    return "torchvision" if unread else "pil"


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
        f"{LIBRARY} knows no model type '{model_type}', "
        f"which {folder}/config.json names.\nA newer transformers may: pip install --upgrade transformers."
    )


def model_class(model_type: str | None) -> type[Module] | None:
    """The class that transformers has for a model type, if it has one."""
    if not isinstance(model_type, str) or model_type not in transformers.CONFIG_MAPPING:
        return None
    classes = transformers.MODEL_MAPPING.get(transformers.CONFIG_MAPPING[model_type], None)
    kind: type[Module] | None = classes[0] if isinstance(classes, tuple) else classes
    return kind


def refuse_other_weights(
    folder: Path, missing: Sequence[str], unexpected: Sequence[str], other: Sequence[str], errors: Sequence[str] = ()
) -> None:
    """Raise unless the weights are the model's, all of them and no others; `other` are those of another shape."""
    problems = {"missing": missing, "unexpected": unexpected, "of another shape": other, "unreadable": errors}
    faults = []
    for what, given in problems.items():
        if keys := sorted(key for key in given if not HARMLESS_KEYS.search(key)):
            faults.append(f"{what}: {', '.join(keys[:12])}" + (f" … ({len(keys)} in all)" if len(keys) > 12 else ""))
    if faults:
        raise ModelError(
            f"The weights in {folder} are not those of the model that its config.json describes.\n"
            + "\n".join(faults)
            + "\nScores of a partly random model mean nothing: get the checkpoint again or correct config.json."
        )


def read_weights(files: CheckpointFiles) -> dict[str, Tensor]:
    """The tensors of the folder's files under their published names, for models that transformers does not have."""
    from safetensors.torch import load_file

    read, weights = _unpickled if files.pickled else load_file, dict[str, Tensor]()
    for path in files.weights:
        weights |= read(path) if path.suffix != ".json" else {}
    return weights


def _unpickled(path: Path) -> Mapping[str, Tensor]:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle, zip and torch each have their own
        raise ModelError(
            f"{path} cannot be read as weights alone: {' '.join(str(error).split())[:300]}\n"
            "Convert it to model.safetensors if you trust it; docs/matching.md says how."
        ) from error
    weights = loaded.get("model", loaded) if isinstance(loaded, dict) else loaded
    if not isinstance(weights, Mapping):
        raise ModelError(f"{path} holds a {type(weights).__name__}, not named weights.")
    return {name: value for name, value in weights.items() if isinstance(value, torch.Tensor)}


def take_weights(model: Module, given: Mapping[str, Tensor], folder: Path) -> None:
    """Load named weights into a model; what is missing, left over or of another shape is an error."""
    wanted = model.state_dict()
    other = [name for name in wanted.keys() & given.keys() if wanted[name].shape != given[name].shape]
    refuse_other_weights(folder, [*(wanted.keys() - given.keys())], [*(given.keys() - wanted.keys())], other)
    model.load_state_dict(given)


@contextmanager
def captured_warnings(library: str = "transformers", level: int = logging.WARNING) -> Iterator[list[str]]:
    """A library without its progress bars and log lines; its warnings as a list. `""` listens to the root."""
    messages: list[str] = []
    logger, listener = logging.getLogger(library), logging.Handler(level)
    listener.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    handlers, level_before = logger.handlers, logger.level
    bars = transformers.utils.logging.is_progress_bar_enabled()
    logger.handlers = [listener]
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


def image_settings(processor: Processor) -> dict[str, object]:
    """The processor's settings as plain JSON, with the class that applies them."""
    moot = {"processor_class", "_processor_class", "auto_map", "_commit_hash", "name_or_path"}
    kept = {key: value for key, value in processor.to_dict().items() if key not in moot}
    return {**as_json(kept), "class": type(processor).__name__}


def model_settings(model: Module, image_processor: Processor) -> Entry:
    """What every spec says of a model of transformers and of how it is shown pictures."""
    return {
        "model_type": model.config.model_type,
        "architecture": type(model).__name__,
        "attention": getattr(model.config, "_attn_implementation", None),
        "image_processor": image_settings(image_processor),
    }


def as_json(values: Mapping[str, object]) -> dict[str, object]:
    """The values as a JSON file would give them back; what JSON does not have becomes text."""
    plain: dict[str, object] = json.loads(json.dumps(values, default=str))
    return plain
