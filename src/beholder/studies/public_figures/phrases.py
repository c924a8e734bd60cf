"""Words for branches, pools and occupations, as a sentence needs them. About models, never about individuals."""

from __future__ import annotations

import math

import polars as pl

from beholder.chapter.finding import deciding_rows, metric_rows
from beholder.chapter.numbers import Result, chance
from beholder.comparison import DIFFERENCE
from beholder.core.results import WITHIN
from beholder.glasshouse.world import BRANCH_OCCUPATIONS

OCCUPATIONS = {"politicians": "politician", "athletes": "athlete", **BRANCH_OCCUPATIONS}
"""The right answer at the occupation level, by pool."""
PLAYERS = {"woman": "actress", "man": "actor"}
"""The right answer for the pool of actors, which depends on the gender in the source's table."""
PLAYERS_PLURAL = {"woman": "actresses", "man": "actors"}
WORD_PAIRS = (("actor", "actress"),)
"""Occupations whose word depends on the gender: who is called by the other one is not called something else."""
BRANCHES = {
    "actors": "an actor or actress",
    "athletes": "an athlete",
    "house": "a member of the House",
    "senate": "a senator",
    "mayors": "a mayor",
    **{branch: f"a {occupation}" for branch, occupation in BRANCH_OCCUPATIONS.items()},
}
PEOPLE = {"house": "House members", "senate": "senators", "known": "known residents"}
FIELDS = {"politicians": "in politics", "athletes": "in sports"}
SPECIALTIES = {
    "actors": "award descriptions",
    "athletes": "sports",
    "house": "offices",
    "senate": "offices",
    "mayors": "offices",
}


def someone(branch: str) -> str:
    """A person of a branch: `a senator`."""
    return BRANCHES.get(branch, f"someone of “{branch}”")


def people(branch: str) -> str:
    """The people of a branch: `senators`."""
    return PEOPLE.get(branch, branch)


def field(pool: str) -> str:
    """Where the people of a pool work: `in politics`.

    >>> field("politicians"), field("doctors")
    ('in politics', 'among the doctors')
    """
    return FIELDS.get(pool, f"among the {pool}")


def specialties(branch: str) -> str:
    """The options at the specialty level."""
    return SPECIALTIES.get(branch, "specialties")


def correct_occupation(pool: str, group: str) -> str:
    """The right answer at the occupation level; for actors it depends on the gender word.

    >>> correct_occupation("actors", "woman"), correct_occupation("athletes", "woman")
    ('actress', 'athlete')
    """
    return PLAYERS.get(group, "actor") if pool == "actors" else OCCUPATIONS.get(pool, pool)


def word_pair(word: str) -> tuple[str, str] | None:
    """Both words of an occupation whose word depends on the gender."""
    return next((pair for pair in WORD_PAIRS if word in pair), None)


def either_word(occupation: str) -> str:
    """An occupation by all its words.

    >>> either_word("actress"), either_word("teacher")
    ('actor or actress', 'teacher')
    """
    return " or ".join(word_pair(occupation) or (occupation,))


# What the sentences, tables and charts about public figures ask of the results

PUBLISHED_ON = "apa"
"""The data set of the published figures."""


def found(row: Result) -> bool:
    """Whether the comparison found a difference."""
    return row.get("verdict") == DIFFERENCE


def within_branches(row: Result) -> bool:
    """Whether a number was taken within branches, or within one, beside the published one."""
    return str(row.get("variant") or "").startswith(WITHIN)


def claimed_ratios(part: pl.DataFrame) -> list[Result]:
    """The ratio of each pool of which something is claimed, within branches where there are several.

    Where the right word depends on the gender, it is that of either word.
    """
    decided = {row["subset"]: row for row in deciding_rows(part, "bias_ratio").to_dicts()}
    decided |= {row["subset"]: row for row in deciding_rows(part, "either_word_ratio").to_dicts()}
    return [decided[pool] for pool in dict.fromkeys(metric_rows(part, "bias_ratio")["subset"])]


def found_ratios(part: pl.DataFrame) -> list[Result]:
    """The claimed ratios that differ from 1."""
    return [row for row in claimed_ratios(part) if found(row)]


def reference(row: Result) -> float | None:
    """What a model would get that knows no more than the labels: the row's landmark, else chance."""
    landmark = row.get("landmark")
    return landmark if landmark is not None else chance(row)


def times_landmark(value: float, landmark: float | None) -> float:
    """How many times the landmark; a share of 0 is 1 time a landmark of 0.

    >>> times_landmark(0.3, 0.1), times_landmark(0.0, 0.0)
    (2.9999999999999996, 1.0)
    """
    if landmark:
        return value / landmark
    return math.inf if value else 1.0
