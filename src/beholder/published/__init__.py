"""The studies' printed tables as data, and in our metric names and units.

`published("apa_identity")` is the table as printed; `neighbours("apa.identity_given_image", "senate")` is one of its
columns as probabilities. Models keep the names their papers give them.
"""

from __future__ import annotations

from beholder.published.neighbours import caveats, neighbours, source_of
from beholder.published.tables import SOURCES, Source, published

__all__ = ["SOURCES", "Source", "caveats", "neighbours", "published", "source_of"]
