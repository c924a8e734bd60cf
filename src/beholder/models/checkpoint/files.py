"""The files of a transformers checkpoint: which of them matter, and where they came from.

No torch here: a wrong folder is told before torch is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from beholder.core.digests import digest, file_digest
from beholder.core.errors import ModelError
from beholder.core.files import leads_out
from beholder.core.read import read_json

SETTINGS = tuple(
    """
    config.json preprocessor_config.json processor_config.json tokenizer.json tokenizer_config.json
    special_tokens_map.json added_tokens.json generation_config.json chat_template.* vocab.json vocab.txt
    merges.txt *.model *.safetensors.index.json
    """.split()
)
SAFE_WEIGHTS = ("model.safetensors", "model-*.safetensors")
PICKLED_WEIGHTS = ("pytorch_model.bin", "pytorch_model-*.bin", "pytorch_model.bin.index.json")
CODE = ("*.py",)
TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
IMAGE_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


class Origin(NamedTuple):
    """Where a checkpoint comes from: hub id and commit, or `folder` and the digest of its contents."""

    weights: str
    revision: str


class CheckpointFiles(NamedTuple):
    """A folder and the weights in it that may be read."""

    folder: Path
    weights: tuple[Path, ...]
    pickled: bool

    @property
    def origin(self) -> Origin:
        """The folder's contents as a revision: weights, configurations, tokenizer, and code if it has any."""
        return Origin("folder", content_digest([*matching(self.folder, [*SETTINGS, *CODE]), *self.weights]))


def find_files(
    folder: Path, *, allow_pickle: bool, pickled_names: Sequence[str] = PICKLED_WEIGHTS, image_processor: bool = True
) -> CheckpointFiles:
    """Safetensors if there are any; pickled weights, which can run code, only when they are allowed."""
    # transformers makes up an empty tokenizer where there is none, and the scores would mean nothing.
    _require_one(folder, TOKENIZERS, "tokenizer")
    if image_processor:
        _require_one(folder, IMAGE_PROCESSORS, "image processor")
    safe, pickled = matching(folder, SAFE_WEIGHTS), matching(folder, pickled_names)
    if safe:
        return CheckpointFiles(folder, tuple(safe), pickled=False)
    if pickled and allow_pickle:
        return CheckpointFiles(folder, tuple(pickled), pickled=True)
    if pickled:
        raise ModelError(
            f"{folder} holds its weights only as {', '.join(path.name for path in pickled)}: "
            "pickled files, which can run code when they are read.\n"
            "If you trust their source, allow them with --allow-pickle (LoadOptions.allow_pickle); "
            "better is a copy with model.safetensors."
        )
    raise ModelError(
        f"{folder} has no weights: {' or '.join(SAFE_WEIGHTS)} was looked for.\nIt holds: {held(folder)}.\n"
        "A hub model that has pickled weights only is fetched with --allow-pickle, if you trust its source."
    )


def _require_one(folder: Path, patterns: tuple[str, ...], what: str) -> None:
    if not matching(folder, patterns):
        raise ModelError(f"{folder} has no {what}: {', '.join(patterns)} were looked for.\nIt holds: {held(folder)}.")


# Model folders

ConfigFile = dict[str, Any]  # the JSON object of a config.json; its keys differ by family


def content_digest(files: Iterable[Path]) -> str:
    """Stands for the names and bytes of these files, wherever their folder lies and whatever it is called."""
    ordered = sorted(files, key=lambda path: path.name)
    with ThreadPoolExecutor(4) as pool:  # hashing releases the interpreter's lock
        digests = pool.map(file_digest, ordered)
        return digest([[path.name, value] for path, value in zip(ordered, digests, strict=True)])


def matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The folder's own files (not those of its subfolders) whose name fits one of the patterns, by name."""
    files = (path for path in folder.iterdir() if path.is_file())
    return sorted(path for path in files if any(fnmatch(path.name, pattern) for pattern in patterns))


def held(folder: Path) -> str:
    """What the folder holds, for a message."""
    return ", ".join(sorted(child.name for child in folder.iterdir())[:20]) or "nothing"


def require_file(folder: Path, name: str, *, why: str) -> Path:
    """The file, or an error that lists what the folder holds."""
    if leads_out(name):
        raise ModelError(f"{folder}: {name!r}, {why}, lies outside the model's folder.")
    path = folder / name
    if not os.path.isfile(path):  # unlike `Path.is_file`, it says no to names that no file can have
        raise ModelError(f"{folder} has no {name}, {why}.\nIt holds: {held(folder)}.")
    return path


def read_config(folder: Path) -> ConfigFile:
    """The `config.json` of a model folder, an object."""
    if not folder.is_dir():
        raise ModelError(f"There is no model folder {folder}.\nName a folder that holds a config.json and the weights.")
    path = require_file(folder, "config.json", why="which every model folder has")
    value = read_json(path, ModelError)
    if not isinstance(value, dict):
        raise ModelError(f"{path} must hold a JSON object, not {type(value).__name__}.")
    return value
