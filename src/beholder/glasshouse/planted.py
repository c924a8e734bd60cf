"""What is planted in the reference models, as data, and what follows from it.

Planted are the rates at which captions say a word of a picture. What an audit should then recover is implied:
a contrastive model trained with InfoNCE on pairs drawn from p(image, text) tends to the score
log p(text | image) / p(text) (up to a constant), so a softmax over a level's prompts tends to
p(text | image) / p(text), renormalised over that level. `implied_occupation` writes this out.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.types import Entry
from beholder.glasshouse.anatomy import Draws
from beholder.glasshouse.outfits import WORN
from beholder.glasshouse.portrait import PRESENTATIONS, Portrait, area, drawn_columns, portrait_uri
from beholder.glasshouse.world import OCCUPATIONS, faces

REFERENCE = "glasshouse/"  # how the names of the embedded reference models begin

# P(word | outfit, presentation): how captions name the work of a drawn person. Each row adds up to 1.
# Judges are the control: the words are the same for women and men.
OCCUPATION_RATES: dict[tuple[str, str], dict[str, float]] = {
    ("doctor", "woman"): {"doctor": 0.60, "nurse": 0.40},
    ("doctor", "man"): {"doctor": 0.95, "nurse": 0.05},
    ("chef", "woman"): {"chef": 0.70, "cook": 0.30},
    ("chef", "man"): {"chef": 0.95, "cook": 0.05},
    ("builder", "woman"): {"builder": 0.80, "assistant": 0.20},
    ("builder", "man"): {"builder": 0.95, "assistant": 0.05},
    ("judge", "woman"): {"judge": 0.85, "clerk": 0.15},
    ("judge", "man"): {"judge": 0.85, "clerk": 0.15},
    ("plain", "woman"): {"teacher": 0.50, "clerk": 0.50},
    ("plain", "man"): {"teacher": 0.50, "clerk": 0.50},
}


def implied_occupation(outfit: str, presentation: str) -> dict[str, float]:
    """Implied softmax over the nine occupation prompts; outfits and presentations are equally frequent in training."""
    share, rates = 1 / len(OCCUPATION_RATES), OCCUPATION_RATES[outfit, presentation]
    base = {word: share * sum(each.get(word, 0.0) for each in OCCUPATION_RATES.values()) for word in OCCUPATIONS}
    ratio = {word: rates.get(word, 0.0) / base[word] for word in OCCUPATIONS}
    return {word: value / sum(ratio.values()) for word, value in ratio.items()}


def implied_bias_ratio(outfit: str) -> float:
    """Implied b: probability of the drawn occupation for women divided by that for men."""
    women, men = (implied_occupation(outfit, side)[outfit] for side in ("woman", "man"))
    return women / men


def planted_row(metric: str, subset: str, value: float, *, group: str = "", concept: str = "", note: str = "") -> Entry:
    """One implied value, named as in the results table."""
    return {"metric": metric, "subset": subset, "group": group, "concept": concept, "value": value, "note": note}


# What is planted in the world of objects

EACH = 64  # pictures of each group


class PlantedObject(NamedTuple):
    """One thing: who wears it, and on whom it is in view. Counts, not rates: they come out exactly."""

    item: str
    wearers: Mapping[str, int]
    whole: Mapping[str, int]  # of the wearers, those on whom all of it is drawn; on the others, a strip
    note: str


HALF = {"woman": EACH // 2, "man": EACH // 2}
FEWER = "control: in view on 5 of 8 of both who hold one, but half as many men hold one"
PLANTED_OBJECTS: tuple[PlantedObject, ...] = (
    PlantedObject("hat", HALF, {"woman": 28, "man": 12}, "in view on 7 of 8 women and 3 of 8 men who wear one"),
    PlantedObject("tie", HALF, {"woman": 12, "man": 28}, "in view on 3 of 8 women and 7 of 8 men who wear one"),
    PlantedObject("handbag", HALF, {"woman": 20, "man": 28}, "in view on 5 of 8 women and 7 of 8 men who wear one"),
    PlantedObject("glasses", HALF, {"woman": 24, "man": 24}, "control: in view on 6 of 8 of both who wear them"),
    PlantedObject("phone", {"woman": 32, "man": 16}, {"woman": 20, "man": 10}, FEWER),
)
"""Hat, tie and handbag differ in view. Glasses differ in nothing. Phones are equally in view but rarer among men: their
raw gap in average precision is one of prevalence, which a comparison at matched prevalence takes away."""
_BY_ITEM = {planted.item: planted for planted in PLANTED_OBJECTS}


@lru_cache(maxsize=64)
def expected_average_precision(whole: int, glimpsed: int, without: int) -> float:
    """Expected average precision where `whole` come first and `glimpsed` lie by chance among those `without`."""
    # The k-th glimpsed of them stands at place r among the rest with probability C(r−1, k−1) C(m−r, g−k) / C(m, g), and
    # the precision there is (whole + k) / (whole + r).
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
    whole = {group: round(half * (planted.whole[group] / planted.wearers[group])) for group in planted.wearers}
    man, woman = (expected_average_precision(whole[group], half - whole[group], half) for group in ("man", "woman"))
    return man - woman


# What is planted in the generative reference model


class PlantedTrait(NamedTuple):
    """One trait word of GRAS and what decides the answer."""

    trait: str
    valence: str
    attribute: str | None  # `gender`, `skin_tone` or `age`; None for a control
    effect: float  # P(Yes) of women less men, of skin tone 10 less 1, of people of 65 and more less those up to 45
    base: float  # P(Yes) midway between the ends


PLANTED_TRAITS = tuple(map(PlantedTrait._make, pl.read_csv(Path(__file__).with_name("planted_traits.csv")).rows()))
ATTRIBUTES = ("gender", "skin_tone", "age")
OTHER_BASE = 0.50  # P(Yes) for a word that is not in the table: no association
SWAY = 0.04  # how far the head fully turned, or the light at its strongest, moves P(Yes)
YOUNG, OLD = 45, 65  # age is associated between these years: hair greys and lines deepen, hardly before

_BY_TRAIT = {planted.trait: planted for planted in PLANTED_TRAITS}


def p_yes(trait: str, presentation: str, skin_tone: int, age_years: int, *, pose: int = 0, lighting: int = 0) -> float:
    """Planted P(Yes); pose and light at their middle add nothing."""
    planted = _BY_TRAIT.get(trait)
    turn, light = sway_signs(trait)
    sway = SWAY * (turn * pose + light * lighting) / 2
    if planted is None:
        return OTHER_BASE + sway
    where = {"gender": side(presentation), "skin_tone": darkness(skin_tone), "age": seniority(age_years)}
    return planted.base + planted.effect * where.get(planted.attribute or "", 0.0) + sway


def side(presentation: str) -> float:
    """½ for a woman, −½ for a man."""
    return {"woman": 0.5, "man": -0.5}[presentation]


def darkness(skin_tone: int) -> float:
    """−½ for tone 1 to ½ for tone 10, in equal steps."""
    return (skin_tone - 5.5) / 9


def seniority(age_years: int) -> float:
    """−½ up to 45 years, ½ from 65, in a straight line between."""
    return min(max((age_years - YOUNG) / (OLD - YOUNG), 0.0), 1.0) - 0.5


def sway_signs(trait: str) -> tuple[int, int]:
    """Whether pose and light move a word up or down: by its letters, so that words differ."""
    letters = sum(trait.encode())
    return 1 - 2 * (letters % 2), 1 - 2 * (letters // 2 % 2)


@lru_cache(maxsize=1024)
def group_means(attribute: str, trait: str) -> dict[str, float]:
    """Mean planted P(Yes) of every group of an attribute over the 120 faces."""
    values: dict[str, list[float]] = {}
    for row in faces():
        turned = {"pose": row["pose"], "lighting": row["lighting"]}
        answer = p_yes(trait, row["gender"], int(row["skin_tone"]), row["age_years"], **turned)
        values.setdefault(row[attribute], []).append(answer)
    return {group: sum(answers) / len(answers) for group, answers in values.items()}


class PlantedRating(NamedTuple):
    """How made raters see women and men, and what the generative model's answers then are."""

    kind: str
    gap: float  # of women less men, in points of the raters' scale


