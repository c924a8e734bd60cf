"""Selection: some of a data set's images for a first look, chosen so that no group is left out.

Image after image, the next is of those groups that have been chosen least so far; among equals the first in the table.
So the choice is the same every time, and fewer images are always part of more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

SET = "seed"
"""Rows with one value of this attribute are a matched set, of use only as far as it is whole: sets come one by one."""
MOST_GROUPS = 20
"""An attribute with more values than this, such as a name, has no groups."""


def group_attributes(table: pl.DataFrame) -> list[str]:
    """The attributes that divide the rows into a few groups."""
    named = [name for name in table.columns if name not in ("image_id", "uri", SET)]
    return [name for name in named if 1 < table[name].n_unique() <= MOST_GROUPS]


def spread_rows(table: pl.DataFrame, count: int) -> list[int]:
    """Places of `count` rows, spread over the groups of every attribute as evenly as they allow, in table order."""
    if count >= table.height:
        return list(range(table.height))
    attributes, chosen = group_attributes(table), list[int]()
    sets = table[SET].rank("dense").to_numpy() if SET in table.columns else np.zeros(table.height)
    codes = np.stack([np.zeros(table.height, dtype=int), *(_codes(table[name]) for name in attributes)], axis=1)
    for each in dict.fromkeys(sets.tolist()):
        rows = np.flatnonzero(sets == each)
        chosen += rows[_evenly(codes[rows], count - len(chosen))].tolist()
        if len(chosen) >= count:
            break
    return sorted(chosen)


def _codes(values: pl.Series) -> npt.NDArray[np.int_]:
    """A number for every value, and one for none."""
    return np.asarray(values.cast(pl.String).fill_null("").rank("dense").to_numpy(), dtype=int)


def _evenly(codes: npt.NDArray[np.int_], count: int) -> npt.NDArray[np.int_]:
    """Places of up to `count` rows of `codes[rows, attributes]`, in the order in which they are chosen."""
    kinds, kind_of = np.unique(codes, axis=0, return_inverse=True)
    waiting = [np.flatnonzero(kind_of == kind).tolist()[::-1] for kind in range(len(kinds))]
    times = np.zeros((codes.shape[1], int(codes.max(initial=0)) + 1))
    groups = np.array([len(np.unique(column)) for column in codes.T], dtype=np.float64)
    columns, chosen = np.arange(codes.shape[1]), []
    for _ in range(min(count, len(codes))):
        open_kinds = [kind for kind, rows in enumerate(waiting) if rows]
        cost = times[columns, kinds[open_kinds]].sum(axis=1)
        cheapest = [kind for kind, price in zip(open_kinds, cost, strict=True) if price == cost.min()]
        kind = min(cheapest, key=lambda kind: waiting[kind][-1])
        chosen.append(waiting[kind].pop())
        times[columns, kinds[kind]] += groups  # in parts of what each group is due
    return np.array(chosen, dtype=int)
