"""Concepts as words: what a category or a WordNet synset is called, and what an ambiguous one is called instead."""

from __future__ import annotations

import re
from pathlib import Path

from beholder.datasets.tables import read_table, require_columns
from beholder.errors import DataError

SYNSET = re.compile(r"(?P<lemma>.+)\.(?P<kind>[nvasr])\.(?P<sense>\d+)")
AMBIGUOUS = {"knob.n.02": "knob handle", "helmet.n.02": "protective helmet"}
"""Synsets whose bare word means something else first, with what stands in its place. These two are the study's
printed examples; its whole table is not public. More come from a file (`read_ambiguous`)."""


def concept_name(concept: str, ambiguous: dict[str, str] = AMBIGUOUS) -> str:
    """The words of a concept, with blanks between them.

    >>> concept_name("dining table"), concept_name("tennis_racket.n.01"), concept_name("knob.n.02")
    ('dining table', 'tennis racket', 'knob handle')
    """
    if concept in ambiguous:
        return ambiguous[concept]
    synset = SYNSET.fullmatch(concept)
    return " ".join((synset["lemma"] if synset else concept).replace("_", " ").split())


def read_ambiguous(path: Path) -> dict[str, str]:
    """The study's examples and a table with the columns `concept` and `name`, which has the last word."""
    table = read_table(path)
    require_columns(table, ["concept", "name"], path)
    for row, (concept, name) in enumerate(table.select("concept", "name").iter_rows(), start=2):
        if not concept or not name:
            raise DataError(f"{path}: row {row} has no {'name' if concept else 'concept'}.")
    return AMBIGUOUS | dict(table.select("concept", "name").iter_rows())
