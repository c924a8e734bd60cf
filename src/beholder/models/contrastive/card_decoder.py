"""The fast decode (`--decode gpu`): JPEG files are decoded and cut on the graphics card.

nvJPEG decodes a batch through torchvision; two matrix products resize and crop it as Pillow does: across, rounded, then
down. nvJPEG's pixels are not Pillow's (0.6 of 255 apart on average), so the spec says which were used. Whatever nvJPEG
may not read as Pillow does (other formats, four colours, turned pictures) is left to Pillow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError
from beholder.datasets.images import open_image
from beholder.models.checkpoint.checkpoint import torch
from beholder.models.preparation import Cut, Pixels
from beholder.models.torch_types import Tensor

Bytes = npt.NDArray[np.uint8]
PIXELS_AT_ONCE = 2**28
"""Decoded pixels that lie on the card together: 0.8 GB as they are, 1.6 GB as half-precision numbers."""
SUPPORT = {Image.Resampling.BILINEAR: 1.0, Image.Resampling.BICUBIC: 2.0}
"""How far the filters reach, in pixels of the smaller picture."""
FRAMES = (0xC0, 0xC1, 0xC2)
"""Markers of the frames that nvJPEG reads: baseline, extended, progressive."""


class Jpeg(NamedTuple):
    """A JPEG file that nvJPEG can read."""

    uri: str
    data: Bytes
    pixels: int


Encoded = Jpeg | Pixels


class CardDecoder:
    """Files to cut pictures on the card."""

    def __init__(self, cut: Cut, device: str) -> None:
        if cut.resample not in SUPPORT:
            raise ModelError(f"--decode gpu resizes bilinear or bicubic, and this model wants {cut.resample.name}.")
        if not device.startswith("cuda"):
            raise ModelError(f"--decode gpu needs an NVIDIA card, and this model runs on '{device}'.")
        try:
            from torchvision.io import ImageReadMode, decode_jpeg  # optional
        except ImportError as error:
            raise MissingExtra("--decode gpu", "openclip") from error
        self._decode_jpeg, self._mode = decode_jpeg, ImageReadMode.RGB
        self._cut, self._device = cut, device
        self._own = threading.local()

    def encoded(self, uri: str, data: Bytes | None) -> Encoded:
        """What `decode` takes: the file as it is, or the picture cut by Pillow. Called from several threads."""
        pixels = plain_jpeg(data.data) if data is not None else 0
        return Jpeg(uri, data, pixels) if data is not None and pixels else self._cut(open_image(uri))

    def decode(self, pictures: Sequence[Encoded]) -> Tensor:
        """One batch of pixels on the card; `[n, height, width, channel]`. The card's other work goes on meanwhile."""
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self._device)
        with torch.inference_mode(), torch.cuda.stream(self._own.stream):
            parts = [part for group in _groups(pictures) for part in self._decoded(group)]
            batch = torch.cat(parts) if len(parts) > 1 else parts[0]
            self._own.stream.synchronize()
        return batch

    def _decoded(self, pictures: Sequence[Encoded]) -> Iterator[Tensor]:
        jpegs = [picture for picture in pictures if isinstance(picture, Jpeg)]
        try:
            files = [torch.from_numpy(jpeg.data) for jpeg in jpegs]
            decoded = iter(self._decode_jpeg(files, mode=self._mode, device=self._device) if files else [])
        except RuntimeError:  # one of them is damaged: Pillow says which, or reads it all the same
            pictures = [self._cut(open_image(one.uri)) if isinstance(one, Jpeg) else one for one in pictures]
            decoded = iter(())
        if any(isinstance(picture, Jpeg) for picture in pictures):
            rows = cut_on_card(list(decoded), self._cut)
            if len(jpegs) == len(pictures):
                yield rows
                return
            decoded = iter(rows)
        whole = [next(decoded) if isinstance(one, Jpeg) else torch.tensor(one, device=self._device) for one in pictures]
        yield torch.stack(whole)


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