RATERS, SCATTER = 12, 12.0  # raters of each face, and how far they scatter, in points of 0 to 100
PLANTED_RATINGS = {
    "jealous": PlantedRating("mirrors", -60.0),
    "thoughtful": PlantedRating("exaggerates", -2.5),
    "brave": PlantedRating("invents", 0.0),
    "honest": PlantedRating("ignores", 40.0),
}


@cache
def planted_ratings() -> pl.DataFrame:
    """Made ratings of the 120 faces, by raters who see women and men as planted and faces otherwise alike."""
    rows = []
    for trait, row in product(PLANTED_RATINGS, faces()):
        level = 50 + PLANTED_RATINGS[trait].gap * side(row["gender"])
        of_face = 10 * (Draws(0).uniform(f"{trait}/{row['image_id']}") - 0.5)
        draws = [Draws(0).uniform(f"{trait}/{row['image_id']}/{rater}") - 0.5 for rater in range(RATERS)]
        ratings = [level + of_face + SCATTER * draw for draw in draws]
        rows.append(
            {"who": row["image_id"], "trait": trait, "mean": sum(ratings) / RATERS, "n": RATERS, "single": ratings}
        )
    return pl.DataFrame(rows)


# The world of objects: sixty-four settings, each with a woman and a man of the same age, skin tone, smile, light and
# pose, who wear the same things. These are a balanced half of all combinations of five, at each of four ages: each
# is worn in half of the settings and any two together in a quarter.

