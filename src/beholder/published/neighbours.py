"""Neighbours: what was published for other models under one of our metrics, in our unit.

Compare them with results on the study's own images only.
"""

from __future__ import annotations

import polars as pl

from beholder.published.ledger import printed_studies
from beholder.studies.printed import Source


def neighbours(metric: str, subset: str = "", *, group: str = "", concept: str = "") -> pl.DataFrame:
    """`model, value` of every published model; no row where nothing was published."""
    return pl.concat(
        [printed.neighbours(metric, subset, group=group, concept=concept) for _, printed in printed_studies()]
    )


def source_of(metric: str) -> Source | None:
    """The table that holds a metric's neighbours."""
    sources = (printed.source_of(metric) for _, printed in printed_studies())
    return next((source for source in sources if source), None)


def caveats(metric: str) -> tuple[str, ...]:
    """What to know before comparing with the published values of a metric."""
    source = source_of(metric)
    return source.caveats if source else ()
