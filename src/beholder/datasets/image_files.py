"""Image files: opened as RGB and upright (EXIF rotation applied); a file that cannot be read raises `BadImage`."""

from __future__ import annotations

import warnings
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import BadImage


def open_file(name: str) -> Image.Image:
    """The picture in a file, RGB and upright."""
    path = Path(name)
    if not path.is_file():
        raise BadImage(name, "the file does not exist")
    if path.stat().st_size == 0:
        raise BadImage(name, "the file is empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is harmless; a broken picture raises
            with Image.open(path) as image:
                image.load()  # and nothing is copied that need not be: fresh memory costs more than decoding
                ImageOps.exif_transpose(image, in_place=True)
                return _rgb(image)
    except UnidentifiedImageError:
        raise BadImage(name, "not an image in any format that Pillow reads") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise BadImage(name, f"damaged: {error}") from error


def _rgb(image: Image.Image) -> Image.Image:
    """RGB; 16-bit greys are scaled to 8 bits first, because Pillow's own conversion clips them."""
    if image.mode.startswith("I;16"):
        image = image.point(lambda value: value / 256).convert("L")
    return image if image.mode == "RGB" else image.convert("RGB")
