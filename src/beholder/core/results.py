"""Results: one tidy table whatever the study. Column and metric names are our API."""

from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import DataError, MissingData
from beholder.core.read import read_parquet
from beholder.core.types import Fields

SCHEMA: dict[str, pl.DataType] = {
    "metric": pl.String(),
    **dict.fromkeys(("value", "low", "high", "p_value"), pl.Float64()),
    "p_at_most": pl.Boolean(),
    "n": pl.Int64(),
    "unit": pl.String(),
    **dict.fromkeys(("landmark", "expected", "chance", "delta"), pl.Float64()),
    **dict.fromkeys(("verdict", "equivalence", "variant", "note"), pl.String()),
    **dict.fromkeys(("study", "dataset", "template", "against"), pl.String()),
    **dict.fromkeys(("concept", "subset", "group", "model"), pl.String()),
}  # the columns. A printed frame has room for the first four and the last four: what the number is, and of whom.
NEVER_NULL = ("study", "model", "dataset", "metric", "n", "unit")
KEY = ("metric", "subset", "group", "against", "concept", "template", "variant")  # of one number in a study
row_key = attrgetter(*KEY)  # the same of a `Row`
WITHIN = "within "  # how the variant of a number begins that was measured within strata
PLAIN = ~pl.col("variant").str.starts_with(WITHIN).fill_null(False)  # numbers as published


class Row(NamedTuple):
    """One number with its uncertainty, its n and its meaning; absent is None, never 0."""

    metric: str
    value: float | None
    n: int
    unit: str
    subset: str | None = None
    group: str | None = None  # the name of a group, as the data has it
    against: str | None = None  # the other group of a pair: the value is that of `group` over, or less, that of this
    concept: str | None = None
    template: str | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_at_most: bool | None = None  # true where `p_value` is the smallest that the shuffles could give
    landmark: float | None = None  # the value without any effect; without it, the metric's own
    expected: float | None = None  # what the value would be without bias, or what it should be
    verdict: str | None = None  # what the comparison says (`comparison.VERDICTS`); None where nothing is compared
    equivalence: str | None = None  # the answer of a test of equivalence, with the `delta` that was asked for
    delta: float | None = None
    variant: str | None = None  # how it differs from the published measure (`within branch`); None where it does not
    chance: float | None = None  # what a model that knows nothing would get, where that is known
    note: str | None = None  # for people; never read back


def results_table(rows: Iterable[Row], *, study: str, model: str, dataset: str) -> pl.DataFrame:
    """Rows as the tidy table; NaN and infinity become null."""
    whose = {"study": study, "model": model, "dataset": dataset}
    table = pl.DataFrame([{**whose, **row._asdict()} for row in rows], schema=SCHEMA)
    floats = pl.col(pl.Float64)
    return table.with_columns(pl.when(floats.is_finite()).then(floats))


def place(row: Fields) -> str:
    """Of what a number is, in words."""
    named = {name: row.get(name) for name in KEY[1:]}
    if named["against"] is not None:
        named["against"] = f"against {named['against']}"
    return " · ".join(str(value) for value in named.values() if value is not None)


def read_results(folder: Path) -> pl.DataFrame:
    """The table of a run folder; a column that came later is null in an older run."""
    path = folder / "results.parquet"
    if not path.is_file():
        raise MissingData(f"{folder} has no results: {path.name} is not there. Make the run again.")
    return read_rows(path, SCHEMA)


def read_rows(path: Path, schema: Fields, always: Iterable[str] = NEVER_NULL, *, value: str = "value") -> pl.DataFrame:
    """A table of numbers as a run keeps it: `always` names columns without null, intervals are about `value`."""
    try:
        table = read_parquet(path, schema)
    except DataError as error:
        raise DataError(f"{error}\nMake the run again: what was scored is kept.") from error
    numbers = [name for name, kind in schema.items() if kind == pl.Float64]
    low, high = pl.col("low"), pl.col("high")
    faults = {
        **{f"has no {name}": pl.col(name).is_null() for name in always},
        **{f"has a {name} that is not finite": ~pl.col(name).is_finite() for name in numbers},
        "has one bound of an interval without the other": low.is_null() != high.is_null(),
        "has an interval that ends before it begins": low > high,
        "has an interval without a value": low.is_not_null() & pl.col(value).is_null(),
        "has a p-value outside 0 to 1": (pl.col("p_value") < 0) | (pl.col("p_value") > 1),
        "has a negative n": pl.col("n") < 0,
    }
    for what, rows in table.select(**faults).to_dict(as_series=True).items():
        if rows.any():
            raise DataError(f"{path}: row {(rows.fill_null(False).arg_max() or 0) + 1} {what}.")
    return table
