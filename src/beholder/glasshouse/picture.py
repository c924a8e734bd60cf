"""Open any picture of Glasshouse by its address: a portrait, one with glimpsed items, or a thing."""

from __future__ import annotations

import re

from PIL import Image

from beholder.glasshouse.drawing.things import THINGS, draw_thing
from beholder.glasshouse.glimpse import PREFIX, open_glimpse
from beholder.glasshouse.portrait import check_word, parse_uri, render

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
