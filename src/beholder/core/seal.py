"""Seals: digests with a key, by which a folder knows what was written into it.

The key lies in the folder, for its owner alone. What was restored from another folder, edited, or forged without the
key does not bear the right seal. Whoever can read the key can forge: a seal is no protection against the owner.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from beholder.core.errors import DataError
from beholder.core.files import Place, write_whole
from beholder.core.remote import RemotePath

KEY_FILE = "seal.key"


def seal(key: bytes, data: bytes) -> str:
    """Thirty-two hex digits that only the holder of the key can give to these bytes."""
    return hashlib.blake2b(data, key=key, digest_size=16).hexdigest()


def seal_key(folder: Place) -> bytes:
    """The folder's key, made if there is none; where nothing can be written, a new one that recognises nothing."""
    path = folder / KEY_FILE
    with suppress(FileNotFoundError):
        return _read(path)
    key = secrets.token_bytes(32)
    if isinstance(path, RemotePath):
        with suppress(FileExistsError):  # another process was quicker: all must use one key
            path.write_bytes(_line(key), new=True)
        return _read(path)
    assert isinstance(folder, Path)
    if folder.is_dir() and not os.access(folder, os.W_OK):
        return key
    part = folder / f".{KEY_FILE}.{secrets.token_hex(8)}.part"
    write_whole(part, _line(key), private=True)
    try:
        os.link(part, path)  # fails if another process was quicker: all must use one key
        part.unlink()
    except FileExistsError:
        part.unlink()
    except OSError:  # a file system without links
        part.replace(path)
    return _read(path)


def _line(key: bytes) -> bytes:
    return f"{key.hex()} {_check(key)}\n".encode()


def _read(path: Place) -> bytes:
    key, _, check = path.read_bytes().strip().partition(b" ")
    with suppress(ValueError):
        if check.decode() == _check(bytes.fromhex(key.decode())):
            return bytes.fromhex(key.decode())
    raise DataError(
        f"{path} is damaged: what this store holds cannot be checked without it.\n"
        "Restore it from a backup. Or delete it: then everything is scored again."
    )


def _check(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=4).hexdigest()
