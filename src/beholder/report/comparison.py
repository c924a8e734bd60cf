"""The comparison: which numbers of models differ, in the terminal and on a page that opens from disk."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from beholder.chapter.finding import FOUND
from beholder.chapter.numbers import Result, has_interval, number
from beholder.comparison.family import DIFFERENCE, TOO_LITTLE
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_json
from beholder.core.record import Record, checked_record, version
from beholder.core.results import KEY, place, read_rows
from beholder.core.tables import write_table
from beholder.report.number_table import FILTERS, MOST, Column, Ledger, packed
from beholder.report.page import rendered, save_page
from beholder.report.report import short_names
from beholder.report.scorecard import Mark, mark_of, scales_of, unit_of
from beholder.studies import STUDIES

COMPARED = "comparison.parquet"
SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("study", "baseline", "model", "dataset"), pl.String),
    **dict.fromkeys(KEY, pl.String),
    **dict.fromkeys(("first", "second", "difference", "low", "high", "p_value"), pl.Float64),
    **{"verdict": pl.String, "n": pl.Int64, "unit": pl.String, "landmark": pl.Float64, "note": pl.String},
}
ALWAYS = ("study", "baseline", "model", "dataset", "metric", "first", "second", "difference", "n")


@dataclass
class Comparison:
    """The differences of models from the first, how they were computed, and what could not be compared.

    >>> Comparison(["before", "after"], pl.DataFrame(), Record()).models
    ['before', 'after']
    """

    models: Sequence[str]  # the first is the baseline: a difference is that of another less the first
    table: pl.DataFrame
    record: Record
    parts: int = 20  # parts into which people were dealt, each left out once
    folder: Path | None = None  # where it is kept

    @property
    def others(self) -> list[str]:
        """The models that are compared with the first."""
        return list(self.models[1:])

    def of(self, model: str) -> "Comparison":
        """The differences of one model from the first."""
        return replace(self, models=[self.models[0], model], table=self.table.filter(pl.col("model") == model))


def read_comparison(folder: Path) -> Comparison:
    """A comparison from its folder."""
    table = read_rows(folder / COMPARED, SCHEMA, ALWAYS, value="difference")
    if table.is_empty():
        raise DataError(f"{folder / COMPARED} holds no difference. Make the comparison again.")
    record = checked_record(read_json(folder / "comparison.json"), folder / "comparison.json")
    parts = record.settings.get("parts")
    models = [*table["baseline"].head(1), *table["model"].unique(maintain_order=True)]
    return Comparison(models, table, record, parts if isinstance(parts, int) and parts > 2 else 20, folder)


class Line(NamedTuple):
    """One metric: how many of its numbers differ, and the one that does so most surely."""

    metric: str
    meaning: str
    differ: int
    compared: int
    where: str
    first: str
    second: str
    difference: str
    mark: Mark | None  # the difference on the scale that its unit shares; None without an interval


def lines(comparison: Comparison) -> list[Line]:
    """Every metric in the order of its study; within one, the number with the smallest p stands for it."""
    by_metric = [(str(metric), rows) for (metric,), rows in comparison.table.group_by("metric", maintain_order=True)]
    surest = [rows.sort("p_value", nulls_last=True).row(0, named=True) for _, rows in by_metric]
    differences = [{**row, "value": row["difference"], "landmark": 0.0} for row in surest]
    scales = scales_of(differences)
    made = []
    for (metric, rows), row in zip(by_metric, differences, strict=True):
        known = STUDIES[row["study"]].metric(metric) if row["study"] in STUDIES else None
        scale = scales.get(unit_of(row)) if has_interval(row) else None
        shown = (place(row), f"{row['first']:.3g}", f"{row['second']:.3g}", with_interval(row))
        about = (metric, known.meaning if known else "", rows.filter(FOUND).height, rows.height)
        made.append(Line(*about, *shown, mark_of(row, scale) if scale else None))
    return made


def with_interval(row: Result) -> str:
    """A signed difference with its interval."""
    width = abs(row["high"] - row["low"]) if row["low"] is not None else abs(row["difference"])
    digits = next((digits for digits in range(1, 7) if width * 10**digits >= 3), 6)  # it spans some units of the last
    shown = f"{row['difference']:+.{digits}f}"
    if row["low"] is not None:
        shown += f" ({row['low']:.{digits}f} to {row['high']:.{digits}f})"
    return shown.replace("-", "−")


def lead(comparison: Comparison) -> str:
    """The result in a sentence or two."""
    counts, (first, second) = Counter(comparison.table["verdict"]), named(comparison)
    compared = number(comparison.table.height, "number")
    differ = "differs" if counts[DIFFERENCE] == 1 else "differ"
    few = f" For {counts[TOO_LITTLE]:,} there is too little data." if counts[TOO_LITTLE] else ""
    return (
        f"{counts[DIFFERENCE]:,} of {compared} {differ} between {first} and {second} by more than chance, with all of "
        f"them judged together. Where no difference was found, the interval says how large one may still be.{few}"
    )


def named(comparison: Comparison) -> list[str]:
    """The models, shortly."""
    short = short_names(comparison.models)
    return [short.get(name, name) for name in comparison.models]


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What differs, model after model and metric after metric."""
    for each in map(comparison.of, comparison.others):
        first, second = named(each)
        console.print(lead(each), markup=False)
        shown = RichTable("Metric", "Differ", escape(f"{second} less {first}, where it is surest (95 %)"))
        for line in lines(each):
            surest = f"{line.difference} {line.where}"
            shown.add_row(*map(escape, (line.metric, f"{line.differ} of {line.compared}", surest)))
        console.print(shown)
    for text in comparison.record.left_out:
        console.print(f"Left out: {text}.", markup=False)


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """`comparison.html`, `comparison.parquet`, `comparison.csv` and `comparison.json`; returns the page's path."""
    write_table(comparison.table, folder, "comparison")
    write_whole(folder / "comparison.json", comparison.record.as_json())
    return save_page(folder / "comparison.html", render_comparison(comparison))


