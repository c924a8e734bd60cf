"""The images that `--limit` took when the golden copies were made: measures are compared on the same images.

The golden runs put it in place of `Study.select`. Image after image, the next is of those groups that have been chosen
least so far.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import MOST_GROUPS, Selection
from beholder.studies.study import Study

SET = "seed"


def select_as_before(
    study: Study, dataset: Dataset, count: int, person: object = None, within: object = ()
) -> Selection:
    """What `Study.select` was."""
    whole, by = dataset.table.with_row_index("_row_index"), study.asks.limit_by
    parts = whole.partition_by(by, maintain_order=True) if by in dataset.attributes else [whole]
    kept = [part["_row_index"][row] for part in parts for row in spread_rows(part.drop("_row_index"), count)]
    return Selection(sorted(kept), (), len(dataset))


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
