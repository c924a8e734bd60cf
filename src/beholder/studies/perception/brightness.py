"""Perception's brightness maps: where paired prototypes differ in grey value, a confound that is not about faces.

The one measure that looks at the pictures again: it is about the data set, not about the model. A picture that is not
there (scores made elsewhere) leaves its pair out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from beholder.core.errors import BadImage
from beholder.core.results import Row
from beholder.datasets.crops import grey_values
from beholder.datasets.images import open_image
from beholder.metrics.brightness import coarse, sign_map
from beholder.studies.perception.bias import pairs
from beholder.studies.perception.design import design_columns, matched_sets
from beholder.studies.perception.scores import GROUPED, Array, Judged

SIDE = 18
"""Maps are so many squares wide and high."""
MOST_PAIRS = 40


def brightness_rows(judged: Judged, rng: np.random.Generator) -> Iterator[Row]:
    """Mean sign of the grey-value difference in every square, for every two groups of an attribute."""
    kept: dict[str, Array | None] = {}
    for attribute in [name for name in GROUPED if name in design_columns(judged.images)]:
        groups = sorted(judged.images[attribute].drop_nulls().unique())
        for first, second in pairs(groups):
            found = [
                (a, b)
                for one, other in _paired_uris(judged.images, attribute, first, second, rng)
                if (a := _grey(one, kept)) is not None and (b := _grey(other, kept)) is not None
            ]
            if found:
                yield from _map_rows(found, attribute, f"{first} over {second}")


def _paired_uris(
    images: pl.DataFrame, attribute: str, first: str, second: str, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Addresses of pictures that differ in the attribute alone, at most so many pairs."""
    table = images.select("uri", attribute).with_columns(set=pl.Series(matched_sets(images, attribute).codes))
    one, other = (table.filter(pl.col(attribute) == group).unique("set", keep="first") for group in (first, second))
    joined = one.join(other, on="set", suffix="_other").sort("set")
    chosen = np.sort(rng.permutation(joined.height)[:MOST_PAIRS])
    return [(row["uri"], row["uri_other"]) for row in joined[chosen.tolist()].to_dicts()]


def _grey(uri: str, kept: dict[str, Array | None]) -> Array | None:
    if uri not in kept:
        try:
            kept[uri] = coarse(grey_values(open_image(uri)), SIDE)
        except BadImage:
            kept[uri] = None
    return kept[uri]


def _map_rows(found: list[tuple[Any, Any]], attribute: str, group: str) -> Iterator[Row]:
    first, second = (np.stack(side) for side in zip(*found, strict=True))
    signs = sign_map(first, second)
    for (down, across), value in np.ndenumerate(signs):
        row = Row("perception.brightness", float(value), len(found), "mean sign", subset=attribute, group=group)
        yield row._replace(template=f"{down},{across}")
    row = Row("perception.brightness", float(signs.mean()), len(found), "mean sign", subset=attribute, group=group)
    yield row._replace(note="mean over the picture; 1: the first is brighter everywhere")
