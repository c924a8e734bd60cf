"""Anatomy: the measures of one drawn person, derived from the portrait's attributes.

Each attribute has its own share. The identity's draws never depend on any other attribute, so a person stays
the same person at every age, light, pose, smile and skin tone. Presentation moves the middle of several
measures (jaw, brows, lips, lashes, shoulders, hair); single measures overlap between the two presentations.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from beholder.glasshouse.canvas import Colour, colours, mix

# The Monk Skin Tone scale, Ellis Monk and Google, published values 1 to 10.
MONK_SKIN_TONES = colours("f6ede4 f3e7db f7ead0 eadaba d7bd96 a07e56 825c43 604134 3a312a 292420")
HAIR_COLOURS = colours("1e1a1b 1e1a1b 281f1d 342620 422e24 543a2a 5a3428 6a4c34")
EYE_COLOURS = colours("3e281c 4e3220 5c4228 5c623e 4a687c")
JUMPERS = colours("426880 965654 587a62 7a648e b88e54 5c606c")
GREY: Colour = (206, 204, 202)
WOMEN_STYLES = {"long": 0.24, "wavy": 0.18, "bob": 0.20, "bun": 0.15, "curly": 0.13, "crop": 0.06, "medium": 0.04}
MEN_STYLES = {"parted": 0.32, "crop": 0.22, "buzz": 0.14, "short_curls": 0.16}
MEN_STYLES |= {"balding": 0.09, "medium": 0.04, "bun": 0.03}
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
        """One of several colours."""
        return options[int(self.uniform(name) * len(options))]

    def weighted(self, name: str, options: dict[str, float]) -> str:
        """One of several words, by weight."""
        rest = self.uniform(name)
        for word, weight in options.items():
            rest -= weight
            if rest < 0:
                return word
        return word


@dataclass(frozen=True)
class Face:
    """Sizes of head and features; lengths in canvas units, others as shares."""

    width: float
    height: float
    jaw: float
    chin: float
    eye_gap: float
    eye_width: float
    eye_open: float
    eye_tilt: float
    brow_weight: float
    brow_arch: float
    brow_lift: float
    nose_width: float
    nose_length: float
    lip_fullness: float
    mouth_width: float
    lip_tint: float
    lashes: float
    ear_size: float
    neck: float
    shoulders: float


@dataclass(frozen=True)
class Hair:
    """Style, colour and shape of hair and beard."""

    style: str
    colour: Colour
    brow_colour: Colour
    volume: float
    length: float
    parting: float
    hairline: float
    beard: str


@dataclass(frozen=True)
class Person:
    """Everything the drawing modules need to know about one drawn person."""

    face: Face
    hair: Hair
    skin: Colour
    eyes: Colour
    jumper: Colour
    age: int
    smile: float
    yaw: float
    light: float


def face_of(draws: Draws, *, woman: bool, age: int) -> Face:
    """Head and features of an identity in one presentation; age softens jaw and lips a little."""
    w = 1.0 if woman else 0.0
    years = (age - 20) / 60
    return Face(
        width=draws.around("width", 0.172, 0.016),
        height=draws.around("height", 0.226 - 0.004 * w, 0.015),
        jaw=draws.around("jaw", 0.875 - 0.125 * w, 0.075) + 0.02 * years,
        chin=draws.around("chin", 0.46 - 0.11 * w, 0.08),
        eye_gap=draws.around("eye_gap", 0.455, 0.055),
        eye_width=draws.around("eye_width", 0.235 + 0.014 * w, 0.035),
        eye_open=draws.around("eye_open", 0.105 + 0.012 * w, 0.025) - 0.012 * years,
        eye_tilt=draws.around("eye_tilt", 0.02, 0.035) - 0.02 * years,
        brow_weight=draws.around("brow_weight", 0.0190 - 0.0080 * w, 0.0050),
        brow_arch=draws.around("brow_arch", 0.022 + 0.024 * w, 0.02),
        brow_lift=draws.around("brow_lift", 0.285 + 0.03 * w, 0.035),
        nose_width=draws.around("nose_width", 0.215 - 0.03 * w, 0.06),
        nose_length=draws.around("nose_length", 0.345 - 0.015 * w, 0.06),
        lip_fullness=draws.around("lip_fullness", 0.062 + 0.026 * w, 0.024) - 0.014 * years,
        mouth_width=draws.around("mouth_width", 0.36 - 0.015 * w, 0.055),
        lip_tint=draws.around("lip_tint", 0.14 + 0.32 * w, 0.16),
        lashes=max(0.0, draws.around("lashes", 0.15 + 0.7 * w, 0.3)),
        ear_size=draws.around("ear_size", 1.0, 0.2),
        neck=draws.around("neck", 0.098 - 0.020 * w, 0.010),
        shoulders=draws.around("shoulders", 0.375 - 0.045 * w, 0.025),
    )


def greyness(draws: Draws, age: int) -> float:
    """Share of grey in the hair, rising smoothly with age around an identity's own middle."""
    middle = draws.around("grey_from", 57, 9)
    return 0.95 / (1 + math.exp(-(age - middle) / 5.0))


def hair_of(draws: Draws, *, woman: bool, age: int) -> Hair:
    """Hair and beard of an identity in one presentation at one age."""
    natural = draws.pick("hair_colour", HAIR_COLOURS)
    grey = greyness(draws, age)
    return Hair(
        style=draws.weighted("style", WOMEN_STYLES if woman else MEN_STYLES),
        colour=mix(natural, GREY, grey),
        brow_colour=mix(natural, (150, 146, 142), 0.75 * grey),
        volume=draws.around("volume", 1.0, 0.6),
        length=draws.around("length", 0.5, 0.5),
        parting=draws.around("parting", 0.0, 1.0),
        hairline=draws.around("hairline", 0.60, 0.10) + (0.0 if woman else 0.06 * (age - 20) / 60),
        beard="none" if woman else draws.weighted("beard", BEARDS),
    )
