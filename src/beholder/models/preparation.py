"""Preparation: what is done to a picture before a model sees it, split in two.

Pillow resizes and crops, with 8 bits per value, wherever the picture is opened: in worker processes too. The arithmetic
(divide, subtract the mean, divide by the deviation, cast) is done for a whole batch on the model's device. The split is
used only if it gives the numbers of the checkpoint's own preprocessing, bit for bit; `proven` tries it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.types import AnyArray
from beholder.datasets.images import on_white, open_image
from beholder.models.spec import Settings

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Array = AnyArray
# Width and height of the pictures that a split is tried on: wide, high, square, odd, large, tiny.
PROBES = ((48, 32), (31, 57), (224, 224), (300, 299), (333, 640), (9, 7))
FRAMES = (0xC0, 0xC1, 0xC2)  # markers of the JPEG frames that nvJPEG reads: baseline, extended, progressive


class Jpeg(NamedTuple):
    """A JPEG file that nvJPEG can read: what a decoder on the GPU takes as it is; other pictures are cut by Pillow."""

    uri: str
    data: Pixels
    pixels: int


Encoded = Jpeg | Pixels
Preparation = Callable[[Image.Image], Array]
"""Makes an array of a picture; every picture gives the same shape. It can be sent to worker processes."""


@dataclass(frozen=True)
class Cut:
    """What Pillow does: resize, then crop the middle; what lies outside the picture is black."""

    size: int | tuple[int, int]  # the length of the shortest edge, or height and width
    resample: Image.Resampling
    crop: tuple[int, int] | None = None  # height and width
    corner: Literal["down", "nearest"] = "down"  # how half a pixel is rounded; `nearest`, to even: torchvision's way
    keeps_alpha: bool = False  # a transparent picture is resized as it is, then its alpha is dropped: open_clip's way

    def __call__(self, image: Image.Image) -> Pixels:
        """Values from 0 to 255, `[height, width, channel]`."""
        image = image if self.keeps_alpha else on_white(image)
        image = image.resize(self.resized(image.size), self.resample)
        if self.crop:
            left, top = self.offset(image.size)
            image = image.crop((left, top, left + self.crop[1], top + self.crop[0]))
        return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))

    def encoded(self, uri: str, data: Pixels | None) -> Encoded:
        """For a decoder: a file as it is if nvJPEG reads it, else the picture cut; `data` are a plain file's bytes."""
        if data is not None and (pixels := plain_jpeg(data.data)):
            return Jpeg(uri, data, pixels)
        return self(open_image(uri, alpha=self.keeps_alpha))

    def resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height after resizing."""
        if isinstance(self.size, tuple):
            return self.size[1], self.size[0]
        short = min(size)
        width, height = (int(self.size * edge / short) if edge > short else self.size for edge in size)
        return width, height

    def offset(self, resized: tuple[int, int]) -> tuple[int, int]:
        """Left and top of the crop in the resized picture."""
        assert self.crop is not None
        excess = resized[0] - self.crop[1], resized[1] - self.crop[0]
        left, top = (value // 2 if self.corner == "down" else round(value / 2) for value in excess)
        return left, top


@dataclass(frozen=True)
class Arithmetic:
    """(value / divisor − mean) / deviation, channel by channel, in float32."""

    divisor: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, pixels: Pixels) -> Floats:
        """`[n, height, width, channel]` to `[n, channel, height, width]`."""
        mean, deviation = (np.array(values, np.float32)[:, None, None] for values in (self.mean, self.deviation))
        values = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).astype(np.float32)
        values /= np.float32(self.divisor)
        values -= mean
        values /= deviation
        return values


class Split(NamedTuple):
    """Both parts of a preparation."""

    cut: Cut
    arithmetic: Arithmetic


def by_processor(processor: Callable[..., Settings], image: Image.Image) -> Floats:
    """What a processor of transformers makes: float32 `[channel, height, width]`. Threads may share the processor."""
    batch = processor(images=on_white(image), return_tensors="np")
    return np.ascontiguousarray(batch["pixel_values"][0], dtype=np.float32)


def processor_split(settings: Settings) -> Split | None:
    """The steps that a processor of transformers names in its settings, if they are those that we know."""
    done = {step: settings.get(f"do_{step}") for step in ("resize", "center_crop", "rescale", "normalize", "pad")}
    if not (done["resize"] and done["rescale"] and done["normalize"]) or done["pad"] or not settings["rescale_factor"]:
        return None
    size, crop = (
        {name: int(edge) for name, edge in dict(settings.get(key) or {}).items() if edge}
        for key in ("size", "crop_size")
    )
    if set(size) not in ({"shortest_edge"}, {"height", "width"}):
        return None
    edges = size.get("shortest_edge") or (size["height"], size["width"])
    window = (crop["height"], crop["width"]) if done["center_crop"] else None
    if window is None and isinstance(edges, int):
        return None  # every picture keeps its own shape
    cut = Cut(edges, Image.Resampling(settings["resample"]), window)
    divisor = round(1 / settings["rescale_factor"], 6)
    return Split(cut, Arithmetic(divisor, tuple(settings["image_mean"]), tuple(settings["image_std"])))


def proven(split: Split | None, own: Callable[[Image.Image], Array]) -> Split | None:
    """The split if it gives what the model's own preprocessing gives, to the last bit; else None."""
    if split is None:
        return None
    for picture in probes():
        try:
            ours, theirs = split.arithmetic(split.cut(picture)[None])[0], own(picture)
        except ValueError:
            return None
        if ours.shape != theirs.shape or not np.array_equal(ours, theirs):
            return None
    return split


def fixed_shape(prepare: Preparation) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and type of what the preparation gives; None if they depend on the picture."""
    kinds = {(array.shape, array.dtype) for array in map(prepare, probes()[:4])}
    return kinds.pop() if len(kinds) == 1 else None


def probes() -> list[Image.Image]:
    """Noisy pictures of all the shapes in PROBES, the last one transparent, the same every time."""
    rng = np.random.default_rng(7)
    shapes = [(height, width, 3) for width, height in PROBES] + [(61, 50, 4)]
    return [Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]


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
