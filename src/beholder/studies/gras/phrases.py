"""GRAS's attributes, groups, wordings and scores as text.

Groups are labels that annotators or a classifier gave to pictures; they keep the names that the data gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from beholder.chapter.numbers import ABSENT, Result
from beholder.chapter.phrases import listed
from beholder.core.results import WITHIN
from beholder.studies.gras.prompts import TEMPLATES


def attribute_name(attribute: str) -> str:
    """As a sentence has it.

    >>> attribute_name("skin_tone")
    'skin tone'
    """
    return attribute.replace("_", " ")


def attribute_names(attributes: Iterable[str]) -> str:
    """Several of them: `gender, race and age`."""
    return listed([attribute_name(attribute) for attribute in attributes])


def group_name(group: str, attribute: str) -> str:
    """A group as the data names it; a skin tone with its scale.

    >>> group_name("6", "skin_tone"), group_name("2 or more races", "race")
    ('MST 6', '2 or more races')
    """
    return f"MST {group}" if attribute == "skin_tone" and group.isdecimal() else group


ENDS = {"age": ("younger", "older"), "skin_tone": ("lighter", "darker")}
"""The two ends of an attribute whose groups are numbers."""


def sides(groups: list[str], attribute: str) -> tuple[dict[str, int], tuple[str, str]]:
    """The order of an attribute's groups, and a word for either end of it; no words where they have no order.

    >>> sides(["3-9", "10-19", "more than 70"], "age")
    ({'3-9': 3, '10-19': 10, 'more than 70': 70}, ('younger', 'older'))
    >>> sides(["man", "woman"], "gender")[1], sides(["Black", "Indian", "White"], "race")[1]
    (('man', 'woman'), ('', ''))
    """
    numbers = {group: int(found[0]) for group in groups if (found := re.search(r"\d+", group))}
    if len(groups) == 2:
        first, second = groups
        return {first: 0, second: 1}, (first, second)
    ordered = attribute in ENDS and len(numbers) == len(set(numbers.values())) == len(groups)
    return (numbers, ENDS[attribute]) if ordered else ({}, ("", ""))


def pair_names(row: Result) -> tuple[str, str]:
    """The higher and the lower group of a gap; dashes where the row names none."""
    higher, lower = (
        ABSENT if row[end] is None else group_name(row[end], row["subset"]) for end in ("group", "against")
    )
    return higher, lower


def pair_text(row: Result) -> str:
    """The two groups of a gap in a line.

    >>> pair_text({"group": "60 and over", "against": "under 60", "subset": "age", "value": 0.1})
    '60 and over higher than under 60'
    """
    higher, lower = pair_names(row)
    return f"{higher} higher than {lower}" if row["value"] else "no group is higher"


def within(row: Result) -> str:
    """Within which labels, or which stratum, a difference was judged; empty where without any.

    >>> within({"variant": "within source, race; statement against denial"}), within({"variant": None})
    (' within source, race', '')
    """
    variant = row["variant"] or ""
    return f" {variant.split(';')[0].replace('skin_tone', 'skin tone')}" if variant.startswith(WITHIN) else ""


def wording(template: str) -> str:
    """A template in its own words, where it is the study's."""
    return TEMPLATES.get(template, "").replace("{}", "…")


def score(value: float | None) -> str:
    """A score of 100: as many decimals as the study prints, none where they are 0.

    >>> score(98.25), score(99.0), score(21.333)
    ('98.25', '99', '21.3')
    """
    if value is None:
        return ABSENT
    quarters = abs(4 * value - round(4 * value)) < 1e-9  # four attributes of 100 traits
    return f"{value:.2f}".rstrip("0").rstrip(".") if quarters else f"{value:.1f}"


def expected_text(row: Result) -> str:
    """What shuffled labels give, where the row says so; no count is printed alone.

    >>> expected_text({"expected": 21.4}), expected_text({"expected": None})
    ('21 with shuffled labels', '')
    """
    return "" if row["expected"] is None else f"{row['expected']:.0f} with shuffled labels"
