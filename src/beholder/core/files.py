"""Files that are written whole or not at all, in a folder here or behind a URI."""

import hashlib
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from stat import S_ISDIR
from typing import IO, Any

from beholder.core.errors import RemoteError
from beholder.core.remote import RemotePath, Status, require_protocol

try:
    import fcntl
except ImportError:  # not on Windows: files are not locked there
    fcntl = None  # type: ignore[assignment]

HOST = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()  # in the names of temporary files


def leads_out(name: str) -> bool:
    """Whether a name, as it is written, can lead out of the folder that it is read in."""
    plain = PurePosixPath(name.replace("\\", "/"))
    absolute = plain.is_absolute() or bool(PureWindowsPath(name).drive) or "://" in name
    return absolute or ".." in plain.parts or "\0" in name


SNAPSHOT = re.compile(r"(?<=/)((?:datasets|models)--[^/]+)/snapshots/.*")


def links_out(path: str, folder: str) -> bool:
    """Whether a file below a folder is really elsewhere: it, or a folder on the way to it, is a link.

    The hub's cache is one place: what lies in `NAME/snapshots` there leads to `NAME/blobs`.
    """
    home, place = SNAPSHOT.sub(r"\1", _real(os.getcwd(), folder)), _real(os.getcwd(), os.path.dirname(path))
    real = os.path.realpath(path) if os.path.islink(path) else os.path.join(place, os.path.basename(path))
    return not real.startswith(os.path.join(home, ""))


@lru_cache(maxsize=10_000)
def _real(here: str, folder: str) -> str:
    return os.path.realpath(os.path.join(here, folder))


# Files that are written whole or not at all, in a folder here or behind a URI

Place = Path | RemotePath  # a file or folder, here or behind a URI
URI = re.compile(r"([a-z][a-z0-9+.:-]+):/+(.+)", re.DOTALL)  # also as a `Path` has it, which makes one slash of two


def place(where: str | Place) -> Place:
    """The file or folder that a path or a URI names; `file://` is a path."""
    if isinstance(where, RemotePath):
        return where
    match = URI.fullmatch(str(where))
    if not match or match[1] == "file":
        return Path("/" + match[2]) if match else Path(where)
    require_protocol(uri := f"{match[1]}://{match[2]}")
    return RemotePath(uri)


def listing(folder: Place) -> list[Status]:
    """What lies in a folder, by name; nothing if there is no such folder."""
    if isinstance(folder, RemotePath):
        return folder.entries()
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return sorted(_status(entry) for entry in entries)
    return []


def walk(folder: Place) -> Iterator[tuple[Place, Status]]:
    """All files below a folder; a folder here gives its folders too."""
    if isinstance(folder, RemotePath):
        yield from folder.walk()
    else:
        yield from ((path, _status(path)) for path in folder.rglob("*"))


def _status(entry: os.DirEntry[str] | Path) -> Status:
    try:
        status = os.lstat(entry)
    except FileNotFoundError:  # another process was quicker
        return Status(entry.name, False, 0, 0.0, "")
    stamp = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
    return Status(entry.name, S_ISDIR(status.st_mode), status.st_size, status.st_mtime, stamp)


def can_write(folder: Place) -> bool:
    """Whether files can be written there; behind a URI only a try can tell."""
    if not isinstance(folder, RemotePath):
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        return os.access(there, os.W_OK | os.X_OK)
    probe = folder / f".{uuid.uuid4().hex}.part"
    try:
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)
    except RemoteError as error:
        if isinstance(error.__cause__, PermissionError):
            return False
        raise
    return True


def remove_tree(folder: Place) -> None:
    """Delete a folder with all that is in it, if it is there."""
    folder.remove_tree() if isinstance(folder, RemotePath) else shutil.rmtree(folder, ignore_errors=True)


def write_whole(path: Place, data: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, even when the machine stops in the middle; a private one for its owner alone.

    An error names the file, not the temporary one that it was to become. Behind a URI, who can read is not ours to say.
    """
    if isinstance(path, RemotePath):
        path.write_bytes(data)
        return
    part = path.with_name(f".{path.name}.{HOST}.{uuid.uuid4().hex}.part")
    try:
        private_folder(path.parent) if private else path.parent.mkdir(parents=True, exist_ok=True)
        with _held(part):
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


@contextmanager
def _held(part: Path) -> Iterator[None]:
    """Lock a temporary file until it has its name. The lock ends with the process, however that ends."""
    if fcntl is None:
        yield
        return
    with part.open("wb") as file:
        with suppress(OSError):  # a disk that knows no locks
            lock(file)
        yield


def lock(file: IO[Any]) -> None:
    """Lock an open file, or raise; nothing where there are no locks."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_dead(part: Place) -> bool:
    """Whether a temporary file was left by a process of this machine that has ended."""
    if fcntl is None or isinstance(part, RemotePath) or f".{HOST}." not in part.name:
        return False
    try:
        with part.open("r+b") as file:
            lock(file)
    except OSError:
        return False
    return True


def remove_dead(folder: Place, pattern: str = ".*.part") -> None:
    """Delete what killed processes left in a folder; what a living one is writing stays."""
    for part in [] if isinstance(folder, RemotePath) else [*folder.glob(pattern)]:
        if is_dead(part):
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


def store_folder(option: str | Place | None = None) -> Place:
    """Where scores are kept: the option, else BEHOLDER_STORE, else the user's cache."""
    return place(option or os.environ.get("BEHOLDER_STORE") or cache_folder())


def cache_folder() -> Path:
    """The user's cache on this machine."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beholder"
