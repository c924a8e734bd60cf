"""Concepts and their words: two tables that come with the study and that a user can replace.

`ambiguous.csv` gives clearer words for synsets whose bare word usually means something else. `same_concepts.csv` says
which concepts of two data sets are the same, sense by sense: `necktie.n.01` is COCO's *tie*, `tie.n.02` is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from beholder.core.tables import read_table
from beholder.prompts.templates import refuse_repeated, text_columns

SYNSET = re.compile(r"(?P<lemma>.+)\.(?P<kind>[nvasr])\.(?P<sense>\d+)")
Words = Mapping[str, str]
"""Words by concept."""


def read_ambiguous(path: Path) -> dict[str, str]:
    """Clearer words by concept: a table with the columns `concept` and `words`."""
    table = text_columns(read_table(path), ["concept", "words"], path).select("concept", "words")
    refuse_repeated(table["concept"], "concept", path)
    return dict(table.iter_rows())


def read_same_concepts(path: Path) -> dict[str, str]:
    """A concept of one data set and the one of another that is the same: columns `concept` and `same_as`.

    Each may occur once: a concept is one row of a comparison.
    """
    table = text_columns(read_table(path), ["concept", "same_as"], path).select("concept", "same_as")
    for column in ("concept", "same_as"):
        refuse_repeated(table[column], "concept", path)
    return dict(table.iter_rows())


AMBIGUOUS = read_ambiguous(Path(__file__).with_name("ambiguous.csv"))
"""The study's two printed examples; its whole table is not public."""
SAME_CONCEPTS = read_same_concepts(Path(__file__).with_name("same_concepts.csv"))
"""WordNet's synsets of COCO's categories."""


def concept_name(concept: str, ambiguous: Words = AMBIGUOUS) -> str:
    """The words of a concept, separated by blanks.

    >>> concept_name("dining table"), concept_name("tennis_racket.n.01"), concept_name("knob.n.02")
    ('dining table', 'tennis racket', 'knob handle')
    """
    if concept in ambiguous:
        return ambiguous[concept]
    synset = SYNSET.fullmatch(concept)
    return " ".join((synset["lemma"] if synset else concept).replace("_", " ").split())
