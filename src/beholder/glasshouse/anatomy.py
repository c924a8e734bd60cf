"""Anatomy: the measures of one drawn person, derived from the portrait's attributes.

Each attribute has its own share. The identity's draws never depend on any other attribute, so a person stays
the same person at every age, light, pose, smile and skin tone. Presentation moves the middle of several
measures (jaw, brows, lips, lashes, shoulders, hair); single measures overlap between the two presentations.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from beholder.glasshouse.canvas import HEAD_X, HEAD_Y, Colour, Floats, Pairs, blot, colours, field, field_grid, mix

if TYPE_CHECKING:
    from beholder.glasshouse.portrait import Portrait

# The Monk Skin Tone scale, Ellis Monk and Google, published values 1 to 10.
MONK_SKIN_TONES = colours("f6ede4 f3e7db f7ead0 eadaba d7bd96 a07e56 825c43 604134 3a312a 292420")
HAIR_COLOURS = colours("1e1a1b 1e1a1b 281f1d 342620 422e24 543a2a 5a3428 6a4c34")
EYE_COLOURS = colours("3e281c 4e3220 5c4228 5c623e 4a687c")
JUMPERS = colours("426880 965654 587a62 7a648e b88e54 5c606c")
GREY: Colour = (206, 204, 202)
WOMEN_STYLES = {"long": 0.24, "wavy": 0.18, "bob": 0.20, "bun": 0.15, "curly": 0.13, "crop": 0.06, "medium": 0.04}
MEN_STYLES = {"parted": 0.32, "crop": 0.22, "buzz": 0.14, "short_curls": 0.16}
MEN_STYLES |= {"balding": 0.09, "medium": 0.04, "bun": 0.03}
TURN = 0.54  # radians at the largest pose
BEARDS = {"none": 0.55, "stubble": 0.18, "moustache": 0.09, "beard": 0.18}


@dataclass(frozen=True)
class Draws:
    """The fixed random draws of one identity: the same name always gives the same number."""

    identity: int

    def uniform(self, name: str) -> float:
        """A number in [0, 1)."""
        digest = hashlib.blake2b(f"{self.identity}/{name}".encode(), digest_size=6).digest()
        return int.from_bytes(digest, "big") / 2**48

    def around(self, name: str, middle: float, spread: float) -> float:
        """A bell-shaped number within `middle` ± `spread`."""
        return middle + spread * (self.uniform(name + "/a") + self.uniform(name + "/b") - 1.0)

    def pick(self, name: str, options: tuple[Colour, ...]) -> Colour:
        return options[int(self.uniform(name) * len(options))]

    def weighted(self, name: str, options: dict[str, float]) -> str:
        """One of several words, by weight."""
        rest = self.uniform(name)
        for word, weight in options.items():
            rest -= weight
            if rest < 0:
                return word
        return word


class Face:
    """Head and features of an identity in one presentation: lengths in canvas units, else shares; age softens them."""

    def __init__(self, draws: Draws, *, woman: bool, age: int) -> None:
        around, w, years = draws.around, 1.0 if woman else 0.0, (age - 20) / 60
        self.width = around("width", 0.172, 0.016)
        self.height = around("height", 0.226 - 0.004 * w, 0.015)
        self.jaw = around("jaw", 0.875 - 0.125 * w, 0.075) + 0.02 * years
        self.chin = around("chin", 0.46 - 0.11 * w, 0.08)
        self.eye_gap = around("eye_gap", 0.455, 0.055)
        self.eye_width = around("eye_width", 0.235 + 0.014 * w, 0.035)
        self.eye_open = around("eye_open", 0.105 + 0.012 * w, 0.025) - 0.012 * years
        self.eye_tilt = around("eye_tilt", 0.02, 0.035) - 0.02 * years
        self.brow_weight = around("brow_weight", 0.0190 - 0.0080 * w, 0.0050)
        self.brow_arch = around("brow_arch", 0.022 + 0.024 * w, 0.02)
        self.brow_lift = around("brow_lift", 0.285 + 0.03 * w, 0.035)
        self.nose_width = around("nose_width", 0.215 - 0.03 * w, 0.06)
        self.nose_length = around("nose_length", 0.345 - 0.015 * w, 0.06)
        self.lip_fullness = around("lip_fullness", 0.062 + 0.026 * w, 0.024) - 0.014 * years
        self.mouth_width = around("mouth_width", 0.36 - 0.015 * w, 0.055)
        self.lip_tint = around("lip_tint", 0.14 + 0.32 * w, 0.16)
        self.lashes = max(0.0, around("lashes", 0.15 + 0.7 * w, 0.3))
        self.ear_size = around("ear_size", 1.0, 0.2)
        self.neck = around("neck", 0.098 - 0.020 * w, 0.010)
        self.shoulders = around("shoulders", 0.375 - 0.045 * w, 0.025)


class Hair:
    """Style, colour and shape of hair and beard of an identity in one presentation at one age."""

    def __init__(self, draws: Draws, *, woman: bool, age: int) -> None:
        natural, middle = draws.pick("hair_colour", HAIR_COLOURS), draws.around("grey_from", 57, 9)
        grey = 0.95 / (1 + math.exp(-(age - middle) / 5.0))  # its share rises smoothly around an identity's own middle
        self.style = draws.weighted("style", WOMEN_STYLES if woman else MEN_STYLES)
        self.colour = mix(natural, GREY, grey)
        self.brow_colour = mix(natural, (150, 146, 142), 0.75 * grey)
        self.volume = draws.around("volume", 1.0, 0.6)
        self.length = draws.around("length", 0.5, 0.5)
        self.parting = draws.around("parting", 0.0, 1.0)
        self.hairline = draws.around("hairline", 0.60, 0.10) + (0.0 if woman else 0.06 * (age - 20) / 60)
        self.beard = "none" if woman else draws.weighted("beard", BEARDS)


class Head:
    """One drawn person: measures, colours, and where a point of the face lands once the head is turned."""

    def __init__(self, portrait: "Portrait") -> None:
        draws, woman, age = Draws(portrait.identity), portrait.presentation == "woman", portrait.age
        self.face, self.hair = Face(draws, woman=woman, age=age), Hair(draws, woman=woman, age=age)
        self.skin, self.age = MONK_SKIN_TONES[portrait.skin_tone - 1], age
        self.eyes, self.jumper = draws.pick("eye_colour", EYE_COLOURS), draws.pick("jumper", JUMPERS)
        self.smile, self.light, turned = portrait.smiling / 4, portrait.lighting / 2, TURN * portrait.pose / 2
        self.width, self.height = self.face.width, self.face.height
        self.sine, self.cosine = math.sin(turned), math.cos(turned)
        self.hat_x = HEAD_X - 0.05 * self.width * self.sine  # the middle of a hat, which leans against the turn

    def at(self, x: float, y: float, out: float = 0.0) -> tuple[float, float]:
        """Canvas position of a point on the face; `out` lifts it off the surface."""
        depth = math.sqrt(max(0.0, 1 - 0.85 * x * x - 0.2 * y * y)) - 0.5 + out
        across = self.width * (x * self.cosine + depth * self.sine)
        return HEAD_X + across, HEAD_Y + self.height * y

    def path(self, points: Sequence[tuple[float, float]]) -> Pairs:
        return [self.at(x, y) for x, y in points]

    def outline(self, grow: float = 1.0) -> Floats:
        """The edge of the head, ten control points clockwise from the crown, `grow` times as large."""
        right = [(0.60, -0.88), (0.93, -0.45), (1.0, -0.02), (0.965, 0.26)]
        right += [(self.face.jaw, 0.62), (self.face.chin * 0.92, 0.925)]
        edge = np.asarray([(0.0, -1.0), *right, (0.0, 1.0), *[(-x, y) for x, y in reversed(right)]]) * grow
        lean = self.width * self.sine * (0.10 + 0.16 * np.clip(edge[:, 1], 0, 1))
        return np.stack([HEAD_X + self.width * edge[:, 0] + lean, HEAD_Y + self.height * edge[:, 1]], axis=1)


# Skin


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
