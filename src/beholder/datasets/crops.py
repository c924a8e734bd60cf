"""Parts of picture files: a box of a file, its brightness matched to another's, as an address of its own.

`crop:{"path": …, "box": [left, top, right, bottom], "match": …}` names what the model is shown; nothing is written to
disk. Brightness is matched over the face region, the middle ellipse of the box: the picture is scaled so that its mean
grey value there equals the other file's.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.datasets.image_files import open_file

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
