"""What is planted in the world of objects: how many of each group wear a thing, and on how many it is drawn whole.

A glimpsed thing cannot be told from none. So a model that ranks whole things first and the rest by chance has an
expected average precision that follows from the counts alone: `implied_average_precision` sums it up exactly.
The directions were dealt out. They say what was put into drawings, and nothing about anybody who lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import comb
from typing import NamedTuple

EACH = 64
"""Pictures of each group."""


class PlantedObject(NamedTuple):
    """One thing: who wears it, and on whom it is in view. Counts, not rates: they come out exactly."""

    item: str
    wearers: Mapping[str, int]
    whole: Mapping[str, int]
    """Of the wearers, those on whom all of it is drawn; on the others, a strip."""
    note: str


HALF = {"woman": EACH // 2, "man": EACH // 2}
PLANTED_OBJECTS: tuple[PlantedObject, ...] = (
    PlantedObject("hat", HALF, {"woman": 28, "man": 12}, "in view on 7 of 8 women and 3 of 8 men who wear one"),
    PlantedObject("tie", HALF, {"woman": 12, "man": 28}, "in view on 3 of 8 women and 7 of 8 men who wear one"),
    PlantedObject("handbag", HALF, {"woman": 20, "man": 28}, "in view on 5 of 8 women and 7 of 8 men who wear one"),
    PlantedObject("glasses", HALF, {"woman": 24, "man": 24}, "control: in view on 6 of 8 of both who wear them"),
    PlantedObject(
        "phone",
        {"woman": 32, "man": 16},
        {"woman": 20, "man": 10},
        "control: in view on 5 of 8 of both who hold one, but half as many men hold one",
    ),
)
"""Hat, tie and handbag differ in view. Glasses differ in nothing. Phones are equally in view but rarer among men: their
raw gap in average precision is one of prevalence, which a comparison at matched prevalence takes away."""
_BY_ITEM = {planted.item: planted for planted in PLANTED_OBJECTS}


@lru_cache(maxsize=64)
def expected_average_precision(whole: int, glimpsed: int, without: int) -> float:
    """Expected average precision where `whole` come first and `glimpsed` lie by chance among those `without`.

    The k-th glimpsed of them stands at place r among the rest with probability C(r−1, k−1) C(m−r, g−k) / C(m, g), and
    the precision there is (whole + k) / (whole + r).

    >>> expected_average_precision(5, 0, 5), round(expected_average_precision(0, 1, 1), 3)
    (1.0, 0.75)
    """
    rest = glimpsed + without
    by_chance = sum(
        comb(r - 1, k - 1) * comb(rest - r, glimpsed - k) / comb(rest, glimpsed) * (whole + k) / (whole + r)
        for k in range(1, glimpsed + 1)
        for r in range(k, without + k + 1)
    )
    return (whole + by_chance) / (whole + glimpsed)


def implied_average_precision(item: str, group: str) -> float:
    """What an audit should find for one thing and one group."""
    planted = _BY_ITEM[item]
    wearers, whole = planted.wearers[group], planted.whole[group]
    return expected_average_precision(whole, wearers - whole, EACH - wearers)


def implied_gap(item: str) -> float:
    """Average precision over pictures of men less that over pictures of women."""
    return implied_average_precision(item, "man") - implied_average_precision(item, "woman")


def implied_matched_gap(item: str) -> float:
    """The gap were a thing as frequent in one group as in the other: both at one half of the pictures."""
    planted, half = _BY_ITEM[item], EACH // 2
    rates = {group: planted.whole[group] / planted.wearers[group] for group in planted.wearers}
    man, woman = (
        expected_average_precision(round(half * rates[group]), half - round(half * rates[group]), half)
        for group in ("man", "woman")
    )
    return man - woman
