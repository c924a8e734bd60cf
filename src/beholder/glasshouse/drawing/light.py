"""Light: the soft fields of colour that make skin, hair and cloth look round under one lamp.

The lamp stands above; `light` (-1..1) moves it from the picture's left to its right and turns it up.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from beholder.glasshouse.drawing.canvas import Colour, Floats, blot, darker, field, field_grid, mix

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


def depth_of(skin: Colour) -> float:
    """How deep a skin tone is: 0 for white paper, 1 for black."""
    return 1 - sum(skin) / 765


def skin_shadow(skin: Colour) -> Colour:
    """The colour of skin turned away from the lamp; warm, never grey."""
    r, g, b = skin
    return round(r * 0.76), round(g * 0.67), round(b * 0.62)


def skin_glow(skin: Colour) -> Colour:
    """The colour of skin facing the lamp."""
    return mix(skin, (255, 226, 200), 0.22 + 0.16 * depth_of(skin))


def blush(skin: Colour) -> Colour:
    """The colour of cheeks: a rosier neighbour of the skin."""
    r, g, b = skin
    return min(255, round(r * 1.05 + 16)), round(g * 0.82), round(b * 0.78)


def skin_field(skin: Colour, light: float, turn: float) -> Image.Image:
    """Skin of a head: round, lit from above and from the lamp's side, with rosy cheeks."""
    x, y = field_grid()
    side, height = (x - HEAD_X) / 0.187, (y - HEAD_Y) / 0.245
    facing = 0.55 * light * side - 0.34 * height + 0.10
    edge = np.clip(side**2 + 0.55 * height**2 - 0.45, 0, 1)
    cheeks = blot(0.40 + turn, 0.50, 0.06, 0.048) + blot(0.60 + turn, 0.50, 0.06, 0.048)
    bones = blot(0.385 + turn, 0.465, 0.035, 0.028) + blot(0.615 + turn, 0.465, 0.035, 0.028)
    sheen = np.clip(facing, 0, 1) + 0.35 * blot(0.5 + turn, 0.31, 0.08, 0.06) + 0.3 * bones
    return field(
        skin,
        (skin_glow(skin), (1 + 0.6 * depth_of(skin)) * sheen),
        (skin_shadow(skin), np.clip(-0.8 * facing, 0, 0.7) + 0.42 * edge),
        (blush(skin), 0.34 * cheeks),
    )


def neck_field(skin: Colour, light: float, chin: float) -> Image.Image:
    """Skin of the neck: in the shade of the chin, lighter towards the collar."""
    x, y = field_grid()
    shade = 0.95 * np.exp(-(((y - chin) / 0.055) ** 2) * (y > chin)) + 0.25
    return field(skin, (skin_shadow(skin), shade - 0.4 * light * (x - 0.5) / 0.1 * 0.5))


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
