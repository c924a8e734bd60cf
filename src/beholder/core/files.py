"""Files that are written whole or not at all, in a folder here or behind a URI such as `s3://bucket/folder`.

Those behind a URI are used as a `Path` is, through fsspec, and shown without credentials. An object store has no
folders, no locks and no renaming. What it has is the put of a whole object: it is there with all its bytes or not at
all. On file systems behind a URI that are no object stores, a file is written under another name and then renamed.
"""

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
from typing import IO, Any, NamedTuple, Self

from beholder.core.errors import BeholderError, MissingData, MissingExtra, RemoteError, first_line, masked
from beholder.core.types import Entry

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


# Files behind URIs

OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "memory"}  # puts are whole
PROTOCOLS = OBJECT_STORES | {"hf", "sftp", "file"}  # of those that fsspec knows; others unpack, chain or run things
DATES = ("LastModified", "last_modified", "mtime", "created")
TAGS = ("ETag", "etag", "md5Hash", "generation", "blob_id", *DATES)  # change with the bytes; the first is used
PLAIN = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, BeholderError)  # clear enough


class Status(NamedTuple):
    """What is known of a file or folder without reading it."""

    name: str
    is_folder: bool
    st_size: int
    st_mtime: float
    stamp: str  # changes when the bytes change


class RemotePath(PurePosixPath):
    """A file or folder behind a URI, with the methods of a `Path`. Its text leaves out credentials; `uri` has them."""

    def __str__(self) -> str:
        return masked(self.uri)

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def uri(self) -> str:
        """The whole address."""
        protocol, _, rest = super().__str__().partition(":/")
        return f"{protocol}://{rest}"

    def read_bytes(self) -> bytes:
        with self._reached("read") as (system, path):
            return bytes(system.cat_file(path))

    def open(self, mode: str = "rb") -> Any:
        """The file for reading; only what is asked for is fetched."""
        return open_remote(self.uri, fresh=True)

    def write_bytes(self, data: bytes) -> None:
        """The whole file or nothing of it."""
        with self._reached("written") as (system, path):
            try:
                if self.parts[0].rstrip(":") in OBJECT_STORES:
                    system.pipe_file(path, data)
                    return
                part = f"{path}.{uuid.uuid4().hex}.part"
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                system.pipe_file(part, data)
                system.mv(part, path)
            except FileNotFoundError as error:  # the bucket
                raise unreachable(self, "written", error) from error

    def status(self) -> Status | None:
        """What is known of it; None if there is nothing."""
        return remote_status(self.uri, fresh=True)

    def is_file(self) -> bool:
        return (status := self.status()) is not None and not status.is_folder

    def is_dir(self) -> bool:
        """Whether there is a folder; of an object store, whether any name begins so."""
        return (status := self.status()) is not None and status.is_folder

    def stat(self) -> Status:
        if (status := self.status()) is None:
            raise FileNotFoundError(str(self))
        return status

    def entries(self) -> list[Status]:
        """What lies in this folder, by name; nothing if there is no such folder."""
        with self._reached("listed") as (system, path), suppress(FileNotFoundError, NotADirectoryError):
            found = [_status_there(info) for info in system.ls(path, detail=True)]
            return sorted(entry for entry in found if entry.name != self.name or entry.is_folder)
        return []

    def walk(self) -> Iterator[tuple[Self, Status]]:
        """The files below this folder."""
        with self._reached("listed") as (system, path):
            found = sorted(system.find(path, detail=True).items())
        return ((self / name[len(path) :].lstrip("/"), _status_there(info)) for name, info in found)

    def unlink(self, *, missing_ok: bool = False) -> None:
        with self._reached("deleted") as (system, path), suppress(*[FileNotFoundError] * missing_ok):
            system.rm_file(path)

    def remove_tree(self) -> None:
        with self._reached("deleted") as (system, path), suppress(FileNotFoundError):
            system.rm(path, recursive=True)

    def rename(self, target: Self) -> None:
        """Move the file; of an object store: copy it, then delete it."""
        with self._reached("renamed") as (system, path):
            system.mv(path, file_system(target.uri, fresh=True)[1])

    @contextmanager
    def _reached(self, what: str) -> Iterator[tuple[Any, str]]:
        with remote_errors(self, what):
            yield file_system(self.uri, fresh=True)


