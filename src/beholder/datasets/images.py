"""What a picture is made of, and how it is opened: RGB and upright, transparent pixels on white, or `BadImage`.

A table holds the address of a file (or of a part of one, or a drawing), of a `Crop` or of a `Changed` picture. Only
loaders write other addresses than files' (`Dataset.made`): a name in a user's table cannot become one.
"""

import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from beholder.core.errors import NO_FILE, BadImage, DataError, MissingExtra, UsageError, first_line
from beholder.datasets.content import is_remote, part_of, read_content

MOST_PIXELS = "BEHOLDER_MAX_PIXELS"  # pixels above which a picture is refused; reaches worker processes
_LIMIT = 2 * (Image.MAX_IMAGE_PIXELS or 0)
_HEIF = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis")


def open_file(name: str, data: bytes | None = None, *, alpha: bool = False) -> Image.Image:
    """The picture at an address, RGB and upright (with `alpha` as it is); `data` are its bytes, if read before."""
    if data is None and (is_remote(name) or part_of(name)):
        data = read_content(name)
    if data is None and not os.path.isfile(name):
        raise BadImage(name, NO_FILE)
    if not (os.stat(name).st_size if data is None else data):
        raise BadImage(name, "the file is empty (0 bytes)")
    limit = _most_pixels()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is harmless; a broken picture raises
            with _opened(name, data) as image:
                if image.size == (1, 1):
                    raise BadImage(name, "one pixel, which shows nothing")
                image.load()  # and nothing is copied that need not be: fresh memory costs more than decoding
                ImageOps.exif_transpose(image, in_place=True)
                if image.mode.startswith("I;16"):  # scaled to 8 bits, because Pillow's own conversion clips them
                    image = image.point(lambda value: value / 256).convert("L")
                return image if alpha and is_transparent(image) else on_white(image)
    except UnidentifiedImageError:
        raise BadImage(name, "not an image in any format that Pillow reads") from None
    except Image.DecompressionBombError:
        why = f"larger than {limit:,} pixels, the limit against files that fill the memory. If you trust it, "
        raise BadImage(name, f"{why}set {MOST_PIXELS} to a higher number") from None
    except MemoryError:
        raise BadImage(name, "there is too little memory to open it") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise BadImage(name, f"damaged: {first_line(error)}") from error


def is_transparent(image: Image.Image) -> bool:
    """Whether any pixel lets through what lies behind it; a palette may say so of one of its colours."""
    if "transparency" not in image.info and "A" not in image.getbands() and image.mode != "RGBa":
        return False
    lowest, _ = image.convert("RGBA").getchannel("A").getextrema()
    return bool(cast(float, lowest) < 255)


def on_white(image: Image.Image) -> Image.Image:
    """The picture in RGB as transformers' processors make it: what is transparent shows white."""
    if is_transparent(image):
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")


def _most_pixels() -> int:
    """The limit; Pillow refuses pictures of more than twice its own."""
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
        if (kind := _heif_kind(name, data)) is None:
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


# Changes: a number that one of these moves by as much as its interval is wide is less certain than the interval says


