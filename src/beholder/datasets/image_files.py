"""Image files: opened as RGB and upright (EXIF rotation applied); a file that cannot be read raises `BadImage`."""

from __future__ import annotations

import io
import os
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import BadImage, MissingExtra, UsageError, first_line
from beholder.datasets.content import is_remote, part_of, read_content

MOST_PIXELS = "BEHOLDER_MAX_PIXELS"
"""The environment variable with the number of pixels above which a picture is refused; it reaches worker processes."""
_LIMIT = 2 * (Image.MAX_IMAGE_PIXELS or 0)
_HEIF = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis")


def open_file(name: str, data: bytes | None = None) -> Image.Image:
    """The picture at an address, RGB and upright; `data` are its bytes, if they were read before."""
    if data is None and (is_remote(name) or part_of(name)):
        data = read_content(name)
    if data is None and not os.path.isfile(name):
        raise BadImage(name, "the file does not exist")
    if not (os.stat(name).st_size if data is None else data):
        raise BadImage(name, "the file is empty (0 bytes)")
    limit = _most_pixels()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is harmless; a broken picture raises
            with _opened(name, data) as image:
                image.load()  # and nothing is copied that need not be: fresh memory costs more than decoding
                ImageOps.exif_transpose(image, in_place=True)
                return _rgb(image)
    except UnidentifiedImageError:
        raise BadImage(name, "not an image in any format that Pillow reads") from None
    except Image.DecompressionBombError:
        raise BadImage(
            name,
            f"larger than {limit:,} pixels, the limit against files that fill the memory. If you trust it, set "
            f"{MOST_PIXELS} to a higher number",
        ) from None
    except MemoryError:
        raise BadImage(name, "there is too little memory to open it") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise BadImage(name, f"damaged: {first_line(error)}") from error


def _most_pixels() -> int:
    """The limit, which Pillow is told: it refuses pictures of more than twice its own."""
    text = os.environ.get(MOST_PIXELS, str(_LIMIT))
    if not text.isdecimal() or int(text) < 2:
        raise UsageError(f"{MOST_PIXELS}={text}: write a whole number of pixels, such as {_LIMIT}.")
    Image.MAX_IMAGE_PIXELS = int(text) // 2
    return int(text)


def _opened(name: str, data: bytes | None) -> Image.Image:
    """The picture, its pixels not read yet; HEIC through the extra `heif`."""
    source = name if data is None else io.BytesIO(data)
    try:
        return Image.open(source)
    except UnidentifiedImageError:
        kind = _heif_kind(name, data)
        if kind is None:
            raise
    try:
        from pillow_heif import register_heif_opener  # an optional dependency
    except ImportError:
        needs = str(MissingExtra(f"It is a {kind} picture, and reading it", "heif")).replace("\n", " ")
        raise BadImage(name, needs) from None
    register_heif_opener()
    return Image.open(source)


def _heif_kind(name: str, data: bytes | None) -> str | None:
    """HEIC or AVIF by the first bytes; None for any other file."""
    if data is None:
        with open(name, "rb") as file:
            data = file.read(12)
    brand = data[8:12] if data[4:8] == b"ftyp" else b""
    return ("AVIF" if brand.startswith(b"avi") else "HEIC") if brand in _HEIF else None


def _rgb(image: Image.Image) -> Image.Image:
    """RGB; 16-bit greys are scaled to 8 bits first, because Pillow's own conversion clips them."""
    if image.mode.startswith("I;16"):
        image = image.point(lambda value: value / 256).convert("L")
    return image if image.mode == "RGB" else image.convert("RGB")
