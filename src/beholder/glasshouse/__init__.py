"""Glasshouse: a world of drawn people, made by the project, in which every answer is known."""

from beholder.glasshouse.drawing.things import THINGS, draw_thing
from beholder.glasshouse.picture import open_uri
from beholder.glasshouse.portrait import RENDERER_VERSION, Portrait, portrait_uri, render
from beholder.glasshouse.world import factorial, prompts, residents

__all__ = [
    "RENDERER_VERSION",
    "THINGS",
    "Portrait",
    "draw_thing",
    "factorial",
    "open_uri",
    "portrait_uri",
    "prompts",
    "render",
    "residents",
]
