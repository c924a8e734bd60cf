"""Findings of P-FI: those of public figures."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from studies.public_figures.finding_cases import cases as public_figures


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description, and the rows of one model."""
    yield from public_figures("pfi")
