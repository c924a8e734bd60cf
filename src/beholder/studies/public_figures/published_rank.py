"""Where a model stands among the published ones: only on APA's photographs, and only where the quantity is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.numbers import Result, options, percent, ratio
from beholder.chapter.table import Cell, Table, labels, names, percent_cell, ratio_cell
from beholder.studies.printed import printed_of

PUBLISHED_ON = "apa"
"""The data set of the published figures."""
COMPARED = ("bias_ratio", "identity_given_image", "identity_given_name")
SIZES = {"actors": 100, "athletes": 109, "house": 436, "senate": 100, "mayors": 100}
TITLES = {
    "bias_ratio": "women over men",
    "identity_given_image": "name, given an image",
    "identity_given_name": "image, given a name",
}


class Standing(NamedTuple):
    """One result with its published neighbours (`model, value`)."""

    row: Result
    what: str
    others: pl.DataFrame


def standings(results: pl.DataFrame) -> list[Standing]:
    """Every result that has published neighbours it can be compared with."""
    rows = results.filter((pl.col("dataset") == PUBLISHED_ON) & pl.col("value").is_not_null()).to_dicts()
    return [standing for row in rows if (standing := _standing(row)) is not None]


def _standing(row: Result) -> Standing | None:
    what = row["metric"].partition(".")[2]
    if what not in COMPARED or not comparable(row):
        return None
    printed = printed_of(row["benchmark"])
    others = printed.neighbours(row["metric"], row["subset"]) if printed else None
    return Standing(row, what, others) if others is not None and others.height else None


def comparable(row: Result) -> bool:
    """Finding a name among fewer names is easier: identity compares only among the branch's own number of people."""
    number = options(row)
    return number is None or abs(number - SIZES.get(row["subset"], number)) <= 1


def published_rank(results: pl.DataFrame) -> Table | None:
    """Where the models stand, result by result; None where nothing was published."""
    found = standings(results)
    if not found:
        return None
    most = max(standing.others.height for standing in found)
    body = [
        [*names(results, standing.row["model"], _place(standing)), *_cells(standing)]
        for standing in sorted(found, key=lambda s: COMPARED.index(s.what))
    ]
    whose = "these models stand" if results["model"].n_unique() > 1 else "this model stands"
    return Table(
        f"Where {whose} among {words.count(most)} published models",
        "This run's value, then the published lowest, median and highest, and how many published models lie below.",
        [*labels(results, "Result"), "This run", "Lowest", "Median", "Highest", "Above"],
        body,
        len(labels(results, "Result")),
        tuple(dict.fromkeys(_provenance(found))),
    )


def _place(standing: Standing) -> str:
    return f"{standing.row['subset']}: {TITLES[standing.what]}"


def _cells(standing: Standing) -> list[Cell]:
    values = standing.others["value"].sort().to_list()
    show = ratio if standing.what == "bias_ratio" else percent
    own = ratio_cell(standing.row) if standing.what == "bias_ratio" else percent_cell(standing.row, strong=True)
    marks = [Cell(show(value)) for value in (values[0], values[len(values) // 2], values[-1])]
    below = sum(value < standing.row["value"] for value in values)
    return [own, *marks, Cell(f"{below} of {len(values)}")]


def _provenance(found: list[Standing]) -> Iterator[str]:
    for standing in found:
        printed = printed_of(standing.row["benchmark"])
        yield from printed.provenance(standing.row["metric"]) if printed else ()
