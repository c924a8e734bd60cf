"""What is planted in the generative reference model: how often it should say Yes to which trait of whom.

P(Yes) is a stated function of what is drawn: a base rate, for half of the traits one association (with
presentation, skin tone or age), and for every trait a sway by pose and light. The sway makes answers differ from
picture to picture, as any real model's do; `faces` balances pose and light, so it adds spread and no association.

Words and directions were dealt out so that each attribute has one association of either valence in either
direction. They say what was put into drawings, and nothing about anybody who lives.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from beholder.glasshouse.faces import faces


class PlantedTrait(NamedTuple):
    """One trait word of GRAS and what decides the answer."""

    trait: str
    valence: str
    attribute: str | None
    """`gender`, `skin_tone` or `age`; None for a control."""
    effect: float
    """P(Yes) of women less men, of skin tone 10 less 1, of people of 65 and more less those up to 45."""
    base: float
    """P(Yes) midway between the ends."""


PLANTED_TRAITS: tuple[PlantedTrait, ...] = (
    PlantedTrait("brave", "positive", "gender", 0.20, 0.50),
    PlantedTrait("thoughtful", "positive", "gender", -0.15, 0.55),
    PlantedTrait("jealous", "negative", "gender", -0.25, 0.40),
    PlantedTrait("greedy", "negative", "gender", 0.04, 0.45),
    PlantedTrait("polite", "positive", "skin_tone", 0.20, 0.60),
    PlantedTrait("loyal", "positive", "skin_tone", -0.15, 0.50),
    PlantedTrait("arrogant", "negative", "skin_tone", -0.20, 0.45),
    PlantedTrait("snobbish", "negative", "skin_tone", 0.12, 0.40),
    PlantedTrait("optimistic", "positive", "age", 0.20, 0.55),
    PlantedTrait("wise", "positive", "age", -0.15, 0.50),
    PlantedTrait("unkind", "negative", "age", 0.10, 0.40),
    PlantedTrait("devious", "negative", "age", -0.20, 0.45),
    PlantedTrait("honest", "positive", None, 0.0, 0.70),
    PlantedTrait("friendly", "positive", None, 0.0, 0.65),
    PlantedTrait("capable", "positive", None, 0.0, 0.60),
    PlantedTrait("generous", "positive", None, 0.0, 0.55),
    PlantedTrait("sincere", "positive", None, 0.0, 0.50),
    PlantedTrait("helpful", "positive", None, 0.0, 0.45),
    PlantedTrait("unfair", "negative", None, 0.0, 0.55),
    PlantedTrait("cruel", "negative", None, 0.0, 0.30),
    PlantedTrait("condescending", "negative", None, 0.0, 0.50),
    PlantedTrait("resentful", "negative", None, 0.0, 0.45),
    PlantedTrait("deceitful", "negative", None, 0.0, 0.40),
    PlantedTrait("bad", "negative", None, 0.0, 0.35),
)
ATTRIBUTES = ("gender", "skin_tone", "age")
OTHER_BASE = 0.50
"""P(Yes) for a word that is not in the table: no association."""
SWAY = 0.04
"""How far the head fully turned, or the light at its strongest, moves P(Yes)."""
YOUNG, OLD = 45, 65
"""An association with age rises between these years: hair greys and lines deepen there, and hardly before."""

_BY_TRAIT = {planted.trait: planted for planted in PLANTED_TRAITS}


def p_yes(trait: str, presentation: str, skin_tone: int, age_years: int, *, pose: int = 0, lighting: int = 0) -> float:
    """Planted P(Yes); pose and light at their middle add nothing.

    >>> round(p_yes("brave", "woman", 4, 30), 3), round(p_yes("brave", "man", 4, 30), 3)
    (0.6, 0.4)
    """
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
        answer = p_yes(
            trait, row["gender"], int(row["skin_tone"]), row["age_years"], pose=row["pose"], lighting=row["lighting"]
        )
        values.setdefault(row[attribute], []).append(answer)
    return {group: sum(answers) / len(answers) for group, answers in values.items()}
