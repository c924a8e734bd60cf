"""Small changes of pictures that no one would see: does a headline move when they are made?

`perturbed:{"change": …, "uri": …}` names a picture after one change. A number that such a change moves by as much as
its interval is wide is not as certain as the interval says.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping

from PIL import Image

PERTURBED = "perturbed:"
"""How the address of a changed picture begins."""


def _jpeg(quality: int) -> Callable[[Image.Image], Image.Image]:
    def compressed(picture: Image.Image) -> Image.Image:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        return Image.open(buffer).convert("RGB")

    return compressed


def _cropped(left: int, top: int, right: int, bottom: int) -> Callable[[Image.Image], Image.Image]:
    def cropped(picture: Image.Image) -> Image.Image:
        return picture.crop((left, top, picture.width - right, picture.height - bottom))

    return cropped


def _resized(pixels: int) -> Callable[[Image.Image], Image.Image]:
    def resized(picture: Image.Image) -> Image.Image:
        return picture.resize((picture.width + pixels, picture.height + pixels), Image.Resampling.BICUBIC)

    return resized


CHANGES: Mapping[str, Callable[[Image.Image], Image.Image]] = {
    "saved as JPEG of quality 95": _jpeg(95),
    "one pixel cut off at the left and at the top": _cropped(1, 1, 0, 0),
    "resized to one pixel less": _resized(-1),
    "one pixel cut off at the right and at the bottom": _cropped(0, 0, 1, 1),
    "saved as JPEG of quality 85": _jpeg(85),
    "resized to one pixel more": _resized(1),
    "one pixel cut off on all sides": _cropped(1, 1, 1, 1),
    "saved as JPEG of quality 75": _jpeg(75),
}
"""In the order in which they are made: `--perturb 3` makes the first three."""


SQUARE = "resized to 256 × 256"
AS_RELEASED: Mapping[str, Callable[[Image.Image], Image.Image]] = {SQUARE: lambda picture: picture.resize((256, 256))}
"""What released scripts do to pictures before the model's own processor does; not among those of `--perturb`."""


def perturbed_uri(uri: str, change: str) -> str:
    """The address of a picture after a change."""
    return PERTURBED + json.dumps({"change": change, "uri": uri}, ensure_ascii=False)


def change_of(uri: str) -> tuple[str, str]:
    """The change and the address of the picture that is changed."""
    entry = json.loads(uri.removeprefix(PERTURBED))
    return entry["change"], entry["uri"]


def original(uri: str) -> str:
    """The address of the picture before all changes."""
    return original(change_of(uri)[1]) if uri.startswith(PERTURBED) else uri


def changed(picture: Image.Image, change: str) -> Image.Image:
    """The picture after the change; one too small to lose a pixel stays as it is."""
    if change in AS_RELEASED:
        return AS_RELEASED[change](picture)
    return CHANGES[change](picture) if min(picture.size) > 2 else picture
