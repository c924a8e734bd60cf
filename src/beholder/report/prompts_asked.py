"""What was asked: the prompts of a chapter, word by word, and of how many images."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.core.record import Record
from beholder.prompts.prompt_set import NAMES_LEVEL

FEW = 12
"""Prompts of one level that are shown; the file has them all."""


class Asked(NamedTuple):
    """A level of a prompt set: its prompts compete with each other."""

    name: str
    number: int
    texts: list[str]
    more: int


def prompts_asked(prompts: pl.DataFrame, study: str, dataset: str) -> list[Asked]:
    """Set by set and level by level; sets with the same prompts are listed together, and nobody's name is."""
    levels: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for (name, level), part in prompts.filter(study=study, dataset=dataset).group_by(
        "set", "level", maintain_order=True
    ):
        levels.setdefault(tuple(part["text"]), []).append((str(name or ""), str(level or "")))
    return [_asked(named, texts) for texts, named in levels.items()]


def _asked(named: list[tuple[str, str]], texts: tuple[str, ...]) -> Asked:
    shown = [] if named[0][1] == NAMES_LEVEL else list(texts[:FEW])
    names = [": ".join(filter(None, pair)) for pair in named]
    return Asked(", ".join(names), len(texts), shown, len(texts) - len(shown) if shown else 0)


def images_of(record: Record, dataset: str) -> str:
    """How many images a data set gave: `200 of 845`; nothing where the record does not say."""
    entry = next((each for each in record.datasets if each.get("name") == dataset), {})
    images, whole = entry.get("images"), entry.get("of")
    if images is None:
        return ""
    return f"{images:,}" if whole in (None, images) else f"{images:,} of {whole:,}"
