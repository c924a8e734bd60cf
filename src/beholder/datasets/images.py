"""Open one picture from its address: a file, a part of a file (`crops.py`), or a portrait of the embedded world.

Always RGB, always upright (EXIF rotation honoured); whatever cannot be read raises `BadImage` with the address.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import BadImage

DRAWN, CROPPED = "glasshouse:", "crop:"
"""Schemes of the pictures that Beholder draws itself, and of parts of files."""


def open_image(uri: str) -> Image.Image:
    """The picture at `uri`, RGB and upright."""
    if uri.startswith(DRAWN):
        return _draw(uri)
    if uri.startswith(CROPPED):
        from beholder.datasets.crops import open_crop

        return open_crop(uri)
    path = Path(uri)
    if not path.is_file():
        raise BadImage(uri, "the file is not there")
    if path.stat().st_size == 0:
        raise BadImage(uri, "the file is empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is not the user's concern; a broken picture raises
            with Image.open(path) as image:
                return _rgb(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:
        raise BadImage(uri, "not an image in any format that Pillow reads") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise BadImage(uri, f"damaged: {error}") from error


def _rgb(image: Image.Image) -> Image.Image:
    """RGB; 16-bit greys are scaled to 8 bits first, which Pillow's own conversion clips."""
    if image.mode.startswith("I;16"):
        image = image.point(lambda value: value / 256).convert("L")
    return image.convert("RGB")


def _draw(uri: str) -> Image.Image:
    from beholder.glasshouse.portrait import open_uri

    try:
        return open_uri(uri)
    except ValueError as error:
        raise BadImage(uri, str(error)) from error
