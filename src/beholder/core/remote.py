"""Files behind URIs such as `s3://bucket/folder`: used as a `Path` is, through fsspec, and shown without credentials.

An object store has no folders, no locks and no renaming. What it has is the put of a whole object: it is there with all
its bytes or not at all. On file systems behind a URI that are no object stores, a file is written under another name
and then renamed.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Self

from beholder.core.errors import BeholderError, MissingData, MissingExtra, RemoteError, first_line, masked
from beholder.core.types import Entry

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
            found = [_status(info) for info in system.ls(path, detail=True)]
            return sorted(entry for entry in found if entry.name != self.name or entry.is_folder)
        return []

    def walk(self) -> Iterator[tuple[Self, Status]]:
        """The files below this folder."""
        with self._reached("listed") as (system, path):
            found = sorted(system.find(path, detail=True).items())
        return ((self / name[len(path) :].lstrip("/"), _status(info)) for name, info in found)

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
        return _status(system.info(path))
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


def _status(info: Entry) -> Status:
    known = {name: info[name] for name in (*DATES, *TAGS) if info.get(name) is not None}
    for name, value in known.items():  # of one file some file systems give a date in two forms
        known[name] = value.timestamp() if hasattr(value, "timestamp") else value
    size, changed = int(info.get("size") or 0), next((known[name] for name in DATES if name in known), 0.0)
    tag = next((known[name] for name in TAGS if name in known), "")
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    return Status(name, info["type"] == "directory", size, float(changed), f"{size}-{tag}")
