"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, even when the machine stops in the middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def store_folder(option: Path | None = None) -> Path:
    """Where scores are kept: the option, else the user's cache."""
    return option or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beholder"
