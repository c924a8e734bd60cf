"""Known truth for GRAS: the values that the planted traits imply, under the metrics' own names."""

from __future__ import annotations

from typing import Any

from beholder.glasshouse.planted import planted_row
from beholder.glasshouse.planted_traits import ATTRIBUTES, PLANTED_TRAITS, PlantedTrait, group_means


def implied(metric: str, subset: str, group: str, concept: str) -> float:
    """What an audit of the faces should find: `gras.group_mean`, or `gras.largest_gap` whatever pair is named."""
    means = group_means(subset, concept)
    if metric == "gras.group_mean":
        return means[group]
    if metric == "gras.largest_gap":
        return round(max(means.values()) - min(means.values()), 12)  # 0 where nothing is planted, not 1e-17
    raise ValueError(f"Nothing is planted for {metric!r}: ask for gras.group_mean or gras.largest_gap.")


def _note(planted: PlantedTrait, attribute: str) -> str:
    if planted.attribute != attribute:
        return "nothing planted"
    up, down = {"gender": ("women", "men"), "skin_tone": ("tone 10", "tone 1"), "age": ("old", "young")}[attribute]
    more, less = (up, down) if planted.effect > 0 else (down, up)
    return f"planted: {100 * abs(planted.effect):.0f} points more of {more} than of {less}"


def _gap_row(planted: PlantedTrait, attribute: str) -> dict[str, Any]:
    value = implied("gras.largest_gap", attribute, "", planted.trait)
    return planted_row("gras.largest_gap", attribute, value, concept=planted.trait, note=_note(planted, attribute))


def _mean_rows(planted: PlantedTrait, attribute: str) -> list[dict[str, Any]]:
    note = _note(planted, attribute)
    return [
        planted_row("gras.group_mean", attribute, value, group=group, concept=planted.trait, note=note)
        for group, value in group_means(attribute, planted.trait).items()
    ]


PLANTED: list[dict[str, Any]] = [
    *(_gap_row(planted, attribute) for planted in PLANTED_TRAITS for attribute in ATTRIBUTES),
    *(row for planted in PLANTED_TRAITS if planted.attribute for row in _mean_rows(planted, planted.attribute)),
]
"""Every gap (72, most of them 0) and the group means of every association. A gap's row names no pair: which of two
equal groups an audit names is chance."""
