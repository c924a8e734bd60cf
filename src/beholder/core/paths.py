"""Names that come out of files stay inside the folder that they are read in.

A table, an archive or a model's config may come from somebody else: a name in it must not lead to another file of the
user's, which would then be shown, or sent to a server.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath


def leads_out(name: str) -> bool:
    """Whether a name, as it is written, can lead out of the folder that it is read in.

    >>> [leads_out(name) for name in ("faces/a.jpg", "a..jpg", "../a.jpg", "/etc/passwd", "C:\\\\a.jpg", "s3://a/b")]
    [False, False, True, True, True, True]
    """
    plain = PurePosixPath(name.replace("\\", "/"))
    absolute = plain.is_absolute() or bool(PureWindowsPath(name).drive) or "://" in name
    return absolute or ".." in plain.parts or "\0" in name


def links_out(path: str, folder: str) -> bool:
    """Whether a file below a folder is really elsewhere: it, or a folder on the way to it, is a link."""
    home, place = _real(folder), _real(os.path.dirname(path))
    real = os.path.realpath(path) if os.path.islink(path) else os.path.join(place, os.path.basename(path))
    return not real.startswith(os.path.join(home, ""))


@lru_cache(maxsize=10_000)
def _real(folder: str) -> str:
    return os.path.realpath(folder)
