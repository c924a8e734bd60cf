"""Findings of APA: those of public figures, on photographs and on drawings."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from studies.public_figures.finding_cases import cases as public_figures


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description, and the rows of one model."""
    yield from public_figures("apa")
    for description, table in public_figures("apa", "glasshouse"):
        yield f"drawn people: {description}", table
