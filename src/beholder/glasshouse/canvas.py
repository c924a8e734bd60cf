"""The canvas: smooth shapes in unit coordinates, supersampled, filled flat or with a soft field of colour.

x grows to the right and y downwards, both 0..1. Nothing here is random: the same calls give the same pixels.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
Floats = npt.NDArray[np.float64]
Pairs = list[tuple[float, float]]
Points = Floats | Sequence[tuple[float, float]]
Paint = Colour | Image.Image

FIELD_SIZE = 48
STEPS = 6


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """`first` with `share` of `second` blended in."""
    r, g, b = (round(a + (z - a) * share) for a, z in zip(first, second, strict=True))
    return r, g, b


def darker(colour: Colour, factor: float) -> Colour:
    r, g, b = (round(channel * factor) for channel in colour)
    return r, g, b


def colours(text: str) -> tuple[Colour, ...]:
    """Colours written in hexadecimal, such as `f6ede4 f3e7db`."""
    return tuple((code >> 16, code >> 8 & 255, code & 255) for code in (int(word, 16) for word in text.split()))


def shape(text: str) -> Pairs:
    """Points written as `0.5,0.24 0.64,0.29`."""
    return [(float(x), float(y)) for x, y in (point.split(",") for point in text.split())]


def centred(text: str, scale: float, x: float = 0.5, y: float = 0.0) -> Pairs:
    """A shape made `scale` times as wide and moved to `x` and `y`."""
    return [(x + scale * across, y + down) for across, down in shape(text)]


@lru_cache(maxsize=1)
def field_grid() -> tuple[Floats, Floats]:
    """x and y of every cell of a field, in unit coordinates."""
    axis = (np.arange(FIELD_SIZE) + 0.5) / FIELD_SIZE
    x, y = np.meshgrid(axis, axis)
    return x, y


def field(base: Colour, *layers: tuple[Colour, Floats]) -> Image.Image:
    """A soft full-canvas colour field: `base` with each layer's colour blended in by its weights (0..1)."""
    cells = np.empty((FIELD_SIZE, FIELD_SIZE, 3))
    cells[:] = base
    for colour, weight in layers:
        cells += np.clip(weight, 0, 1)[:, :, None] * (np.asarray(colour, dtype=float) - cells)
    return Image.fromarray(np.rint(cells).astype(np.uint8))


def blot(x: float, y: float, width: float, height: float) -> Floats:
    """Weights of a soft round blot on the field grid: 1 in its middle, fading out."""
    grid_x, grid_y = field_grid()
    return np.exp(-(((grid_x - x) / width) ** 2) - ((grid_y - y) / height) ** 2)


@lru_cache(maxsize=1)
def spline_basis() -> Floats:
    """Catmull-Rom weights of four neighbouring control points, one row per step."""
    t = np.arange(STEPS) / STEPS
    weights = -(t**3) + 2 * t**2 - t, 3 * t**3 - 5 * t**2 + 2, -3 * t**3 + 4 * t**2 + t, t**3 - t**2
    return 0.5 * np.stack(weights, axis=1)


def spline(*neighbours: Floats) -> Floats:
    """A curve from every point to the next, given what stands before, at, after and beyond each."""
    curve: Floats = np.einsum("sk,knd->nsd", spline_basis(), np.stack(neighbours)).reshape(-1, 2)
    return curve


def closed_curve(points: Points) -> Floats:
    p = np.asarray(points, dtype=float)
    return spline(np.roll(p, 1, 0), p, np.roll(p, -1, 0), np.roll(p, -2, 0))


def ring(x: float, y: float, width: float, height: float, steps: int = 28) -> Floats:
    """Points of an ellipse with half-axes `width` and `height`."""
    angle = np.arange(steps) * (2 * np.pi / steps)
    return np.stack([x + width * np.cos(angle), y + height * np.sin(angle)], axis=1)


def ribbon(points: Points, width: float, taper: float) -> Floats:
    """The outline of a brush stroke along the points; `taper` 1 ends in points, 0 keeps the width."""
    p = np.asarray(points, dtype=float)
    padded = np.concatenate([[2 * p[0] - p[1]], p, [2 * p[-1] - p[-2]]])
    curve = np.concatenate([spline(padded[:-3], padded[1:-2], padded[2:-1], padded[3:]), p[-1:]])
    slope = np.gradient(curve, axis=0)
    normal = np.stack([-slope[:, 1], slope[:, 0]], axis=1)
    normal /= np.maximum(np.hypot(normal[:, 0], normal[:, 1]), 1e-9)[:, None]
    along = np.linspace(0, np.pi, len(curve))
    half = 0.5 * width * (1 - taper + taper * np.sin(along))
    return np.concatenate([curve + normal * half[:, None], (curve - normal * half[:, None])[::-1]])