def _groups(pictures: Sequence[Encoded]) -> Iterator[list[Encoded]]:
    """Consecutive pictures that fit on the card together."""
    group: list[Encoded] = []
    pixels = 0
    for picture in pictures:
        size = picture.pixels if isinstance(picture, Jpeg) else 0
        if group and pixels + size > PIXELS_AT_ONCE:
            yield group
            group, pixels = [], 0
        group.append(picture)
        pixels += size
    yield group


def cut_on_card(pictures: Sequence[Tensor], cut: Cut) -> Tensor:
    """Pictures `[channel, height, width]` of any sizes, cut as by `Cut` to `[n, height, width, channel]`."""
    device = pictures[0].device
    number = torch.float16 if device.type == "cuda" else torch.float32
    order = sorted(range(len(pictures)), key=lambda row: pictures[row].shape)  # one copy for pictures of one shape
    shapes = [tuple(pictures[row].shape[1:]) for row in order]
    high, wide = max(height for height, _ in shapes), -(-max(width for _, width in shapes) // 8) * 8
    canvas = torch.zeros((len(pictures), 3, high, wide), dtype=number, device=device)
    start = 0
    for (height, width), same in groupby(order, key=lambda row: tuple(pictures[row].shape[1:])):
        group = [pictures[row] for row in same]
        canvas[start : start + len(group), :, :height, :width].copy_(torch.stack(group))
        start += len(group)
    sizes = [cut.resized((width, height)) for height, width in shapes]
    offsets = [cut.offset(size) if cut.crop else (0, 0) for size in sizes]
    down, across = cut.crop or sizes[0][::-1]
    numbers = [
        (*shape, *size, *offset, place)
        for shape, size, offset, place in zip(shapes, sizes, offsets, order, strict=True)
    ]
    heights, widths, *resized, left, top, places = _on_device(numbers, device)
    support = SUPPORT[cut.resample]
    columns = weights(widths, resized[0], left, across, wide, support)
    lines = weights(heights, resized[1], top, down, high, support)
    narrow = torch.bmm(canvas.view(len(pictures), 3 * high, wide), columns.to(number).transpose(1, 2))
    narrow = _whole(narrow).view(len(pictures), 3, high, across)
    small = _whole(torch.matmul(lines.to(number)[:, None], narrow))
    result = torch.empty((len(pictures), down, across, 3), dtype=torch.uint8, device=device)
    return result.index_copy_(0, places.long(), small.to(torch.uint8).permute(0, 2, 3, 1))


def _on_device(numbers: Sequence[tuple[int, ...]], device: Any) -> Tensor:
    """The columns of a table, a row each; its copying holds nobody up."""
    table = torch.tensor(numbers, dtype=torch.float32).T
    return table.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else table


def _whole(values: Tensor) -> Tensor:
    """Rounded to what 8 bits hold, as Pillow does after each of its two passes."""
    return values.round_().clamp_(0, 255)


def weights(lengths: Tensor, resized: Tensor, starts: Tensor, count: int, longest: int, support: float) -> Tensor:
    """How much each pixel of a line counts for each pixel of the smaller line, `[n, count, longest]`, as in Pillow."""
    length, size, start = (values[:, None, None] for values in (lengths, resized, starts))
    device = lengths.device
    scale = length / size
    reach = scale.clamp(min=1.0)
    place = torch.arange(count, device=device, dtype=torch.float32)[None, :, None] + start
    centre = (place + 0.5) * scale
    pixel = torch.arange(longest, device=device, dtype=torch.float32)[None, None, :]
    distance = ((pixel + 0.5 - centre) / reach).abs_()
    value = _bicubic(distance) if support == 2.0 else (1 - distance).clamp_(min=0)
    value = torch.where((pixel < length) & (place >= 0) & (place < size), value, 0.0)
    return value / value.sum(dim=2, keepdim=True).clamp(min=1e-12)


def _bicubic(x: Tensor) -> Tensor:
    """Pillow's filter, a = −0.5."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))
