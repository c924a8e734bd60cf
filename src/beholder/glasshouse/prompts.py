"""The prompts of the embedded audit: category, occupation, specialty and identity, as data.

`correct_for` is a rule over an image's attributes: `*` always, `gender=woman&specialty=hat` a conjunction of
equalities, empty never. A text that is asked in several branches has one row in each.
"""

from __future__ import annotations

from beholder.glasshouse.drawing.outfits import WORN
from beholder.glasshouse.drawing.things import THINGS
from beholder.glasshouse.people import named_people
from beholder.glasshouse.world import BRANCH_OCCUPATIONS

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
