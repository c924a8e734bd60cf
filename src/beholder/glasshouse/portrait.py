"""Portraits: a drawn person as a value, its picture, and its address.

Every attribute varies on its own, and the same portrait always gives the same pixels. `glasshouse:` addresses
name portraits and things one-to-one, so a table of them is a data set without files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from PIL import Image

from beholder.glasshouse.drawing.anatomy import EYE_COLOURS, JUMPERS, MONK_SKIN_TONES, Draws, Person, face_of, hair_of
from beholder.glasshouse.drawing.canvas import Canvas
from beholder.glasshouse.drawing.face import (
    HIDES_EARS,
    Head,
    draw_back_hair,
    draw_features,
    draw_front_hair,
    draw_head,
    draw_neck,
    hair_paint,
)
from beholder.glasshouse.drawing.light import background, gain
from beholder.glasshouse.drawing.outfits import (
    HEADWEAR,
    OUTFITS,
    WORN,
    draw_clothes,
    draw_headwear,
    draw_worn_over_clothes,
)

RENDERER_VERSION = "2"
PRESENTATIONS = ("woman", "man")
RANGES = {"age": (20, 80), "skin_tone": (1, 10), "smiling": (0, 4), "lighting": (-2, 2), "pose": (-2, 2)}
IDENTITIES = 2**31


@dataclass(frozen=True)
class Portrait:
    """One drawn person. The labels say what was drawn; they say nothing about anybody who lives.

    `age` 20..80 years, `skin_tone` Monk 1..10, `smiling` 0..4, `lighting` -2 (dim, from the
    left) .. 2 (bright, from the right), `pose` -2 (turned to the left) .. 2, `identity` 0 .. 2**31 - 1.
    """

    presentation: str
    age: int
    skin_tone: int
    smiling: int
    lighting: int
    pose: int
    identity: int
    outfit: str = "plain"
    worn: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        for name, (low, high) in {**RANGES, "identity": (0, IDENTITIES - 1)}.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)}; a portrait has {name} {low} to {high}.")
        check_word("presentation", self.presentation, PRESENTATIONS)
        check_word("outfit", self.outfit, tuple(OUTFITS))
        for item in self.worn:
            check_word("worn", item, WORN)


def check_word(attribute: str, word: str, known: tuple[str, ...]) -> None:
    """Raise ValueError unless the word is one of those known."""
    if word not in known:
        raise ValueError(f"{attribute} is {word!r}; it can be: {', '.join(known)}.")


def person_of(portrait: Portrait) -> Person:
    """The measures and colours to draw."""
    draws, woman = Draws(portrait.identity), portrait.presentation == "woman"
    return Person(
        face=face_of(draws, woman=woman, age=portrait.age),
        hair=hair_of(draws, woman=woman, age=portrait.age),
        skin=MONK_SKIN_TONES[portrait.skin_tone - 1],
        eyes=draws.pick("eye_colour", EYE_COLOURS),
        jumper=draws.pick("jumper", JUMPERS),
        age=portrait.age,
        smile=portrait.smiling / 4,
        yaw=portrait.pose / 2,
        light=portrait.lighting / 2,
    )


def render(portrait: Portrait, size: int = 224) -> Image.Image:
    """The portrait as an RGB picture of size × size."""
    head = Head(person_of(portrait))
    canvas = Canvas(size, background())
    covered = "hat" in portrait.worn or portrait.outfit in HEADWEAR
    paint = hair_paint(head)
    draw_back_hair(canvas, head, paint, covered=covered)
    draw_neck(canvas, head)
    draw_clothes(canvas, head, portrait.outfit)
    draw_worn_over_clothes(canvas, head, portrait.worn)
    draw_head(canvas, head, ears=head.person.hair.style not in HIDES_EARS)
    draw_features(canvas, head)
    draw_front_hair(canvas, head, paint, covered=covered)
    draw_headwear(canvas, head, portrait.outfit, portrait.worn)
    return canvas.finish(gain(head.person.light, size))


def portrait_uri(portrait: Portrait) -> str:
    """The portrait's one address: `glasshouse:man/age35/tone4/smile2/light0/pose-1/id17/doctor/hat+tie`."""
    p = portrait
    worn = "+".join(item for item in WORN if item in p.worn) or "nothing"
    return (
        f"glasshouse:{p.presentation}/age{p.age}/tone{p.skin_tone}/smile{p.smiling}"
        f"/light{p.lighting}/pose{p.pose}/id{p.identity}/{p.outfit}/{worn}"
    )


def drawn_columns(portrait: Portrait) -> dict[str, Any]:
    """What was drawn, as columns of a data set's table."""
    return {name: getattr(portrait, name) for name in ("smiling", "lighting", "pose", "identity")}


PORTRAIT_URI = re.compile(
    r"glasshouse:(?P<presentation>\w+)/age(?P<age>\d+)/tone(?P<skin_tone>\d+)/smile(?P<smiling>\d+)"
    r"/light(?P<lighting>-?\d+)/pose(?P<pose>-?\d+)/id(?P<identity>\d+)/(?P<outfit>\w+)/(?P<worn>[a-z+]+)"
)


def parse_uri(uri: str) -> Portrait:
    """The portrait an address names; ValueError if it names none."""
    match = PORTRAIT_URI.fullmatch(uri)
    if match is None:
        raise ValueError(f"{uri!r} is no Glasshouse address. A portrait's looks like {EXAMPLE!r}.")
    parts = match.groupdict()
    words = frozenset() if parts["worn"] == "nothing" else frozenset(parts["worn"].split("+"))
    numbers = {name: int(parts[name]) for name in (*RANGES, "identity")}
    portrait = Portrait(presentation=parts["presentation"], outfit=parts["outfit"], worn=words, **numbers)
    if portrait_uri(portrait) != uri:
        raise ValueError(f"{uri!r} is not in canonical form; write {portrait_uri(portrait)!r}.")
    return portrait


EXAMPLE = portrait_uri(Portrait("woman", 35, 4, 2, 0, -1, 17, "doctor", frozenset({"tie"})))
