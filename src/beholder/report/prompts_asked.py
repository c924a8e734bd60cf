"""What was asked: the prompts of a chapter, word by word, and of how many images."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.core.record import Record

FEW = 12
"""Prompts of one level that are shown; the file has them all."""
NAMES = "/names"
"""How a set of people's names ends: the page reports on models and lists nobody."""


class Asked(NamedTuple):
    """A level of a prompt set: its prompts compete with each other."""

    name: str
    number: int
    texts: list[str]
    more: int


def prompts_asked(prompts: pl.DataFrame, benchmark: str, dataset: str) -> list[Asked]:
    """Set by set and level by level; sets that ask the same are listed together."""
    mine = prompts.filter(benchmark=benchmark, dataset=dataset)
    told: dict[tuple[str, ...], list[str]] = {}
    for (name, level), part in mine.group_by("set", "level", maintain_order=True):
        told.setdefault(tuple(part["text"]), []).append(": ".join(str(word) for word in (name, level) if word))
    return [_asked(names, texts) for texts, names in told.items()]


def _asked(names: list[str], texts: tuple[str, ...]) -> Asked:
    shown = [] if names[0].partition(":")[0].endswith(NAMES) else list(texts[:FEW])
    return Asked(", ".join(names), len(texts), shown, len(texts) - len(shown) if shown else 0)


def images_of(record: Record, dataset: str) -> str:
    """How many images a data set gave: `200 of 845`; nothing where the record does not say."""
    entry = next((each for each in record.datasets if each.get("name") == dataset), {})
    images, whole = entry.get("images"), entry.get("of")
    if images is None:
        return ""
    return f"{images:,}" if whole in (None, images) else f"{images:,} of {whole:,}"