def file_system(uri: str, *, fresh: bool = False) -> tuple[Any, str]:
    """The file system of a URI, and the path there; a `fresh` one remembers no listing, since others write there."""
    require_protocol(uri)
    try:
        from fsspec.core import url_to_fs  # an optional dependency
    except ImportError:
        raise MissingExtra(uri, "remote") from None
    try:
        system, path = url_to_fs(uri, **({"use_listings_cache": False} if fresh else {}))
        return system, path
    except (ImportError, ValueError) as error:
        raise MissingData(f"{uri} cannot be opened: {first_line(error)}.") from None


def require_protocol(uri: str) -> None:
    """Raise for a URI that is never opened: of a protocol that is not in the list, or chained with `::`."""
    protocol = uri.partition("://")[0]
    chained, known = "::" in uri, ", ".join(sorted(PROTOCOLS))
    if chained or protocol not in PROTOCOLS:
        fault = "URIs cannot be chained with '::'" if chained else f"the protocol '{protocol}' is not allowed"
        raise MissingData(
            f"{uri} cannot be opened: {fault}.\nAllowed: {known}. Copy the files to one of these, or here."
        )


def open_remote(uri: str, *, fresh: bool = False, block: int = 0) -> Any:
    """A file for reading, whose place can be moved: fetched as it is asked for, or at least a `block` at a time."""
    with remote_errors(uri, "opened"):
        system, path = file_system(uri, fresh=fresh)
        how = {"block_size": block, "cache_type": "readahead"} if block else {"cache_type": "none"}
        return system.open(path, "rb", **how)


def read_remote(uri: str, start: int | None = None, end: int | None = None) -> bytes:
    """The bytes of a file, or those from `start` to `end`; fewer if it is shorter."""
    with remote_errors(uri, "read"):
        system, path = file_system(uri)
        return bytes(system.cat_file(path, start=start, end=end))


def remote_status(uri: str, *, fresh: bool = False) -> Status | None:
    """What is known of a file or folder; None if there is nothing. Listings are remembered unless it is `fresh`."""
    with remote_errors(uri, "reached"), suppress(FileNotFoundError):
        system, path = file_system(uri, fresh=fresh)
        return _status_there(system.info(path))
    return None


@contextmanager
def remote_errors(uri: str | RemotePath, what: str, *plain: type[Exception]) -> Iterator[None]:
    """Whatever a library says of a place that does not answer becomes one kind of error; `plain` ones stay."""
    try:
        yield
    except Exception as error:
        if isinstance(error, PLAIN + plain):
            raise
        raise unreachable(uri, what, error) from error


def unreachable(uri: str | RemotePath, what: str, error: BaseException) -> RemoteError:
    """The error for a place that cannot be reached, read or written."""
    name, advice = type(error).__name__, "What was stored is kept. Run the same command again when it answers."
    if isinstance(error, FileNotFoundError):
        advice = "Make it first, or name another place."
    elif isinstance(error, PermissionError) or "Credential" in name:
        advice = (
            "Set the credentials where its fsspec package looks for them (for s3://: AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or a profile), with the right to list, read and write there."
        )
    reason = f"{first_line(error).rstrip('.')} ({name})" if str(error).strip() else name
    return RemoteError(f"{uri} cannot be {what}: {reason}.\n{advice}")


def _status_there(info: Entry) -> Status:
    known = {name: info[name] for name in (*DATES, *TAGS) if info.get(name) is not None}
    for name, value in known.items():  # of one file some file systems give a date in two forms
        known[name] = value.timestamp() if hasattr(value, "timestamp") else value
    size, changed = int(info.get("size") or 0), next((known[name] for name in DATES if name in known), 0.0)
    tag = next((known[name] for name in TAGS if name in known), "")
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    return Status(name, info["type"] == "directory", size, float(changed), f"{size}-{tag}")


# Files here or behind a URI

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
        return sorted(_status_here(entry) for entry in entries)
    return []


def walk(folder: Place) -> Iterator[tuple[Place, Status]]:
    """All files below a folder; a folder here gives its folders too."""
    if isinstance(folder, RemotePath):
        yield from folder.walk()
    else:
        yield from ((path, _status_here(path)) for path in folder.rglob("*"))


def _status_here(entry: os.DirEntry[str] | Path) -> Status:
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
