"""Open one picture by its address: a file or a part of one (`content.py`), a crop of it (`crops.py`), a drawing of
Glasshouse, or one of these after a small change (`perturbed.py`).

The picture is always RGB and upright; an address that cannot be read raises `BadImage`.
"""

from __future__ import annotations

from PIL import Image

from beholder.core.errors import BadImage
from beholder.datasets.crops import CROPPED, open_crop
from beholder.datasets.image_files import open_file
from beholder.datasets.perturbed import PERTURBED, change_of, changed

DRAWN = "glasshouse:"
"""How the addresses of Beholder's own drawings begin."""


def is_plain_file(uri: str) -> bool:
    """Whether the picture is all that the bytes at the address hold (`content.read_content`)."""
    return not uri.startswith((PERTURBED, CROPPED, DRAWN))


def open_image(uri: str, data: bytes | None = None) -> Image.Image:
    """The picture at `uri`, RGB and upright; `data` are the bytes of a plain file, if they were read before."""
    if uri.startswith(PERTURBED):
        change, original = change_of(uri)
        return changed(open_image(original), change)
    if uri.startswith(CROPPED):
        return open_crop(uri)
    if not uri.startswith(DRAWN):
        return open_file(uri, data)
    from beholder.glasshouse.picture import open_uri  # here, so that a worker process starts without it

    try:
        return open_uri(uri)
    except ValueError as error:
        raise BadImage(uri, str(error)) from error
