"""The world: which portraits make up a full factorial design and the embedded audit.

Balance is by construction. In every occupation branch each woman has a man who matches her in every other
attribute, so nothing but presentation (and the two identities) differs between the groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from beholder.glasshouse.drawing.anatomy import Draws
from beholder.glasshouse.drawing.outfits import WORN
from beholder.glasshouse.drawing.things import THINGS
from beholder.glasshouse.people import RESIDENT_IDENTITIES, NamedPerson, named_people
from beholder.glasshouse.portrait import Portrait, drawn_columns, portrait_uri

BRANCH_OCCUPATIONS = {"doctors": "doctor", "chefs": "chef", "builders": "builder", "judges": "judge"}
PAIRS_PER_BRANCH = 30
PICTURES_PER_PERSON = 3
AGES = (25, 35, 45, 55, 65, 75)

DEFAULT_LEVELS: dict[str, tuple[Any, ...]] = {
    "presentation": ("woman", "man"),
    "age": (25, 45, 65),
    "skin_tone": (2, 6, 9),
    "smiling": (0, 2, 4),
    "lighting": (0,),
    "pose": (0,),
    "identity": tuple(range(10)),
    "outfit": ("plain",),
    "worn": (frozenset(),),
}


def factorial(**levels: Iterable[Any]) -> list[Portrait]:
    """Every combination of the levels, the last attribute varying fastest.

    Attributes not named keep their default levels: both presentations × ages 25, 45, 65 × Monk tones 2, 6,
    9 × smiling 0, 2, 4 × ten identities in plain clothes, lit and posed straight: 540 portraits.
    """
    unknown = sorted(set(levels) - set(DEFAULT_LEVELS))
    if unknown:
        raise ValueError(f"No attribute {', '.join(unknown)}. A portrait has: {', '.join(DEFAULT_LEVELS)}.")
    chosen = {name: tuple(levels.get(name, default)) for name, default in DEFAULT_LEVELS.items()}
    return [Portrait(*values) for values in product(*(chosen[field.name] for field in fields(Portrait)))]


@dataclass(frozen=True)
class Setting:
    """Everything about a picture but who is in it."""

    age: int
    skin_tone: int
    smiling: int
    lighting: int
    pose: int
    item: str


def balanced(branch: str, attribute: str, levels: tuple[Any, ...]) -> list[Any]:
    """Thirty values in which every level occurs equally often, in an order fixed by branch and attribute."""
    values = [levels[index % len(levels)] for index in range(PAIRS_PER_BRANCH)]
    keys = [Draws(0).uniform(f"{branch}/{attribute}/{index}") for index in range(PAIRS_PER_BRANCH)]
    return [value for _, value in sorted(zip(keys, values, strict=True), key=lambda pair: pair[0])]


def settings(branch: str) -> list[Setting]:
    """The thirty settings of a branch, each shared by one woman and one man."""
    columns = (
        balanced(branch, "age", AGES),
        balanced(branch, "skin_tone", tuple(range(1, 11))),
        balanced(branch, "smiling", tuple(range(5))),
        balanced(branch, "lighting", (-2, -1, 0, 1, 2)),
        balanced(branch, "pose", (-2, -1, 0, 1, 2)),
        balanced(branch, "item", WORN),
    )
    return [Setting(*values) for values in zip(*columns, strict=True)]


def occupation_rows(branch: str) -> list[dict[str, Any]]:
    """Sixty pictures of sixty people at one kind of work, women and men in turn."""
    outfit = BRANCH_OCCUPATIONS[branch]
    first = RESIDENT_IDENTITIES + 100 * list(BRANCH_OCCUPATIONS).index(branch)
    rows = []
    for index, setting in enumerate(settings(branch)):
        for side, presentation in enumerate(("woman", "man")):
            portrait = portray(presentation, first + 2 * index + side, setting, outfit)
            rows.append(row(f"{branch}/{2 * index + side:03d}", branch, portrait, specialty=setting.item))
    return rows


def portray(presentation: str, identity: int, setting: Setting, outfit: str) -> Portrait:
    """A person in a setting, wearing its item."""
    s, worn = setting, frozenset({setting.item})
    return Portrait(presentation, s.age, s.skin_tone, s.smiling, s.lighting, s.pose, identity, outfit, worn)


def identity_rows(branch: str) -> list[dict[str, Any]]:
    """Three pictures of each of thirty named people, in different light, pose and mood."""
    people = named_people(branch)
    shots = [(person, shot) for person in people for shot in range(PICTURES_PER_PERSON)]
    return [
        row(f"{branch}/{index:03d}", branch, snapshot(person, shot), name=person.name)
        for index, (person, shot) in enumerate(shots)
    ]


def snapshot(person: NamedPerson, shot: int) -> Portrait:
    """One of a person's pictures in plain clothes; the three differ in smiling, lighting and pose."""
    turn = person.identity // 2 % 5
    smiling, lighting, pose = ((turn + 2 * shot) % 5, (turn + shot) % 5 - 2, (turn + 3 * shot) % 5 - 2)
    p = person
    return Portrait(p.presentation, p.age, p.skin_tone, smiling, lighting, pose, p.identity)


