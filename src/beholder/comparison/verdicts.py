"""Verdicts: the five things that can be said about a difference, and the one rule that decides between them."""

from __future__ import annotations

import math

DIFFERENCE, NONE_FOUND, TOO_LITTLE, FACT, NOT_MEASURED = VERDICTS = (
    "difference found",
    "none found",
    "too little data",
    "fact",
    "not measured",
)
SIGNS = dict(zip(VERDICTS, "●○△■–", strict=True))
"""A shape for every verdict, so that it is told apart without colour."""
ALPHA = 0.05
"""A p-value for the whole family up to this is a difference found."""
FEWEST = 5
"""People below whom nothing is said of a group."""
FEWEST_ARRANGEMENTS = 40
"""With fewer arrangements of the labels no p-value is small enough to mean anything."""


def verdict_of(p_value: float | None, people: int, arrangements: float = math.inf) -> str:
    """What a test says; `people` are those of the smallest group.

    >>> verdict_of(0.01, 30), verdict_of(0.2, 30), verdict_of(0.01, 4), verdict_of(None, 30)
    ('difference found', 'none found', 'too little data', 'too little data')
    """
    if people < FEWEST or arrangements < FEWEST_ARRANGEMENTS or p_value is None or math.isnan(p_value):
        return TOO_LITTLE
    return DIFFERENCE if p_value <= ALPHA else NONE_FOUND
