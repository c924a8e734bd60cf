"""Who and what is counted: the people of APA by name, and the words of its three levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl

from beholder.datasets.dataset import Dataset
from beholder.studies.apa.prompts import CATEGORIES, OCCUPATIONS, OFFICES, SPORTS
from beholder.studies.exposure.mentions import Term, Words, sequences_within, words_of

NAME = "name"
LEVEL_WORDS = {
    "category": CATEGORIES,
    "occupation": OCCUPATIONS,
    "specialty": (*OFFICES, *(player.lower() for player in SPORTS.values())),
}
"""The specialties of actors are awards in whole clauses, which no caption contains; they are not counted."""
WORD_TERMS = [Term(level, word) for level, words in LEVEL_WORDS.items() for word in words]
SHARED, WITHIN, ONE_WORD = ("shared with another person", "part of a longer name", "one word, which may mean others")


def people_table(dataset: Dataset) -> pl.DataFrame:
    """A row for every person of every branch: `branch, name, gender`, and why the name is ambiguous, if it is.

    A person with two photographs in one branch is one person; one name in two branches may be two.
    """
    people = dataset.table.select("branch", "name", "gender").unique(["branch", "name"], maintain_order=True)
    return people.with_columns(ambiguous=pl.Series(_ambiguous(people[NAME].to_list()), dtype=pl.String))


def _ambiguous(names: list[str]) -> list[str | None]:
    """For each name, why captions that contain it may mean someone else."""
    split = [tuple(words_of(name)) for name in names]
    often = Counter(split)
    within = {inner for words in often for inner in sequences_within(words)}

    def reasons(words: Words) -> Iterator[str]:
        if often[words] > 1:
            yield SHARED
        if words in within:
            yield WITHIN
        if len(words) == 1:
            yield ONE_WORD

    return ["; ".join(reasons(words)) or None for words in split]
