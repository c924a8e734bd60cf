"""Image files: opened as RGB and upright (EXIF rotation applied); a file that cannot be read raises `BadImage`."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import BadImage


def open_file(name: str, data: bytes | None = None) -> Image.Image:
    """The picture in a file, RGB and upright; `data` are its bytes, if they were read before."""
    path = Path(name)
    if data is None and not path.is_file():
        raise BadImage(name, "the file does not exist")
    if not (path.stat().st_size if data is None else data):
        raise BadImage(name, "the file is empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is harmless; a broken picture raises
            with Image.open(path if data is None else io.BytesIO(data)) as image:
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
