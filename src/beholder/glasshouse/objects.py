"""Objects: 128 drawn people who wear or hold things, some of which are hardly in view, more often so in one group.

Sixty-four settings, each with a woman and a man of the same age, skin tone, smile, light and pose, wearing the same
things. The things are a balanced half of all combinations of five, at each of four ages, so that each is worn in half
of the settings and any two together in a quarter. `planted_objects` says how often a thing is only glimpsed.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from beholder.glasshouse.drawing.anatomy import Draws
from beholder.glasshouse.drawing.outfits import WORN
from beholder.glasshouse.picture import area, glimpse_uri
from beholder.glasshouse.planted import PLANTED_OBJECTS
from beholder.glasshouse.portrait import PRESENTATIONS, Portrait, drawn_columns

IDENTITIES = 3_960_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
AGES = (25, 40, 55, 70)
COMBINATIONS = [frozenset(items) for count in (0, 2, 4) for items in combinations(WORN, count)]
"""Every set with an even number of things: sixteen, in which each thing and each pair is balanced."""
SETTINGS = len(AGES) * len(COMBINATIONS)


def worn_by(presentation: str) -> list[frozenset[str]]:
    """What the person of each setting wears; a thing that is planted to be rarer is taken off some."""
    worn = [COMBINATIONS[index % len(COMBINATIONS)] for index in range(SETTINGS)]
    for planted in PLANTED_OBJECTS:
        wearers = ranked([index for index in range(SETTINGS) if planted.item in worn[index]], "off", planted.item)
        for index in wearers[planted.wearers[presentation] :]:
            worn[index] = worn[index] - {planted.item}
    return worn


def glimpsed_on(presentation: str, worn: list[frozenset[str]]) -> list[frozenset[str]]:
    """Which of the worn things are only glimpsed, in each setting: exactly as many as planted."""
    glimpsed: list[frozenset[str]] = [frozenset()] * SETTINGS
    for planted in PLANTED_OBJECTS:
        wearers = [index for index in range(SETTINGS) if planted.item in worn[index]]
        for index in ranked(wearers, presentation, planted.item)[planted.whole[presentation] :]:
            glimpsed[index] = glimpsed[index] | {planted.item}
    return glimpsed


def ranked(settings: list[int], *key: str) -> list[int]:
    """The settings in an arbitrary order that the key fixes."""
    return sorted(settings, key=lambda index: Draws(0).uniform("/".join((*key, str(index)))))


def people() -> list[dict[str, Any]]:
    """One row per picture; women and men of a setting stand beside each other."""
    worn = {side: worn_by(side) for side in PRESENTATIONS}
    glimpsed = {side: glimpsed_on(side, worn[side]) for side in PRESENTATIONS}
    return [
        _row(index, number, side, worn[side][index], glimpsed[side][index])
        for index in range(SETTINGS)
        for number, side in enumerate(PRESENTATIONS)
    ]


def objects() -> list[dict[str, Any]]:
    """One row per picture and thing in it, whole or glimpsed, as `datasets.objects` has them."""
    return [
        {
            "image_id": row["image_id"],
            "concept": item,
            "instances": 1,
            "area": area(item, glimpsed=item in row["glimpsed"].split("+")),
            "names": [item],
        }
        for row in people()
        for item in WORN
        if item in row["worn"].split("+")
    ]


def _row(index: int, number: int, side: str, worn: frozenset[str], glimpsed: frozenset[str]) -> dict[str, Any]:
    portrait = Portrait(
        side,
        age=AGES[index // len(COMBINATIONS)],
        skin_tone=1 + index * 3 % 10,
        smiling=index * 2 % 5,
        lighting=index // 2 % 3 - 1,
        pose=index // 3 % 3 - 1,
        identity=IDENTITIES + len(PRESENTATIONS) * index + number,
        worn=worn - glimpsed,
    )
    return {
        "image_id": f"objects/{len(PRESENTATIONS) * index + number:03d}",
        "uri": glimpse_uri(portrait, glimpsed),
        "gender": side,
        "age": portrait.age,
        "skin_tone": portrait.skin_tone,
        **drawn_columns(portrait),
        "worn": "+".join(item for item in WORN if item in worn),
        "glimpsed": "+".join(item for item in WORN if item in glimpsed),
    }
