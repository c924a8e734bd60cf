"""Portraits: a drawn person as a value, its picture, and its address; and all other addresses of Glasshouse.

Every attribute varies on its own, and the same portrait always gives the same pixels. `glasshouse:` addresses
name portraits, portraits with glimpsed things, and things one-to-one, so a table of them is a data set without files.
"""

import re
from dataclasses import dataclass, replace

from PIL import Image

from beholder.core.types import Entry
from beholder.glasshouse import face, outfits
from beholder.glasshouse.anatomy import Head
from beholder.glasshouse.canvas import Canvas, hair_field, mix
from beholder.glasshouse.outfits import OUTFITS, WORN
from beholder.glasshouse.things import THINGS, draw_thing

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


def render(portrait: Portrait, size: int = 224) -> Image.Image:
    """The portrait as an RGB picture of size × size."""
    head = Head(portrait)
    canvas = Canvas(size)
    headwear = outfits.draw_hat if "hat" in portrait.worn else outfits.HEADWEAR.get(portrait.outfit)
    covered = headwear is not None
    paint = hair_field(mix(head.hair.colour, head.skin, 0.35 if head.hair.style == "buzz" else 0.0), head.light)
    face.draw_back_hair(canvas, head, paint, covered=covered)
    face.draw_neck(canvas, head)
    OUTFITS[portrait.outfit](canvas, head)
    for name, draw in outfits.WORN_OVER_CLOTHES.items():
        if name in portrait.worn:
            draw(canvas, head)
    face.draw_head(canvas, head, ears=head.hair.style not in face.HIDES_EARS)
    face.draw_features(canvas, head)
    face.draw_front_hair(canvas, head, paint, covered=covered)
    if "glasses" in portrait.worn:
        outfits.draw_glasses(canvas, head)
    if headwear:
        headwear(canvas, head)
    return canvas.finish(head.light)


def drawn_columns(portrait: Portrait) -> Entry:
    """What was drawn, as columns of a data set's table."""
    return {name: getattr(portrait, name) for name in ("smiling", "lighting", "pose", "identity")}


# Things that are glimpsed: only a strip of each is in the picture

STRIP = 0.1  # the share of a glimpsed thing's box that is drawn: its right edge, from top to bottom
BOXES = {  # left, top, right and bottom of what each thing changes in the picture, as shares: means over thirty people
    "hat": (0.195, 0.086, 0.805, 0.410),
    "glasses": (0.339, 0.366, 0.660, 0.465),
    "tie": (0.385, 0.661, 0.616, 1.000),
    "handbag": (0.031, 0.743, 0.300, 1.000),
    "phone": (0.759, 0.696, 0.938, 1.000),
}


def area(item: str, *, glimpsed: bool) -> float:
    """The share of the picture that the drawn part of a thing's box covers."""
    left, top, right, bottom = BOXES[item]
    return (right - left) * (bottom - top) * (STRIP if glimpsed else 1.0)


def render_glimpsed(portrait: Portrait, glimpsed: frozenset[str], size: int = 224) -> Image.Image:
    """The portrait with what it wears, and a strip of each glimpsed thing."""
    picture = render(portrait, size)
    if not glimpsed:
        return picture
    whole = render(replace(portrait, worn=portrait.worn | glimpsed), size)
    for item in glimpsed:
        left, top, right, bottom = (size * edge for edge in BOXES[item])
        box = (round(right - STRIP * (right - left)), round(top), round(right), round(bottom))
        picture.paste(whole.crop(box), box)
    return picture


# Addresses

GLIMPSE = "glasshouse:glimpse/"
THING_URI = re.compile(r"glasshouse:thing/(?P<kind>\w+)/(?P<seed>\d+)")
PORTRAIT_URI = re.compile(
    r"glasshouse:(?P<presentation>\w+)/age(?P<age>\d+)/tone(?P<skin_tone>\d+)/smile(?P<smiling>\d+)"
    r"/light(?P<lighting>-?\d+)/pose(?P<pose>-?\d+)/id(?P<identity>\d+)/(?P<outfit>\w+)/(?P<worn>[a-z+]+)"
)


def portrait_uri(portrait: Portrait, glimpsed: frozenset[str] = frozenset()) -> str:
    """The picture's one address: `glasshouse:man/age35/tone4/smile2/light0/pose-1/id17/doctor/hat+tie`."""
    p = portrait
    if glimpsed & p.worn:
        raise ValueError(f"{'+'.join(sorted(glimpsed & p.worn))} is worn in full and glimpsed.")
    worn, shown = ("+".join(item for item in WORN if item in items) for items in (p.worn, glimpsed))
    return (
        f"{f'{GLIMPSE}{shown}/' if shown else 'glasshouse:'}{p.presentation}/age{p.age}/tone{p.skin_tone}"
        f"/smile{p.smiling}/light{p.lighting}/pose{p.pose}/id{p.identity}/{p.outfit}/{worn or 'nothing'}"
    )


EXAMPLE = portrait_uri(Portrait("woman", 35, 4, 2, 0, -1, 17, "doctor", frozenset({"tie"})))


def open_uri(uri: str, size: int = 224) -> Image.Image:
    """The picture at an address; ValueError if the address is not one of Glasshouse."""
    if thing := THING_URI.fullmatch(uri):
        check_word("kind", thing["kind"], THINGS)
        return draw_thing(thing["kind"], int(thing["seed"]), size)
    items, _, rest = uri.removeprefix(GLIMPSE).partition("/") if uri.startswith(GLIMPSE) else ("", "", "")
    glimpsed = frozenset(items.split("+") if items else ())
    for item in glimpsed:
        check_word("glimpse", item, WORN)
    portrait = parse_uri(f"glasshouse:{rest}" if glimpsed else uri)
    if (canonical := portrait_uri(portrait, glimpsed)) != uri:
        raise ValueError(f"{uri!r} is not in canonical form; write {canonical!r}.")
    return render_glimpsed(portrait, glimpsed, size)


def parse_uri(uri: str) -> Portrait:
    """The portrait an address names; ValueError if it names none."""
    match = PORTRAIT_URI.fullmatch(uri)
    if match is None:
        raise ValueError(f"{uri!r} is no Glasshouse address. A portrait's looks like {EXAMPLE!r}.")
    parts = match.groupdict()
    words = frozenset() if parts["worn"] == "nothing" else frozenset(parts["worn"].split("+"))
    numbers = {name: int(parts[name]) for name in (*RANGES, "identity")}
    return Portrait(presentation=parts["presentation"], outfit=parts["outfit"], worn=words, **numbers)