@lru_cache(maxsize=4)
def dither(size: int) -> npt.NDArray[np.float32]:
    """Rounding thresholds in a fixed 8 × 8 pattern, so that gentle gradients show no bands."""
    tile = np.zeros((1, 1))
    for _ in range(3):
        tile = np.block([[4 * tile, 4 * tile + 2], [4 * tile + 3, 4 * tile + 1]])
    repeat = -(-size // 8)
    return np.tile((tile + 0.5) / 64, (repeat, repeat))[:size, :size, None].astype(np.float32)


class Canvas:
    """A square picture drawn at `scale` times its final size."""

    def __init__(self, size: int) -> None:
        self.size, self.scale = size, 3 if size >= 160 else 4
        self.width = size * self.scale
        self.image = background().resize((self.width, self.width), Image.Resampling.BILINEAR)
        self.draw = ImageDraw.Draw(self.image)

    def polygon(self, points: Points, paint: Paint, alpha: float = 1.0) -> None:
        """Fill a straight-edged shape."""
        pixels = np.rint(np.asarray(points, dtype=float) * self.width).astype(int)
        if not isinstance(paint, Image.Image) and alpha >= 1:
            self.draw.polygon(pixels.ravel().tolist(), fill=paint)
            return
        low = np.clip(pixels.min(0), 0, self.width)
        high = np.clip(pixels.max(0) + 1, 0, self.width)
        if not (high > low).all():
            return
        (left, top), (right, bottom) = low.tolist(), high.tolist()
        mask = Image.new("L", (right - left, bottom - top))
        ImageDraw.Draw(mask).polygon((pixels - low).ravel().tolist(), fill=round(255 * alpha))
        if isinstance(paint, Image.Image):
            part = tuple(edge * FIELD_SIZE / self.width for edge in (left, top, right, bottom))
            paint = paint.resize(mask.size, Image.Resampling.BILINEAR, box=part)
        self.image.paste(paint, (left, top, right, bottom), mask)

    def blob(self, points: Points, paint: Paint, alpha: float = 1.0) -> None:
        """Fill a smooth closed shape through the points."""
        self.polygon(closed_curve(points), paint, alpha)

    def oval(self, x: float, y: float, width: float, height: float, paint: Paint, alpha: float = 1.0) -> None:
        """Fill an ellipse with half-axes `width` and `height`."""
        self.polygon(ring(x, y, width, height), paint, alpha)

    def stroke(self, points: Points, width: float, paint: Paint, alpha: float = 1.0, *, taper: float = 1.0) -> None:
        """Draw a brush stroke along the points."""
        self.polygon(ribbon(points, width, taper), paint, alpha)

    def finish(self, light: float) -> Image.Image:
        """The picture at its final size under the lamp."""
        small = np.asarray(self.image.reduce(self.scale), dtype=np.float32)
        lit = small * gain(light, self.size).astype(np.float32)[None, :, None] + dither(self.size)
        return Image.fromarray(np.minimum(lit, 255).astype(np.uint8))


HEAD_X, HEAD_Y = 0.5, 0.415
SKY: Colour = (203, 214, 215)
GROUND: Colour = (154, 176, 184)


def background() -> Image.Image:
    """The studio wall: lighter behind the head, darker towards the floor."""
    _, y = field_grid()
    return field(SKY, (GROUND, y**1.5), ((224, 230, 227), 0.6 * blot(0.5, 0.36, 0.42, 0.36)))


def gain(light: float, size: int) -> Floats:
    """The lamp's brightness across the picture, `size` columns: dim at -1, bright at 1."""
    across = np.linspace(-1, 1, size)
    return (1.0 + 0.09 * light - 0.045 * light**2) * (1.0 + 0.11 * light * across)


def cloth_field(colour: Colour, light: float) -> Image.Image:
    """Cloth of a torso: lit at the shoulders, darker towards the lower corners and under the chin."""
    x, y = field_grid()
    side = (x - 0.5) / 0.5
    shade = 0.5 * side**2 + 0.35 * (y - 0.75) - 0.28 * light * side + 0.35 * blot(0.5, 0.70, 0.13, 0.05)
    return field(colour, (darker(colour, 0.62), shade), (mix(colour, (255, 255, 255), 0.35), 0.25 * light * side))


def hair_field(colour: Colour, light: float) -> Image.Image:
    """Hair: a soft sheen on the crown, deeper at the nape and the sides."""
    x, y = field_grid()
    sheen = blot(0.5 + 0.07 * light - 0.03, 0.21, 0.13, 0.05)
    depth = np.clip((y - 0.28) / 0.5, 0, 1) * 0.55 + 0.2 * np.abs(x - 0.5) / 0.2 - 0.25 * light * (x - 0.5) / 0.2
    return field(colour, (darker(colour, 0.6), depth), (mix(colour, (255, 236, 214), 0.34), 0.8 * sheen))
