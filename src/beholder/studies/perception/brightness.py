"""Brightness maps: where paired pictures differ in grey value, a confound that is not about faces.

This is the one measure that opens the pictures again: it is about the data set, not about the model. A pair is left out
when one of its pictures is missing, as with scores made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

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

SIGN = "mean sign"
SIDE = 18
"""Maps are so many squares wide and high."""
MOST_PAIRS = 40


def brightness_rows(judged: Judged, rng: np.random.Generator) -> Iterator[Row]:
    """Mean sign of the grey-value difference in every square, for every two groups of an attribute."""
    kept: dict[str, Array | None] = {}
    for attribute in [name for name in GROUPED if name in design_columns(judged.images)]:
        groups = sorted(judged.images[attribute].drop_nulls().unique())
        for first, second in pairs(groups):
            pictures = [
                (a, b)
                for one, other in _paired_uris(judged.images, attribute, first, second, rng)
                if (a := _grey(one, kept)) is not None and (b := _grey(other, kept)) is not None
            ]
            if pictures:
                for row in _map_rows(pictures):
                    yield row._replace(subset=attribute, group=first, against=second)


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


def _map_rows(pictures: list[tuple[Array, Array]]) -> Iterator[Row]:
    first, second = (np.stack(side) for side in zip(*pictures, strict=True))
    signs = sign_map(first, second)
    for (down, across), value in np.ndenumerate(signs):
        yield Row("perception.brightness", float(value), len(pictures), SIGN, template=square_name(down, across))
    note = "mean over the picture; 1: the first is brighter everywhere"
    yield Row("perception.brightness", float(signs.mean()), len(pictures), SIGN, note=note)


def square_name(down: int, across: int) -> str:
    """A square of the map, as the results name it."""
    return f"{down},{across}"


def square_place(name: str) -> tuple[int, int]:
    """How far down and across a square of that name is.

    >>> square_place(square_name(3, 5))
    (3, 5)
    """
    down, across = name.split(",")
    return int(down), int(across)