def _jpeg(picture: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def _cut(picture: Image.Image, left: int, top: int, right: int, bottom: int) -> Image.Image:
    return picture.crop((left, top, picture.width - right, picture.height - bottom))


def _resized(picture: Image.Image, pixels: int) -> Image.Image:
    return picture.resize((picture.width + pixels, picture.height + pixels), Image.Resampling.BICUBIC)


CHANGES: Mapping[str, tuple[Callable[..., Image.Image], tuple[int, ...]]] = {  # `--perturb 3` makes the first three
    "saved as JPEG of quality 95": (_jpeg, (95,)),
    "one pixel cut off at the left and at the top": (_cut, (1, 1, 0, 0)),
    "resized to one pixel less": (_resized, (-1,)),
    "one pixel cut off at the right and at the bottom": (_cut, (0, 0, 1, 1)),
    "saved as JPEG of quality 85": (_jpeg, (85,)),
    "resized to one pixel more": (_resized, (1,)),
    "one pixel cut off on all sides": (_cut, (1, 1, 1, 1)),
    "saved as JPEG of quality 75": (_jpeg, (75,)),
}
SQUARE = "resized to 256 × 256"  # what released scripts do before the model's own processor; not among those above


def changed(picture: Image.Image, change: str) -> Image.Image:
    """The picture after the change; one too small to lose a pixel stays as it is."""
    if change == SQUARE:
        return picture.resize((256, 256))
    make, numbers = CHANGES[change]
    return make(picture, *numbers) if min(picture.size) > 2 else picture


# Crops

GREY = (0.2989, 0.5870, 0.1140)  # weights of red, green and blue in a grey value, as the Perception study has them
FACE = 0.35, 0.45  # half axes of the face region, as shares of width and height
Box = tuple[int, int, int, int]


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
def _reference_brightness(path: str, box: Box) -> float:
    return face_brightness(open_file(path).crop(box))


# Sources

DRAWN, CROPPED, CHANGED = "glasshouse:", "crop:", "perturbed:"
OF_FILES = r"^(?:(?:crop|perturbed|wds):|hf:(?:[^/]|/[^/]|$))"  # addresses that only loaders write; hf:// is a URI


class Crop(NamedTuple):
    """A box of a file, optionally as bright as the same box of another."""

    path: str
    box: Box
    match: str | None


class Changed(NamedTuple):
    """A picture after one of the changes above."""

    change: str
    source: "Source"


Source = str | Crop | Changed


@lru_cache(maxsize=65536)
def source_of(uri: str) -> Source:
    """What the address in a data set's table stands for."""
    try:
        if uri.startswith(CROPPED):
            parts = json.loads(uri.removeprefix(CROPPED))
            left, top, right, bottom = parts["box"]
            return Crop(parts["path"], (left, top, right, bottom), parts.get("match"))
        if uri.startswith(CHANGED):
            entry = json.loads(uri.removeprefix(CHANGED))
            return Changed(entry["change"], source_of(entry["uri"]))
    except (ValueError, LookupError, TypeError) as error:
        raise BadImage(uri, "is not an address of a crop or of a changed picture") from error
    return uri


def crop_uri(path: Path, box: Box, match: Path | None = None) -> str:
    """The address of a crop."""
    parts = {"path": str(path), "box": list(box), **({"match": str(match)} if match else {})}
    return CROPPED + json.dumps(parts, ensure_ascii=False)


def changed_uri(uri: str, change: str) -> str:
    """The address of a picture after a change."""
    return CHANGED + json.dumps({"change": change, "uri": uri}, ensure_ascii=False)


def files_of(uri: str) -> list[str]:
    """The addresses of the files that a picture is made of, the picture itself first; none for a drawing."""
    source = source_of(uri)
    while isinstance(source, Changed):
        source = source.source
    if isinstance(source, Crop):
        return [source.path, source.match] if source.match else [source.path]
    return [] if source.startswith(DRAWN) else [source]


def is_plain_file(uri: str) -> bool:
    """Whether the picture is all that the bytes at the address hold (`content.read_content`)."""
    return not uri.startswith((CHANGED, CROPPED, DRAWN))


def open_image(uri: str, data: bytes | None = None, *, alpha: bool = False) -> Image.Image:
    """The picture at `uri`, RGB and upright; `data` are the bytes of a plain file, if they were read before."""
    return open_file(uri, data, alpha=alpha) if is_plain_file(uri) else _made(source_of(uri), alpha=alpha)


def _made(source: Source, *, alpha: bool = False) -> Image.Image:
    if isinstance(source, Changed):
        return changed(_made(source.source), source.change)
    if isinstance(source, Crop):
        part = open_file(source.path, alpha=alpha and not source.match).crop(source.box)
        return brightened(part, _reference_brightness(source.match, source.box)) if source.match else part
    if not source.startswith(DRAWN):
        return open_file(source, alpha=alpha)
    from beholder.glasshouse.portrait import open_uri  # here, so that a worker process starts without it

    try:
        return open_uri(source)
    except ValueError as error:
        raise BadImage(source, str(error)) from error


# Which pictures cannot be read

NAMED = 20  # unreadable images that a message names


def unreadable(uris: Sequence[str], advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Address → reason, for every image that cannot be read."""

    def reason(uri: str) -> str | None:
        try:
            open_image(uri)
        except BadImage as error:
            return error.reason
        return None

    reasons = {}
    with ThreadPoolExecutor() as pool:
        for uri, why in zip(uris, pool.map(reason, uris), strict=True):
            advance(1)
            if why:
                reasons[uri] = why
    return reasons


def unreadable_error(reasons: Mapping[str, str], images: int) -> DataError:
    """The error for images that cannot be read: all of them in one message, and what to do."""
    listed = "\n".join(f"  {uri}: {reason}" for uri, reason in list(reasons.items())[:NAMED])
    more = f"\n  … and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return DataError(
        f"{len(reasons)} of {images:,} images cannot be read:\n{listed}{more}\n"
        "Replace them, or continue without them: --skip-bad-images."
    )
