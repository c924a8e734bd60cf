"""The fast decode (`--decode gpu`): JPEG files are decoded and cut on the GPU.

nvJPEG decodes a batch through torchvision; two matrix products resize and crop it as Pillow does: across, rounded, then
down. nvJPEG's pixels are not Pillow's (0.6 of 255 apart on average), so the spec says which were used. Whatever nvJPEG
may not read as Pillow does (other formats, four colours, rotated pictures) is left to Pillow.
"""

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from PIL import Image

from beholder.core.errors import MissingExtra, ModelError
from beholder.models.preparation import Cut, Encoded, Jpeg
from beholder.models.spec import Tensor
from beholder.models.torch_scorer import torch

PIXELS_AT_ONCE = 2**28  # decoded pixels on the GPU together: 0.8 GB as they are, 1.6 GB as half-precision numbers
SUPPORT = {Image.Resampling.BILINEAR: 1.0, Image.Resampling.BICUBIC: 2.0}  # how far filters reach, in smaller pixels


class GpuDecoder:
    """Files to cut pictures on the GPU; the pixels may differ from Pillow's by a hair.

    `encoding` makes what `decode` takes of a file's address and bytes, in worker processes too; `decode` may run in any
    thread, beside the model.
    """

    def __init__(self, cut: Cut, device: str) -> None:
        if cut.resample not in SUPPORT:
            raise ModelError(f"--decode gpu resizes bilinear or bicubic, and this model wants {cut.resample.name}.")
        if not device.startswith("cuda"):
            raise ModelError(f"--decode gpu needs an NVIDIA GPU, and this model runs on '{device}'.")
        try:
            from torchvision.io import ImageReadMode, decode_jpeg  # optional
        except ImportError as error:
            raise MissingExtra("--decode gpu", "openclip") from error
        self._decode_jpeg, self._mode = decode_jpeg, ImageReadMode.RGB
        self.encoding = cut.encoded
        self._cut, self._device = cut, device
        self._own = threading.local()

    def decode(self, pictures: Sequence[Encoded]) -> Tensor:
        """One batch of pixels on the GPU; `[n, height, width, channel]`. The GPU's other work goes on meanwhile."""
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self._device)
        with torch.inference_mode(), torch.cuda.stream(self._own.stream):
            parts = [self._decoded(group) for group in _groups(pictures)]
            batch = torch.cat(parts) if len(parts) > 1 else parts[0]
            self._own.stream.synchronize()
        return batch

    def _decoded(self, pictures: Sequence[Encoded]) -> Tensor:
        files = [torch.from_numpy(picture.data) for picture in pictures if isinstance(picture, Jpeg)]
        try:
            decoded = self._decode_jpeg(files, mode=self._mode, device=self._device) if files else []
        except RuntimeError:  # one of them is damaged: Pillow says which, or reads it all the same
            pictures, decoded = [self.encoding(one.uri, None) if isinstance(one, Jpeg) else one for one in pictures], []
        rows = cut_on_gpu(decoded, self._cut) if decoded else []
        if len(rows) == len(pictures):
            return rows
        rest = iter(rows)
        return torch.stack(
            [next(rest) if isinstance(one, Jpeg) else torch.tensor(one, device=self._device) for one in pictures]
        )


def _groups(pictures: Sequence[Encoded]) -> Iterator[list[Encoded]]:
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


def cut_on_gpu(pictures: Sequence[Tensor], cut: Cut) -> Tensor:
    """Pictures `[channel, height, width]` of any sizes, cut as by `Cut` to `[n, height, width, channel]`."""
    device = pictures[0].device
    number = torch.float16 if device.type == "cuda" else torch.float32
    order = sorted(range(len(pictures)), key=lambda row: pictures[row].shape)
    same = [list(rows) for _, rows in groupby(order, key=lambda row: pictures[row].shape)]
    shapes = [tuple(pictures[rows[0]].shape[1:]) for rows in same]
    high, wide = (max(edges) for edges in zip(*shapes, strict=True))
    wide = -(-wide // 8) * 8  # products of multiples of eight are fastest
    canvas = torch.zeros((len(pictures), 3, high, wide), dtype=number, device=device)
    start = 0
    for (height, width), rows in zip(shapes, same, strict=True):  # one copy for pictures of one shape
        canvas[start : start + len(rows), :, :height, :width].copy_(torch.stack([pictures[row] for row in rows]))
        start += len(rows)
    sizes = [cut.resized((width, height)) for height, width in shapes]
    offsets = [cut.offset(size) if cut.crop else (0, 0) for size in sizes]
    down, across = cut.crop or sizes[0][::-1]
    numbers = [(*shape, *size, *offset) for shape, size, offset in zip(shapes, sizes, offsets, strict=True)]
    heights, widths, *resized, left, top = _on_device(numbers, torch.float32, device)
    support = SUPPORT[cut.resample]
    kind, place = _on_device([(k, row) for k, rows in enumerate(same) for row in rows], torch.int64, device)
    columns = weights(widths, resized[0], left, across, wide, support).to(number)[kind]
    lines = weights(heights, resized[1], top, down, high, support).to(number)[kind]
    narrow = torch.bmm(canvas.view(len(pictures), 3 * high, wide), columns.transpose(1, 2))
    narrow = _whole(narrow).view(len(pictures), 3, high, across)
    small = _whole(torch.matmul(lines[:, None], narrow))
    result = torch.empty((len(pictures), down, across, 3), dtype=torch.uint8, device=device)
    return result.index_copy_(0, place, small.to(torch.uint8).permute(0, 2, 3, 1))


def _on_device(rows: Sequence[tuple[int, ...]], number: Any, device: Any) -> Tensor:
    """The columns of a table, one after the other; nobody waits for the copy."""
    table = torch.tensor(rows, dtype=number).T.contiguous()
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
