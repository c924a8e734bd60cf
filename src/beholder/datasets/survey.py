"""Survey of a data set: groups and their crossings, missing labels, picture sizes, pictures that look alike.

Every picture is opened once. Columns with many different texts, such as names, are counted and never listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from PIL import Image

from beholder.core.errors import BadImage
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image

MOST_GROUPS = 50
"""A text column with more different values identifies people or pictures rather than groups."""
IDENTIFIERS = ("name", "person")
"""Columns that identify people, however few they are."""
MOST_CROSSED = 12
"""Columns with more groups are not crossed with others."""
ALIKE_BITS = 3
"""Pictures whose 64-bit difference hashes differ in at most this many bits look alike."""
CHUNKS = 4


class Seen(NamedTuple):
    """What one look at a picture says: its size and its difference hash, or why it cannot be read."""

    size: tuple[int, int] | None
    look: int | None
    reason: str | None


class Survey(NamedTuple):
    """What a data set holds."""

    images: int
    damaged: dict[str, str]
    """Image id → why the picture cannot be read."""
    sizes: list[tuple[int, int]]
    """Width and height of every picture that can be read."""
    alike: dict[str, str]
    """Image id → an earlier image that looks like it."""
    groups: dict[str, pl.DataFrame]
    """Of every column with groups: `group` and `count`, the largest first; a missing label is null."""
    numbers: dict[str, tuple[float, float, float]]
    """Of every column of numbers: lowest, median, highest."""
    identifiers: dict[str, int]
    """Of every column with too many texts to be groups: how many different ones."""
    missing: dict[str, int]
    """Of every column: how many images lack a label."""
    crossings: dict[tuple[str, str], pl.DataFrame]
    """Of two columns with groups: `first`, `second` and `count` of every crossing, those with 0 included."""


def survey(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> Survey:
    """Look at every picture and count every label."""
    ids, seen = dataset.table["image_id"].to_list(), []
    with ThreadPoolExecutor() as pool:
        for one in pool.map(_look, dataset.table["uri"]):
            advance(1)
            seen.append(one)
    looks = {image: one.look for image, one in zip(ids, seen, strict=True) if one.look is not None}
    columns = {name: dataset.table[name] for name in dataset.attributes}
    texts = {name: column.cast(pl.String) for name, column in columns.items() if not column.dtype.is_numeric()}
    groups = {
        name: _counts(column)
        for name, column in texts.items()
        if column.n_unique() <= MOST_GROUPS and name.lower() not in IDENTIFIERS
    }
    crossed = [name for name, counts in groups.items() if 1 < counts["group"].drop_nulls().len() <= MOST_CROSSED]
    return Survey(
        len(dataset),
        {image: one.reason for image, one in zip(ids, seen, strict=True) if one.reason},
        [one.size for one in seen if one.size],
        look_alikes(looks),
        groups,
        {name: _range(column) for name, column in columns.items() if name not in texts and column.drop_nulls().len()},
        {name: column.drop_nulls().n_unique() for name, column in texts.items() if name not in groups},
        {name: column.null_count() for name, column in columns.items()},
        {(a, b): _crossing(texts[a], texts[b]) for a, b in combinations(crossed, 2)},
    )


def group_counts(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Of every column with few groups: how many images each group has. Nobody's name is among them."""
    columns = {name: dataset.table[name] for name in dataset.attributes if name.lower() not in IDENTIFIERS}
    few = {name: column for name, column in columns.items() if 1 < column.drop_nulls().n_unique() <= MOST_CROSSED}
    return {name: dict(_counts(column.cast(pl.String)).drop_nulls("group").rows()) for name, column in few.items()}


def _look(uri: str) -> Seen:
    try:
        picture = open_image(uri)
    except BadImage as error:
        return Seen(None, None, error.reason)
    return Seen(picture.size, difference_hash(picture), None)


def difference_hash(picture: Image.Image) -> int:
    """64 bits: is each of 8 × 8 places darker than its right neighbour?"""
    grey = np.asarray(picture.convert("L").resize((9, 8), Image.Resampling.BOX), dtype=np.int16)
    return int.from_bytes(np.packbits(grey[:, :-1] < grey[:, 1:]).tobytes(), "big")


def look_alikes(looks: dict[str, int]) -> dict[str, str]:
    """Each image that looks like an earlier one → the first such image.

    A pair within ALIKE_BITS agrees in at least one of CHUNKS chunks of its hash, so only those pairs are compared.

    >>> look_alikes({"a": 0b0000, "b": 0b0011, "c": 2**40 - 1})
    {'b': 'a'}
    """
    ids, hashes = list(looks), np.array(list(looks.values()), dtype=np.uint64)
    first = np.arange(len(ids))
    for chunk in range(CHUNKS):
        part = (hashes >> np.uint64(64 // CHUNKS * chunk)) & np.uint64(2 ** (64 // CHUNKS) - 1)
        order = np.argsort(part, kind="stable")
        for bucket in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
            for place, image in enumerate(bucket[:-1], start=1):
                later = bucket[place:][np.bitwise_count(hashes[bucket[place:]] ^ hashes[image]) <= ALIKE_BITS]
                first[later] = np.minimum(first[later], image)
    return {ids[image]: ids[other] for image, other in enumerate(first) if other != image}


def _counts(column: pl.Series) -> pl.DataFrame:
    counted = Counter(column.to_list())
    table = pl.DataFrame(
        {"group": list(counted), "count": list(counted.values())}, schema_overrides={"group": pl.String}
    )
    return table.sort("count", "group", descending=[True, False], nulls_last=True)


def _range(column: pl.Series) -> tuple[float, float, float]:
    low, middle, high = (float(x) for x in np.percentile(column.drop_nulls().to_numpy(), [0, 50, 100]))
    return low, middle, high


def _crossing(first: pl.Series, second: pl.Series) -> pl.DataFrame:
    pairs = pl.DataFrame({"first": first, "second": second}).drop_nulls()
    every = pairs.select(pl.col("first").unique().sort()).join(
        pairs.select(pl.col("second").unique().sort()), how="cross"
    )
    counted = pairs.group_by("first", "second").len("count")
    return every.join(counted, on=["first", "second"], how="left").with_columns(pl.col("count").fill_null(0))
