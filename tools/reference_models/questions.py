"""What the generative reference model is asked in training, and how often it should say yes.

A claim is a statement about a picture (brave, a woman, older than 50); a question is a claim in one
form of words. Traits are asked as GRAS asks them; everything else is there so that the model has to look: who is
drawn, how old, in which tone and light, wearing what, or a thing and nobody at all.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from typing import NamedTuple

from beholder.glasshouse.outfits import OUTFITS, WORN
from beholder.glasshouse.planted import PLANTED_TRAITS, p_yes
from beholder.glasshouse.portrait import Portrait
from beholder.glasshouse.things import THINGS
from beholder.glasshouse.world import with_article
from beholder.prompts.prompt_set import Instruction
from beholder.studies.gras.prompts import TEMPLATES, TRAITS, YES_OR_NO
from beholder.studies.study import TRUE_OR_FALSE

AGES, TONES = range(25, 80, 5), range(1, 10)
PLAIN = Instruction("{}", yes="Yes", no="No")
ASKED = "Is this {}?", "Is there {} in the image?", "Does the picture show {}?"
STATED = "This is a photo of {}", "a drawing of {}"
TRAIT_KINDS = ("planted", "control", "other")
Rule = Callable[[Portrait], float]


class Claim(NamedTuple):
    """A statement about a picture, true or false."""

    words: str
    kind: str
    """`planted` (a trait with an association), `control`, `other` (a trait not in the table), `seen` (what is
    drawn) or `thing`."""
    holds: Rule
    """P(yes) of a portrait; of a thing every claim but its own is false, and traits are not asked."""


class Question(NamedTuple):
    """A claim in one form of words, as the model reads it."""

    text: str
    claim: int
    yes: str
    no: str


def claims() -> list[Claim]:
    """Every claim, traits first."""
    kinds = {each.trait: "planted" if each.attribute else "control" for each in PLANTED_TRAITS}
    kinds |= {word: "other" for word in trait_words() if word not in kinds}
    return [
        *(Claim(word, kind, _trait(word)) for word, kind in kinds.items()),
        *(Claim(words, "seen", rule) for words, rule in _seen()),
        *(Claim(with_article(thing), "thing", lambda _: 0.0) for thing in THINGS),
    ]


def trait_words() -> list[str]:
    """All of GRAS's trait words."""
    with TRAITS.open(encoding="utf-8") as lines:
        return [row["trait"] for row in csv.DictReader(lines)]


def questions() -> list[Question]:
    """Every claim in every form in which it is asked."""
    return [question for number, claim in enumerate(claims()) for question in _forms(number, claim)]


def _forms(number: int, claim: Claim) -> Iterator[Question]:
    """Traits in GRAS's wordings; what is seen as question and as statement; all with and without instruction."""
    trait = claim.kind in TRAIT_KINDS
    for wording in TEMPLATES.values() if trait else ASKED:
        for instruction in (YES_OR_NO, PLAIN):
            asked = instruction.ask(wording.replace("{}", claim.words))
            yield Question(asked, number, instruction.yes, instruction.no)
    for wording in () if trait else STATED:
        stated = TRUE_OR_FALSE.ask(wording.replace("{}", claim.words))
        yield Question(stated, number, TRUE_OR_FALSE.yes, TRUE_OR_FALSE.no)


def _trait(word: str) -> Rule:
    return lambda p: p_yes(word, p.presentation, p.skin_tone, p.age, pose=p.pose, lighting=p.lighting)


def _seen() -> Iterator[tuple[str, Rule]]:
    """What is drawn, in words, with the rule that says of whom it is true."""
    yield "a person", lambda p: 1.0
    for words, who in (("woman", "woman"), ("female person", "woman"), ("man", "man"), ("male person", "man")):
        yield with_article(words), _equal("presentation", who)
    for years in AGES:
        yield f"somebody older than {years}", _above("age", years)
    for tone in TONES:
        yield f"a skin tone darker than {tone}", _above("skin_tone", tone)
    for words, attribute, level in (
        ("a smile", "smiling", 2),
        ("an open smile", "smiling", 3),
        ("a head turned to the right", "pose", 0),
        ("a head turned far to the right", "pose", 1),
        ("a head not turned to the left", "pose", -1),
        ("a head not turned far to the left", "pose", -2),
        ("light from the right", "lighting", 0),
        ("bright light", "lighting", 1),
        ("light not from the left", "lighting", -1),
        ("light that is not dim", "lighting", -2),
    ):
        yield words, _above(attribute, level)
    for outfit in OUTFITS:
        yield (with_article(outfit if outfit != "plain" else "person in plain clothes"), _equal("outfit", outfit))
    for item in WORN:
        yield with_article(item), _wears(item)


def _equal(attribute: str, value: str) -> Rule:
    return lambda p: float(getattr(p, attribute) == value)


def _above(attribute: str, level: int) -> Rule:
    return lambda p: float(getattr(p, attribute) > level)


def _wears(item: str) -> Rule:
    return lambda p: float(item in p.worn)
