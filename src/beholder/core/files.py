"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, even when the machine stops in the middle; a private one for its owner alone.

    An error names the file, not the temporary one that it was to become.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        private_folder(path.parent) if private else path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            if private:
                os.chmod(part, 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink()


def private_folder(folder: Path) -> Path:
    """The folder, made for its owner alone with all that is missing above it; one that exists stays as it is."""
    if not folder.is_dir():
        private_folder(folder.parent)
        with suppress(FileExistsError):  # another process was quicker; a file in its place is found by what follows
            folder.mkdir()
            folder.chmod(0o700)  # whatever the umask
    return folder


def store_folder(option: Path | None = None) -> Path:
    """Where scores are kept: the option, else BEHOLDER_STORE, else the user's cache."""
    if option or os.environ.get("BEHOLDER_STORE"):
        return Path(option or os.environ["BEHOLDER_STORE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beholder"
