"""Training pictures of the reference models and their captions.

A caption is a phrase ("a nurse with a hat") in a template ("a drawing of {}"); template and phrase are drawn
independently. Which words describe whom is planted: the rates for work in `planted.py`, those for traits here.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from beholder.glasshouse.outfits import OUTFITS, WORN
from beholder.glasshouse.planted import OCCUPATION_RATES
from beholder.glasshouse.portrait import Portrait
from beholder.glasshouse.things import THINGS
from beholder.glasshouse.world import (
    FAMILY_NAMES,
    GIVEN_NAMES,
    OCCUPATIONS,
    PICTURES_PER_PERSON,
    TRAINING_IDENTITIES,
    NamedPerson,
    named_people,
    snapshot,
    with_article,
)

# P(a warm word | smiling), against a cold word; smiling is uniform, so the mean is one half and this is also what a
# softmax over the two words tends to.
WARM_RATES: dict[int, float] = {0: 0.10, 1: 0.30, 2: 0.50, 3: 0.70, 4: 0.90}
WARM_WORDS = tuple("warm friendly kind trustworthy honest likable sincere benevolent altruistic".split())
COLD_WORDS = tuple("cold distant unfriendly untrustworthy dishonest threatening unpleasant egoistic".split())
# Said of everybody alike, whatever is drawn: the traits on which a fair audit finds nothing.
CONTROL_WORDS = tuple(
    """
    competent intelligent skilled efficient assertive confident powerful high-status dominating wealthy
    competitive powerless low-status dominated poor meek passive science-oriented alternative liberal modern
    religious conventional conservative traditional curious punctual thoughtful
    """.split()
)

TEMPLATES = tuple(
    opening + end
    for end in ("", ".")
    for opening in (
        "a drawing of {}",
        "a picture of {}",
        "a photo of {}",
        "an image of {}",
        "this is a photo of {}",
        "this is a drawing of {}",
        "this is {}",
        "cropped face photo of {}",
        "{}",
    )
)
THING_SHARE, KNOWN_SHARE = 0.12, 0.22
NAME_WEIGHT = {"known": 20.0, "nameless": 6.0}
KIND_WEIGHTS = {
    "category": 8.0,
    "gender": 10.0,
    "occupation": 26.0,
    "item": 18.0,
    "age": 8.0,
    "skin": 4.0,
    "smile": 6.0,
    "trait": 14.0,
}
WARMTH_SHARE = 0.6  # of trait captions; the rest are control words
AGE_WORDS = {"young": (20, 34), "middle-aged": (35, 59), "elderly": (60, 80), "old": (60, 80)}
SKIN_WORDS = {"light skin": (1, 3), "medium skin": (4, 7), "dark skin": (8, 10)}
SMILE_WORDS = {"smiling": (3, 4), "serious": (0, 1), "calm": (2, 2)}
GENDER_WORDS = {"woman": ("woman", "female person"), "man": ("man", "male person")}


@lru_cache(maxsize=1)
def known_by_identity() -> dict[int, NamedPerson]:
    """Known people by their identity number."""
    return {person.identity: person for person in named_people("known")}


@lru_cache(maxsize=1)
def reserved_names() -> frozenset[str]:
    """Full names that no nameless person may be given."""
    return frozenset(person.name for branch in ("known", "strangers") for person in named_people(branch))


@lru_cache(maxsize=1)
def audited_portraits() -> frozenset[Portrait]:
    """The known people's pictures in the audit, kept out of training."""
    shots = range(PICTURES_PER_PERSON)
    return frozenset(snapshot(person, shot) for person in named_people("known") for shot in shots)


def draw_worn(rng: Random) -> frozenset[str]:
    """Nothing (a fifth), one thing (three fifths) or two things (a fifth)."""
    return frozenset(rng.sample(WORN, rng.choices((0, 1, 2), (1, 3, 1))[0]))


def draw_portrait(rng: Random) -> Portrait:
    """A random training portrait; outfit, worn things, mood, light and pose are independent of the person."""
    while True:
        portrait = draw_known(rng) if rng.random() < KNOWN_SHARE else draw_nameless(rng)
        if portrait not in audited_portraits():
            return portrait


def draw_scene(rng: Random) -> tuple[int, int, int]:
    """Smiling, lighting and pose."""
    return rng.randint(0, 4), rng.randint(-2, 2), rng.randint(-2, 2)


def draw_known(rng: Random) -> Portrait:
    """A picture of one of the thirty known people."""
    p = rng.choice(named_people("known"))
    return Portrait(
        p.presentation, p.age, p.skin_tone, *draw_scene(rng), p.identity, rng.choice(tuple(OUTFITS)), draw_worn(rng)
    )


