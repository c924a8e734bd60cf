"""Open any picture of Glasshouse by its address: a portrait, one with glimpsed items, or a thing."""

from __future__ import annotations

import re

from PIL import Image

from beholder.glasshouse.drawing.outfits import WORN
from beholder.glasshouse.drawing.things import THINGS, draw_thing
from beholder.glasshouse.portrait import Portrait, check_word, parse_uri, portrait_uri, render

PREFIX = "glasshouse:glimpse/"
STRIP = 0.1
"""The share of a glimpsed thing's box that is drawn: its right edge, from top to bottom."""
BOXES = {
    "hat": (0.195, 0.086, 0.805, 0.410),
    "glasses": (0.339, 0.366, 0.660, 0.465),
    "tie": (0.385, 0.661, 0.616, 1.000),
    "handbag": (0.031, 0.743, 0.300, 1.000),
    "phone": (0.759, 0.696, 0.938, 1.000),
}
"""Left, top, right and bottom of what each thing changes in the picture, as shares of it: means over thirty people."""


def area(item: str, *, glimpsed: bool) -> float:
    """The share of the picture that the drawn part of a thing's box covers."""
    left, top, right, bottom = BOXES[item]
    return (right - left) * (bottom - top) * (STRIP if glimpsed else 1.0)


def render_glimpsed(portrait: Portrait, glimpsed: frozenset[str], size: int = 224) -> Image.Image:
    """The portrait with what it wears, and a strip of each glimpsed thing."""
    picture = render(portrait, size)
    if not glimpsed:
        return picture
    whole = render(wearing(portrait, portrait.worn | glimpsed), size)
    for item in glimpsed:
        left, top, right, bottom = (size * edge for edge in BOXES[item])
        box = (round(right - STRIP * (right - left)), round(top), round(right), round(bottom))
        picture.paste(whole.crop(box), box)
    return picture


def wearing(portrait: Portrait, worn: frozenset[str]) -> Portrait:
    """The same person with other things on."""
    p = portrait
    return Portrait(p.presentation, p.age, p.skin_tone, p.smiling, p.lighting, p.pose, p.identity, p.outfit, worn)


def glimpse_uri(portrait: Portrait, glimpsed: frozenset[str]) -> str:
    """The picture's one address; without glimpses it is the portrait's own."""
    if not glimpsed:
        return portrait_uri(portrait)
    if glimpsed & portrait.worn:
        raise ValueError(f"{'+'.join(sorted(glimpsed & portrait.worn))} is worn in full and glimpsed.")
    listed = "+".join(item for item in WORN if item in glimpsed)
    return f"{PREFIX}{listed}/{portrait_uri(portrait).removeprefix('glasshouse:')}"


def open_glimpse(uri: str, size: int = 224) -> Image.Image:
    """The picture that a glimpse's address names; ValueError if it names none."""
    match = re.fullmatch(rf"{PREFIX}(?P<items>[a-z+]+)/(?P<rest>.+)", uri)
    if match is None:
        raise ValueError(f"{uri!r} is no address of a glimpse.")
    items = frozenset(match["items"].split("+"))
    for item in items:
        check_word("glimpse", item, WORN)
    portrait = parse_uri(f"glasshouse:{match['rest']}")
    if (canonical := glimpse_uri(portrait, items)) != uri:
        raise ValueError(f"{uri!r} is not in canonical form; write {canonical!r}.")
    return render_glimpsed(portrait, items, size)


# Open any picture of Glasshouse by its address

THING_URI = re.compile(r"glasshouse:thing/(?P<kind>\w+)/(?P<seed>\d+)")


def open_uri(uri: str, size: int = 224) -> Image.Image:
    """The picture at an address; ValueError if the address is not one of Glasshouse."""
    if uri.startswith(PREFIX):
        return open_glimpse(uri, size)
    thing = THING_URI.fullmatch(uri)
    if thing is not None:
        check_word("kind", thing["kind"], THINGS)
        return draw_thing(thing["kind"], int(thing["seed"]), size)
    return render(parse_uri(uri), size)


def thing_uri(kind: str, seed: int) -> str:
    """The address of a drawn thing, such as `glasshouse:thing/dog/3`."""
    check_word("kind", kind, THINGS)
    return f"glasshouse:thing/{kind}/{seed}"