def render_comparison(comparison: Comparison) -> str:
    """The page as text."""
    (first, *others), record = named(comparison), comparison.record
    listed = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    each = zip(others, map(comparison.of, comparison.others), strict=True)
    return rendered(
        "comparison.html.j2",
        ("files.js", "ledger.js"),
        first=first,
        others=listed,
        pairs=[(name, lead(pair), lines(pair)) for name, pair in each],
        record=record,
        parts=comparison.parts,
        ledger=_ledger(comparison),
        models=record.models,
        citation=f"Beholder {version()}, {first} and {listed}, {record.created[:10]}.",
    )


def _ledger(comparison: Comparison) -> Ledger | None:
    """Every difference, the surest first; None where there are too many for a page."""
    if not 0 < comparison.table.height <= MOST:
        return None
    table = comparison.table.sort("p_value", nulls_last=True)
    several = len(comparison.models) > 2
    columns = [
        Column("Metric", ("metric",), "name"),
        *([Column("Model", ("model",))] if several else []),
        Column("Of", KEY[1:]),
        Column(named(comparison)[0], ("first",), "number"),
        Column("Other model" if several else named(comparison)[1], ("second",), "number"),
        Column("Difference", ("difference",), "number", ("low", "high")),
        Column("p", ("p_value",), "number"),
        Column("n", ("n",), "number"),
        Column("Verdict", ("verdict",), "reason", ("note",), dot=True),
    ]
    filters = [(name, FILTERS[name]) for name in FILTERS if name in table.columns and table[name].n_unique() > 1]
    filters.append(("verdict", "Verdict"))
    return Ledger(packed(table, columns, [name for name, _ in filters]), filters, columns, table.height, "")
