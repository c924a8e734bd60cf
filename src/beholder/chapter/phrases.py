"""Words for branches, pools, levels and groups, as a sentence needs them. About models, never about individuals."""

from __future__ import annotations

from beholder.chapter.numbers import Result

LEVELS = ("category", "occupation", "specialty")
GROUPS = {"woman": "women", "man": "men"}
BRANCHES = {
    "actors": "an actor or actress",
    "athletes": "an athlete",
    "house": "a member of the House",
    "senate": "a senator",
    "mayors": "a mayor",
}
PEOPLE = {"house": "House members", "senate": "senators", "known": "known residents"}
SPECIALTIES = {
    "actors": "award descriptions",
    "athletes": "sports",
    "house": "offices",
    "senate": "offices",
    "mayors": "offices",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def count(number: int) -> str:
    """Small numbers as words."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else str(number)


def listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def singular(pool: str) -> str:
    """The occupation a pool is named after.

    >>> singular("politicians")
    'politician'
    """
    return pool.removesuffix("s")


def drawn(dataset: str) -> bool:
    """Whether the pictures are drawings of nobody."""
    return dataset.startswith("glasshouse")


def picture(row: Result) -> str:
    """What the model was shown."""
    return "drawing" if drawn(row["dataset"]) else "photograph"


def someone(branch: str) -> str:
    """Who is shown in a branch: `a senator`."""
    if branch in BRANCHES:
        return BRANCHES[branch]
    word = singular(branch)
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


def people(branch: str) -> str:
    """The people of a branch: `senators`."""
    return PEOPLE.get(branch, branch)


def specialties(branch: str) -> str:
    """What is chosen among at the specialty level."""
    return SPECIALTIES.get(branch, "specialties")


def correct_occupation(pool: str, group: str) -> str:
    """The right answer at the occupation level; for actors it depends on the gender word.

    >>> correct_occupation("actors", "woman"), correct_occupation("athletes", "woman")
    ('actress', 'athlete')
    """
    return {"woman": "actress", "man": "actor"}.get(group, "actor") if pool == "actors" else singular(pool)
