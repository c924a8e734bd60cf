"""Steps: the filters between what a source holds and what is measured, each with what it leaves."""

from __future__ import annotations

import polars as pl


class Steps:
    """Filters in their order, as notes for the record."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.counts: list[int] = []

    def add(self, name: str, images: int) -> None:
        """A filter, and how many images are left after it."""
        self.counts.append(images)
        self.notes.append(f"step {len(self.counts)}, {name}: {images:,} images")

    def note(self, text: str) -> None:
        """Something to know between two steps."""
        self.notes.append(text)


def group_counts(table: pl.DataFrame, attribute: str) -> str:
    """How many images each group has.

    >>> group_counts(pl.DataFrame({"gender": ["man", "woman", "man"]}), "gender")
    'gender: man 2, woman 1'
    """
    counts = table[attribute].value_counts().sort(attribute)
    return f"{attribute}: " + ", ".join(f"{group} {count:,}" for group, count in counts.iter_rows())