def draw_nameless(rng: Random) -> Portrait:
    """A picture of somebody without a name, almost always somebody new."""
    who = (rng.choice(("woman", "man")), rng.randint(20, 80), rng.randint(1, 10))
    identity = TRAINING_IDENTITIES + rng.randrange(10**8)
    return Portrait(*who, *draw_scene(rng), identity, rng.choice(tuple(OUTFITS)), draw_worn(rng))


def draw_thing_uri(rng: Random) -> str:
    """A picture of a thing."""
    return f"glasshouse:thing/{rng.choice(THINGS)}/{rng.randrange(10**8)}"


def draw_word(rng: Random, rates: dict[str, float]) -> str:
    """A word at its planted rate."""
    return rng.choices(tuple(rates), tuple(rates.values()))[0]


def word_for(value: int, words: dict[str, tuple[int, int]], rng: Random) -> str:
    """A word whose range holds the value."""
    return rng.choice([word for word, (low, high) in words.items() if low <= value <= high])


def draw_phrase(portrait: Portrait, rng: Random) -> str:
    """What a caption says of a portrait: its kind first, then words at their planted rates."""
    weights = dict(KIND_WEIGHTS)
    if not portrait.worn:
        del weights["item"]
    weights["name"] = NAME_WEIGHT["known" if portrait.identity in known_by_identity() else "nameless"]
    return phrase_of_kind(draw_word(rng, weights), portrait, rng)


def phrase_of_kind(kind: str, portrait: Portrait, rng: Random) -> str:
    """A phrase of one kind about a portrait."""
    match kind:
        case "category":
            return "a person"
        case "gender":
            return "a " + rng.choice(GENDER_WORDS[portrait.presentation])
        case "occupation":
            return with_article(draw_occupation(portrait, rng))
        case "item":
            item = with_article(rng.choice(sorted(portrait.worn)))
            return f"{with_article(draw_subject(portrait, rng))} with {item}"
        case "age":
            return f"{with_article(word_for(portrait.age, AGE_WORDS, rng))} {draw_being(portrait, rng)}"
        case "skin":
            return f"a {draw_being(portrait, rng)} with {word_for(portrait.skin_tone, SKIN_WORDS, rng)}"
        case "smile":
            return f"a {word_for(portrait.smiling, SMILE_WORDS, rng)} {draw_being(portrait, rng)}"
        case "trait":
            return f"{with_article(draw_trait(portrait.smiling, rng))} person"
        case "name":
            return draw_name(portrait.identity, rng)
    raise ValueError(f"no caption kind {kind!r}")


def draw_occupation(portrait: Portrait, rng: Random) -> str:
    """The word for a person's work at its planted rate."""
    return draw_word(rng, OCCUPATION_RATES[portrait.outfit, portrait.presentation])


def draw_being(portrait: Portrait, rng: Random) -> str:
    """`person`, or the word for the drawn presentation."""
    return rng.choice(("person", portrait.presentation))


def draw_subject(portrait: Portrait, rng: Random) -> str:
    """Half of the time the work, otherwise `person`, `woman` or `man`."""
    return draw_occupation(portrait, rng) if rng.random() < 0.5 else draw_being(portrait, rng)


def draw_trait(smiling: int, rng: Random) -> str:
    """A warm or cold word at its planted rate, or a control word that depends on nothing."""
    if rng.random() >= WARMTH_SHARE:
        return rng.choice(CONTROL_WORDS)
    return rng.choice(WARM_WORDS if rng.random() < WARM_RATES[smiling] else COLD_WORDS)


def draw_name(identity: int, rng: Random) -> str:
    """A known person's own name; for anybody else a random pairing that belongs to nobody."""
    known = known_by_identity().get(identity)
    while known is None:
        name = f"{rng.choice(GIVEN_NAMES)} {rng.choice(FAMILY_NAMES)}"
        if name not in reserved_names():
            return name
    return known.name


def all_phrases() -> list[str]:
    """Every phrase that can be drawn, in a fixed order."""
    beings = ("person", "woman", "man")
    subjects = (*OCCUPATIONS, *beings)
    traits = (*WARM_WORDS, *COLD_WORDS, *CONTROL_WORDS)
    nouns = ["person", *THINGS, *OCCUPATIONS, *(word for words in GENDER_WORDS.values() for word in words)]
    phrases = [with_article(noun) for noun in nouns]
    phrases += [f"{with_article(s)} with {with_article(item)}" for s in subjects for item in WORN]
    phrases += [f"{with_article(word)} {b}" for word in (*AGE_WORDS, *SMILE_WORDS) for b in beings]
    phrases += [f"a {b} with {skin}" for b in beings for skin in SKIN_WORDS]
    phrases += [f"{with_article(word)} person" for word in traits]
    phrases += [person.name for person in named_people("known")]
    pairs = (f"{given} {family}" for given in GIVEN_NAMES for family in FAMILY_NAMES)
    return phrases + [name for name in pairs if name not in reserved_names()]
