"""Open one picture by its address: a file or a part of one (`content.py`), a crop of it (`crops.py`), a drawing of
Glasshouse, or one of these after a small change (`perturbed.py`).

The picture is always RGB and upright; an address that cannot be read raises `BadImage`.
"""

from __future__ import annotations

import io
import json
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import BadImage, MissingExtra, UsageError, first_line
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.perturbed import PERTURBED, change_of, changed

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


# Parts of picture files

CROPPED = "crop:"
"""How the address of a crop begins."""
GREY = (0.2989, 0.5870, 0.1140)
"""Weights of red, green and blue in a grey value, as the Perception study has them."""
FACE = 0.35, 0.45
"""Half axes of the face region, as shares of width and height."""

Box = tuple[int, int, int, int]


def crop_uri(path: Path, box: Box, match: Path | None = None) -> str:
    """The address of a box of a file, optionally as bright as the same box of another."""
    parts = {"path": str(path), "box": list(box), **({"match": str(match)} if match else {})}
    return CROPPED + json.dumps(parts, ensure_ascii=False)


def files_of(uri: str) -> list[str]:
    """The addresses of the files that a picture is made of; the first is the picture itself."""
    if not uri.startswith(CROPPED):
        return [uri]
    parts = _parts(uri)
    return [parts[key] for key in ("path", "match") if key in parts]


def cut_of(uri: str) -> list[object]:
    """How a part is made of its files, whatever they are called."""
    parts = _parts(uri)
    return [parts["box"], "match" in parts]


def open_crop(uri: str) -> Image.Image:
    """The part of the file that the address names, RGB."""
    parts = _parts(uri)
    box: Box = tuple(parts["box"])
    part = open_file(parts["path"]).crop(box)
    return part if "match" not in parts else brightened(part, _face_brightness(parts["match"], box))


def brightened(image: Image.Image, target: float) -> Image.Image:
    """The picture scaled so that the mean grey value of its face region is `target`."""
    own = face_brightness(image)
    if own == 0:
        return image
    pixels = np.asarray(image, dtype=np.float64) * (target / own)
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def face_brightness(image: Image.Image) -> float:
    """Mean grey value (0 black, 255 white) of the middle ellipse."""
    grey = grey_values(image)
    height, width = grey.shape
    down, across = np.mgrid[:height, :width]
    x, y = (across + 0.5) / width - 0.5, (down + 0.5) / height - 0.5
    return float(grey[(x / FACE[0]) ** 2 + (y / FACE[1]) ** 2 <= 1].mean())


def grey_values(image: Image.Image) -> npt.NDArray[np.float64]:
    """Grey value of every pixel, 0 to 255."""
    return np.asarray(np.asarray(image.convert("RGB"), dtype=np.float64) @ np.array(GREY))


@lru_cache(maxsize=4096)
def _face_brightness(path: str, box: Box) -> float:
    return face_brightness(open_file(path).crop(box))


@lru_cache(maxsize=65536)
def _parts(uri: str) -> dict[str, Any]:
    return dict(json.loads(uri.removeprefix(CROPPED)))


# Open one picture by its address

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
    from beholder.glasshouse.portrait import open_uri  # here, so that a worker process starts without it

    try:
        return open_uri(uri)
    except ValueError as error:
        raise BadImage(uri, str(error)) from error
