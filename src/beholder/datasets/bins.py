"""Bins: groups made of a column of numbers, such as ages in years, with names that say their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from beholder.core.errors import UsageError
from beholder.datasets.dataset import Dataset

MOST_VALUES = 12
"""Numbers with more different values are put into bins before groups are made of them."""
QUANTILES = 5
NUMBERS = " in numbers"
"""What is added to the name of a column whose numbers were put into bins: it keeps the numbers."""
Edges = tuple[float, ...]


def parse_bins(options: Sequence[str]) -> dict[str, Edges]:
    """Column and edges of every `NAME=EDGE,EDGE,…`.

    >>> parse_bins(["age=0,18,30"])
    {'age': (0.0, 18.0, 30.0)}
    """
    return dict(map(_parsed, options))


def _parsed(option: str) -> tuple[str, Edges]:
    name, _, text = option.partition("=")
    try:
        edges = tuple(float(edge) for edge in text.split(","))
    except ValueError:
        edges = ()
    if not name or len(edges) < 2 or list(edges) != sorted(set(edges)) or not np.isfinite(edges).all():
        raise UsageError(f"--bins {option}: write a column and ascending edges, such as --bins age=0,18,30,50,70.")
    return name, edges


def numbers_of(column: pl.Series) -> pl.Series | None:
    """The column as numbers; None where a value is none, or where there is nothing."""
    numbers = column.cast(pl.Float64, strict=False) if column.dtype != pl.Boolean else None
    if numbers is None or numbers.null_count() > column.null_count() or not numbers.drop_nulls().is_finite().all():
        return None
    return numbers if numbers.drop_nulls().len() else None


def quantile_edges(numbers: pl.Series) -> Edges:
    """Edges that put about as many images into each of five bins."""
    known = numbers.drop_nulls().to_numpy()
    cuts = np.quantile(known, np.arange(1, QUANTILES) / QUANTILES, method="higher")
    return tuple(np.unique([known.min(), *cuts]).tolist())


def binned(numbers: pl.Series, edges: Edges) -> pl.Series:
    """The bin of each number, by name; a bin holds its lower edge, and the last one everything above.

    >>> binned(pl.Series([3, 18, 90, None]), (0, 18, 30)).to_list()
    ['0–17', '18–29', '30 and over', None]
    """
    names = bin_names(numbers, edges)
    place = np.searchsorted(np.array(edges), numbers.fill_null(edges[0]).to_numpy(), side="right")
    return pl.Series(numbers.name, [names[each] for each in place], dtype=pl.String).set(numbers.is_null(), None)


def bin_names(numbers: pl.Series, edges: Edges) -> list[str]:
    """Names of the bins, from what lies under the first edge to what lies over the last."""
    known = numbers.drop_nulls()
    whole = bool((known == known.round()).all()) and all(float(edge).is_integer() for edge in edges)
    texts = [f"{edge:g}" for edge in edges]
    between = [
        (texts[i] if edges[i + 1] - edges[i] == 1 else f"{texts[i]}–{edges[i + 1] - 1:g}")
        if whole
        else f"{texts[i]} to under {texts[i + 1]}"
        for i in range(len(edges) - 1)
    ]
    return [f"under {texts[0]}", *between, f"{texts[-1]} and over"]


def with_bins(dataset: Dataset, bins: Mapping[str, Edges]) -> Dataset:
    """The data set with these columns as bins; the numbers stay in a column of their own."""
    columns = []
    for name, edges in bins.items():
        numbers = numbers_of(dataset.attribute(name))
        if numbers is None:
            raise UsageError(f"--bins {name}: the values of {name!r} in {dataset.name} are not numbers.")
        name = numbers.name
        columns += [binned(numbers, edges).alias(name), numbers.alias(name + NUMBERS)]
    return replace(dataset, table=dataset.table.with_columns(columns)) if columns else dataset
