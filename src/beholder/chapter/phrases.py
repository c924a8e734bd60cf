"""Words that sentences of every chapter need: counts, lists, groups, pictures."""

from __future__ import annotations

from collections.abc import Sequence

from beholder.chapter.numbers import Result

GROUPS = {"woman": "women", "man": "men"}
"""Groups whose plural is known."""
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def count(number: int) -> str:
    """Small numbers as words."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else str(number)


def number(count: int, one: str, several: str = "") -> str:
    """A count with its noun (and verb), in the singular for one.

    >>> number(1, "number differs", "numbers differ"), number(1400, "image")
    ('1 number differs', '1,400 images')
    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(group: str) -> str:
    """The people of a group, as far as their plural is known.

    >>> plural("woman"), plural("60 and over")
    ('women', '60 and over')
    """
    return GROUPS.get(group, group)


def drawn(dataset: str) -> bool:
    """Whether the pictures are drawings of nobody."""
    return dataset.startswith("glasshouse")


def picture(row: Result) -> str:
    """What the model was shown."""
    return "drawing" if drawn(row["dataset"]) else "photograph"
