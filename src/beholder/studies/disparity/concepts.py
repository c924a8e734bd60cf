"""Concepts as words: the words for a category or a WordNet synset, with other words for ambiguous synsets."""

from __future__ import annotations

import re

SYNSET = re.compile(r"(?P<lemma>.+)\.(?P<kind>[nvasr])\.(?P<sense>\d+)")
AMBIGUOUS = {"knob.n.02": "knob handle", "helmet.n.02": "protective helmet"}
"""Synsets whose bare word usually means something else, with clearer words. These two are the study's printed
examples; its whole table is not public."""


def concept_name(concept: str) -> str:
    """The words of a concept, separated by blanks.

    >>> concept_name("dining table"), concept_name("tennis_racket.n.01"), concept_name("knob.n.02")
    ('dining table', 'tennis racket', 'knob handle')
    """
    if concept in AMBIGUOUS:
        return AMBIGUOUS[concept]
    synset = SYNSET.fullmatch(concept)
    return " ".join((synset["lemma"] if synset else concept).replace("_", " ").split())
