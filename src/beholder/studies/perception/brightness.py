"""Brightness maps: where paired pictures differ in grey value, a confound that is not about faces.

This is the one measure that opens the pictures again: it is about the data set, not about the model. A pair is left out
when one of its pictures is missing, as with scores made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import Groups, group_by
from beholder.core.errors import BadImage
from beholder.core.results import Row
from beholder.datasets.images import grey_values, open_image
from beholder.metrics.association import coarse, sign_map
from beholder.studies.perception.design import design_columns, matched_sets
from beholder.studies.perception.pairs import pairs
from beholder.studies.perception.scores import GROUPED, Array, Judged, grouped

Signs = npt.NDArray[np.int8]
SIGN = "mean sign"
SIDE = 36
"""Maps are drawn with at most so many squares across and down; signs are taken pixel by pixel."""
MOST_PAIRS = 20
"""The most pairs of a map."""


def brightness_rows(judged: Judged, rng: np.random.Generator) -> Iterator[Row]:
    """Mean sign of the grey-value difference in every square, for every two groups, and within the other groups.

    The row's concept is the other group that both belong to (women, for two races); none for everyone.
    """
    for attribute in [name for name in GROUPED if name in design_columns(judged.images)]:
        others = tuple(name for name in grouped(judged.images) if name != attribute)
        split = group_by(judged.images, others) if others else Groups("", [], np.zeros(judged.images.height, dtype=int))
        for first, second in pairs(sorted(judged.images[attribute].drop_nulls().unique())):
            paired = _paired(judged.images, attribute, first, second)
            inside = split.codes[paired["row"].to_numpy()]
            maps = {name: _signs(paired.filter(inside == code), rng) for code, name in enumerate(split.names)}
            whole = [sign for signs in maps.values() for sign in signs] if maps else _signs(paired, rng)
            every: list[tuple[str | None, list[Signs]]] = [(None, whole), *maps.items()]
            for name, signs in every:
                for row in _map_rows(signs) if signs else ():
                    yield row._replace(subset=attribute, group=first, against=second, concept=name)


def _paired(images: pl.DataFrame, attribute: str, first: str, second: str) -> pl.DataFrame:
    """Pictures that differ in the attribute alone: `row` of the first, `uri` of both."""
    table = images.select("uri", attribute).with_columns(
        set=pl.Series(matched_sets(images, attribute).codes), row=pl.int_range(pl.len())
    )
    one, other = (table.filter(pl.col(attribute) == group).unique("set", keep="first") for group in (first, second))
    return one.join(other, on="set", suffix="_other").sort("set")


def _signs(paired: pl.DataFrame, rng: np.random.Generator) -> list[Signs]:
    """In which pixels the first picture of a pair is brighter (1) or darker (−1); at most so many pairs."""
    chosen = np.sort(rng.permutation(paired.height)[:MOST_PAIRS]).tolist()
    both = ((_grey(row["uri"]), _grey(row["uri_other"])) for row in paired[chosen].to_dicts())
    return [
        sign_map(a[None], b[None]).astype(np.int8)
        for a, b in both
        if a is not None and b is not None and a.shape == b.shape
    ]


def _grey(uri: str) -> Array | None:
    try:
        return grey_values(open_image(uri))
    except BadImage:
        return None


def _map_rows(signs: list[Signs]) -> Iterator[Row]:
    whole = np.mean(signs, axis=0)
    squares = coarse(whole, min(SIDE, *whole.shape))
    for (down, across), value in np.ndenumerate(squares):
        yield Row("perception.brightness", float(value), len(signs), SIGN, template=square_name(down, across))
    note = "mean over the picture; 1: the first is brighter everywhere"
    yield Row("perception.brightness", float(whole.mean()), len(signs), SIGN, note=note)


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
