"""Model folders: what is in them, and one digest over what matters in them.

A folder's digest is over the names and bytes of the files it is given, so a copy elsewhere is the same model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from beholder.core.digests import digest, file_digest
from beholder.core.errors import ModelError
from beholder.core.paths import leads_out
from beholder.core.read import read_json

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
