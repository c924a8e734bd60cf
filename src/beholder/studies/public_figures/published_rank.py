"""Where a model ranks among published ones: only on APA's photographs, and only where the quantity is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import Cell, Table, labels, names, percent_cell, ratio_cell
from beholder.chapter.numbers import Result, count, options, percent, ratio
from beholder.core.results import PLAIN
from beholder.datasets.apa import BRANCHES
from beholder.studies.apa.printed import POOLS
from beholder.studies.printed import alike, printed_of
from beholder.studies.public_figures.phrases import PUBLISHED_ON

TITLES = {
    "bias_ratio": "women over men",
    "identity_given_image": "name, given an image",
    "identity_given_name": "image, given a name",
}
"""The metrics that were published, in the order of the table."""
WHOLE = 0.95
"""The part of a pool's images from which on it is compared."""


class Compared(NamedTuple):
    """One result with the published values of the same quantity (`model, value`)."""

    row: Result
    metric: str
    others: pl.DataFrame
    left_out: dict[str, int]
    """How many published models do not compare, by the reason."""

    @property
    def label(self) -> str:
        """What is compared."""
        return f"{self.row['subset']}: {TITLES[self.metric]}"


def comparable_results(results: pl.DataFrame) -> list[Compared]:
    """Every result that can be compared with published values."""
    rows = results.filter(pl.col("dataset") == PUBLISHED_ON, pl.col("value").is_not_null(), PLAIN).to_dicts()
    return [compared for row in rows if (compared := _compared(row)) is not None]


def _compared(row: Result) -> Compared | None:
    metric = row["metric"].partition(".")[2]
    printed = printed_of(row["study"])
    if metric not in TITLES or printed is None or not comparable(row):
        return None
    others, left_out = alike(printed, row)
    return Compared(row, metric, others, left_out) if others.height else None


def comparable(row: Result) -> bool:
    """A name is easier to find among fewer names, and a part of a pool mixes other people: only whole ones compare.

    One image in twenty may be missing from a pool, one name from a branch.
    """
    number, branch = options(row), BRANCHES.get(row["subset"])
    if number is not None and branch is not None:
        return abs(number - branch.images) <= 1
    whole = sum(BRANCHES[name].images for name in POOLS.get(row["subset"], ()))
    return bool(row["n"] >= WHOLE * whole)


def published_rank(results: pl.DataFrame) -> Table | None:
    """Where the models rank, result by result; None where nothing was published."""
    compared = comparable_results(results)
    if not compared:
        return None
    most = max(each.others.height for each in compared)
    ordered = sorted(compared, key=lambda each: list(TITLES).index(each.metric))
    subject = "these models rank" if results["model"].n_unique() > 1 else "this model ranks"
    return Table(
        f"Where {subject} among {count(most)} published models",
        "This run's value, then the lowest, median and highest published value, and how many published models are "
        "below this run.",
        [*labels(results, "Result"), "This run", "Lowest", "Median", "Highest", "Above"],
        [[*names(results, each.row["model"], each.label), *_cells(each)] for each in ordered],
        len(labels(results, "Result")),
        tuple(dict.fromkeys([*_left_out(compared), *_provenance(compared)])),
    )


def _left_out(compared: list[Compared]) -> Iterator[str]:
    for each in compared:
        for reason, number in each.left_out.items():
            yield f"{each.label}: {number} published models are left out, each because {reason}."


def _cells(compared: Compared) -> list[Cell]:
    values = compared.others["value"].sort().to_list()
    is_ratio = compared.metric == "bias_ratio"
    own = ratio_cell(compared.row) if is_ratio else percent_cell(compared.row, strong=True)
    show = ratio if is_ratio else percent
    spread = [Cell(show(value)) for value in (values[0], values[len(values) // 2], values[-1])]
    below = sum(value < compared.row["value"] for value in values)
    return [own, *spread, Cell(f"{below} of {len(values)}")]


def _provenance(compared: list[Compared]) -> Iterator[str]:
    for each in compared:
        printed = printed_of(each.row["study"])
        yield from printed.provenance(each.row["metric"]) if printed else ()
