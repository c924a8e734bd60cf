"""Words for branches, pools and occupations, as a sentence needs them. About models, never about individuals."""

from __future__ import annotations

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
