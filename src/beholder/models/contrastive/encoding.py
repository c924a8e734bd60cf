"""What a decoder on the card takes: JPEG files as they are, and other pictures cut by Pillow. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image

from beholder.datasets.images import open_image
from beholder.models.preparation import Cut, Pixels

FRAMES = (0xC0, 0xC1, 0xC2)
"""Markers of the frames that nvJPEG reads: baseline, extended, progressive."""


class Jpeg(NamedTuple):
    """A JPEG file that nvJPEG can read."""

    uri: str
    data: Pixels
    pixels: int


Encoded = Jpeg | Pixels


@dataclass(frozen=True)
class Encoding:
    """A file as it is, or the picture cut by Pillow."""

    cut: Cut

    def __call__(self, uri: str, data: Pixels | None) -> Encoded:
        """`data` are the bytes of a plain file."""
        pixels = plain_jpeg(data.data) if data is not None else 0
        return Jpeg(uri, data, pixels) if data is not None and pixels else self.cut(open_image(uri))


def plain_jpeg(data: memoryview) -> int:
    """How many pixels a JPEG has that nvJPEG reads as Pillow does; 0 if it is another file."""
    at = 2
    if bytes(data[:2]) != b"\xff\xd8":
        return 0
    while at + 16 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        turned = (
            marker == 0xE1 and bytes(data[at + 4 : at + 8]) == b"Exif" and not _upright(data[at + 4 : at + 2 + length])
        )
        other_colours = marker == 0xEE and bytes(data[at + 4 : at + 9]) == b"Adobe" and data[at + 15] != 1
        if turned or other_colours:
            return 0
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = int.from_bytes(data[at + 5 : at + 7]), int.from_bytes(data[at + 7 : at + 9])
            return height * width if marker in FRAMES and data[at + 9] in (1, 3) else 0
        at += 2 + length
    return 0


def _upright(exif: memoryview) -> bool:
    entries = Image.Exif()
    try:
        entries.load(bytes(exif))
        return bool(entries.get(0x0112, 1) in (0, 1))
    except (ValueError, SyntaxError, OSError, KeyError):
        return False
