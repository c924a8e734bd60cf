"""The bytes behind an address: a file here or behind a URI, a member of a tar, a row of a Parquet or Arrow file.

    wds:/data/shard-000.tar#1536+40960#a.jpg       40,960 bytes from byte 1,536 on
    hf:/data/train-000.parquet#3+17#image          row 17 of row group 3, in the column `image`

Each can be opened by itself in any process, and no more of a file behind a URI is fetched than is asked for.
"""

import os
import re
import threading
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from beholder.core import files
from beholder.core.digests import content_digest, file_digest, file_stamp
from beholder.core.errors import NO_FILE, BadImage, first_line, masked

_PART = re.compile(r"(wds|hf):(.*?)#(\d+)\+(\d+)#(.*)", re.DOTALL)
_reading = threading.Lock()


class Part(NamedTuple):
    """A part of a file: bytes of a tar (start, size, member) or a row of a table (group, row, column)."""

    kind: str
    container: str
    first: int
    second: int
    name: str

    def __str__(self) -> str:
        """Its address; a container whose own name reads as an address of a part is refused."""
        address = f"{self.kind}:{self.container}#{self.first}+{self.second}#{self.name}"
        if part_of(address) != self:
            raise BadImage(self.container, "its name holds '#' and numbers, as addresses do. Rename the file")
        return address


def part_of(address: str) -> Part | None:
    """The part of a file that an address names; None if it names a whole file."""
    match = _PART.fullmatch(address) if address.startswith(("wds:", "hf:")) else None
    return Part(match[1], match[2], int(match[3]), int(match[4]), match[5]) if match else None


def container(address: str) -> str:
    """The file that the bytes lie in."""
    return part.container if (part := part_of(address)) else address


def is_remote(address: str) -> bool:
    """Whether it is a URI rather than a path."""
    return "://" in address


def open_binary(address: str, *, block: int = 0) -> Any:
    """A whole file for reading, here or behind a URI; its place can be moved. A URI is read a `block` at a time."""
    return files.open_remote(address, block=block) if is_remote(address) else open(address, "rb")


def files_below(folder: str) -> list[str]:
    """The names of all files in a folder and below, relative to it, sorted; hidden ones are left out."""
    if is_remote(folder):
        with files.remote_errors(folder, "listed"):
            system, root = files.file_system(folder)
            names = [str(PurePosixPath(path).relative_to(root)) for path in system.find(root)]
    else:
        names = [os.path.relpath(os.path.join(at, name), folder) for at, _, found in os.walk(folder) for name in found]
        names = [name.replace(os.sep, "/") for name in names]
    return sorted(n for n in names if not any(part.startswith((".", "__MACOSX")) for part in n.split("/")))


def joined(folder: str, name: str) -> str:
    """The address of a file in a folder. It always begins with the folder: no name can make it another address."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def parent(address: str) -> str:
    """The folder of a file."""
    return address.rpartition("/")[0] if is_remote(address) else str(Path(address).parent)


def is_file(address: str) -> bool:
    """Whether there is a file."""
    where = container(address)
    return _remote_stamp(where) is not None if is_remote(where) else os.path.isfile(where)


def is_folder(address: str) -> bool:
    """Whether there is a folder."""
    if not is_remote(address):
        return os.path.isdir(address)
    return (status := files.remote_status(address)) is not None and status.is_folder


def stamp(address: str) -> str | None:
    """Stands for the bytes as they are now, without reading them; None if nothing is there."""
    where = container(address)
    whole = _remote_stamp(where) if is_remote(where) else file_stamp(where)
    return f"{masked(address)}\0{whole}" if whole and where != address else whole


@lru_cache(maxsize=1 << 16)
def _remote_stamp(uri: str) -> str | None:
    """Of a file behind a URI, asked for once."""
    status = files.remote_status(uri)
    return f"{masked(uri)}\0{status.stamp}" if status and not status.is_folder else None


def digest_of(address: str) -> str | None:
    """The digest of the bytes; None if they cannot be read."""
    try:
        if part_of(address) is None and not is_remote(address):
            return file_digest(Path(address))
        return content_digest(read_content(address))
    except (OSError, BadImage):
        return None


def read_content(address: str) -> bytes:
    """The bytes themselves, or `BadImage`."""
    part = part_of(address)
    try:
        if part is None:
            return files.read_remote(address) if is_remote(address) else Path(address).read_bytes()
        return _tar_member(part) if part.kind == "wds" else _cell(part, address)
    except FileNotFoundError:
        raise BadImage(address, NO_FILE) from None
    except OSError as error:
        raise BadImage(address, f"cannot be read: {error.strerror or first_line(error)}") from error


def _tar_member(part: Part) -> bytes:
    if is_remote(part.container):
        data = files.read_remote(part.container, part.first, part.first + part.second)
    else:
        data = b""
        with open(part.container, "rb") as file:
            if part.first + part.second <= os.fstat(file.fileno()).st_size:  # a tar may claim any size
                file.seek(part.first)
                data = file.read(part.second)
    if len(data) < part.second:
        raise BadImage(str(part), "the tar is cut off before the end of this picture")
    return data


def _cell(part: Part, address: str) -> bytes:
    try:
        with _reading:  # neighbours are asked for at the same time, and need the same group
            cells = _group(part.container, stamp(part.container), part.first, part.name)
        value = cells[part.second].as_py()
    except (ValueError, LookupError) as error:  # Arrow's own are among them
        raise BadImage(address, f"its row group cannot be read: {first_line(error)}") from error
    data, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    if isinstance(data, bytes):
        return data
    home = parent(part.container)
    file = joined(home, path or "")
    if not path or files.leads_out(path) or (not is_remote(home) and files.links_out(file, home)):
        raise BadImage(address, "the row has no picture")
    return read_content(file)


@lru_cache(maxsize=2)
def _group(path: str, stamp: str | None, group: int, column: str) -> Any:
    """One column of a row group (Parquet) or record batch (Arrow): no more of the file is held, as its stamp has it."""
    import pyarrow.parquet as pq  # here, so that a worker process starts without it

    if path.endswith(".arrow"):
        return record_batches(path, stamp)[group].column(column)
    with files.remote_errors(path, "read", ValueError) if is_remote(path) else nullcontext(), open_binary(path) as file:
        return pq.ParquetFile(file).read_row_group(group, columns=[column]).column(column)


@lru_cache(maxsize=64)
def record_batches(path: str, stamp: str | None) -> list[Any]:
    """The record batches of an Arrow file, mapped into memory and not read."""
    import pyarrow as pa  # as above

    source = pa.memory_map(path)
    try:
        return list(pa.ipc.open_stream(source))
    except pa.ArrowInvalid:
        reader = pa.ipc.open_file(source)
        return [reader.get_batch(index) for index in range(reader.num_record_batches)]