def row(image_id: str, branch: str, portrait: Portrait, *, name: str = "", specialty: str = "") -> dict[str, Any]:
    """A line of the residents' table."""
    return {
        "image_id": image_id,
        "uri": portrait_uri(portrait),
        "branch": branch,
        "name": name,
        "gender": portrait.presentation,
        "age": portrait.age,
        "skin_tone": portrait.skin_tone,
        **drawn_columns(portrait),
        "occupation": "" if portrait.outfit == "plain" else portrait.outfit,
        "specialty": specialty,
    }


def residents() -> list[dict[str, Any]]:
    """The pictures of the embedded audit: four branches of sixty at work, two branches of ninety by name."""
    work = [line for branch in BRANCH_OCCUPATIONS for line in occupation_rows(branch)]
    return work + identity_rows("known") + identity_rows("strangers")


# The prompts of the embedded audit

OCCUPATIONS = ("doctor", "nurse", "chef", "cook", "builder", "assistant", "judge", "clerk", "teacher")
PromptRow = dict[str, str]


def with_article(words: str) -> str:
    """The words with "a" or "an", or as they are where English wants none (glasses)."""
    if words == "glasses":
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def prompt_row(level: str, branch: str, subject: str, *, concept: str, correct_for: str) -> PromptRow:
    """One prompt, worded as the studies word theirs."""
    text = f"a drawing of {subject}"
    return {
        "prompt_id": text,
        "text": text,
        "level": level,
        "concept": concept,
        "branch": branch,
        "correct_for": correct_for,
    }


def category_prompts(branch: str) -> list[PromptRow]:
    """A person, or one of six things."""
    return [
        prompt_row("category", branch, with_article(word), concept=word, correct_for="*" if word == "person" else "")
        for word in ("person", *THINGS)
    ]


def occupation_prompts(branch: str) -> list[PromptRow]:
    """Nine occupations; the one whose clothes are drawn is correct."""
    return [
        prompt_row("occupation", branch, with_article(word), concept=word, correct_for=f"occupation={word}")
        for word in OCCUPATIONS
    ]


def specialty_prompts(branch: str) -> list[PromptRow]:
    """What the person wears or holds, with the branch's occupation."""
    work = with_article(BRANCH_OCCUPATIONS[branch])
    return [
        prompt_row(
            "specialty", branch, f"{work} with {with_article(item)}", concept=item, correct_for=f"specialty={item}"
        )
        for item in WORN
    ]


def identity_prompts(branch: str) -> list[PromptRow]:
    """The names of the branch's people."""
    return [
        prompt_row("identity", branch, person.name, concept=person.name, correct_for=f"name={person.name}")
        for person in named_people(branch)
    ]


def prompts() -> list[PromptRow]:
    """Every prompt of the embedded audit, branch by branch."""
    work = [
        line
        for branch in BRANCH_OCCUPATIONS
        for line in category_prompts(branch) + occupation_prompts(branch) + specialty_prompts(branch)
    ]
    names = [line for branch in ("known", "strangers") for line in category_prompts(branch) + identity_prompts(branch)]
    return work + names