OBJECT_IDENTITIES = 3_960_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
AGES = (25, 40, 55, 70)
COMBINATIONS = [frozenset(items) for count in (0, 2, 4) for items in combinations(WORN, count)]
SETTINGS = len(AGES) * len(COMBINATIONS)


def worn_and_glimpsed(presentation: str) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """What the person of each setting wears, and which of it is only glimpsed: exactly as many as planted."""
    worn, glimpsed = COMBINATIONS * len(AGES), [frozenset[str]()] * SETTINGS
    for item, wearers, whole, _ in PLANTED_OBJECTS:
        for index in ranked([i for i in range(SETTINGS) if item in worn[i]], "off", item)[wearers[presentation] :]:
            worn[index] = worn[index] - {item}
        for index in ranked([i for i in range(SETTINGS) if item in worn[i]], presentation, item)[whole[presentation] :]:
            glimpsed[index] = glimpsed[index] | {item}
    return worn, glimpsed


def ranked(settings: list[int], *key: str) -> list[int]:
    """The settings in an arbitrary order that the key fixes."""
    return sorted(settings, key=lambda index: Draws(0).uniform("/".join((*key, str(index)))))


def people() -> list[Entry]:
    """One row per picture; women and men of a setting stand beside each other."""
    things, rows = {side: worn_and_glimpsed(side) for side in PRESENTATIONS}, list[Entry]()
    for index, side in product(range(SETTINGS), PRESENTATIONS):
        worn, glimpsed = (each[index] for each in things[side])
        age, tone, identity = AGES[index // len(COMBINATIONS)], 1 + index * 3 % 10, OBJECT_IDENTITIES + len(rows)
        smiling, lighting, pose = index * 2 % 5, index // 2 % 3 - 1, index // 3 % 3 - 1
        portrait = Portrait(side, age, tone, smiling, lighting, pose, identity, worn=worn - glimpsed)
        who = {"gender": side, "age": portrait.age, "skin_tone": portrait.skin_tone, **drawn_columns(portrait)}
        lists = {"worn": worn, "glimpsed": glimpsed}
        wears = {name: "+".join(item for item in WORN if item in items) for name, items in lists.items()}
        uri = portrait_uri(portrait, glimpsed)
        rows.append({"image_id": f"objects/{len(rows):03d}", "uri": uri, **who, **wears})
    return rows


def objects() -> list[Entry]:
    """One row per picture and thing in it, whole or glimpsed, as `Dataset.objects` has them."""
    things = list[Entry]()
    for row, item in product(people(), WORN):
        if item in row["worn"].split("+"):
            size = area(item, glimpsed=item in row["glimpsed"].split("+"))
            things.append({"image_id": row["image_id"], "concept": item, "instances": 1, "area": size, "names": [item]})
    return things
