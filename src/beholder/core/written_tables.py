"""Tables that Beholder writes: Parquet for programs, and CSV that a spreadsheet opens without running anything.

A spreadsheet takes a text that begins with = + - @ for a formula, and names come from strangers. Such a text is written
with an apostrophe before it, which `restored` takes off again. Numbers are written as they are.
"""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from beholder.core.files import write_whole

FORMULA = r"'*[=+\-@\t\r\n＝＋－＠]"
"""How a text begins that is taken for a formula, after the apostrophes that it may have itself."""


def write_table(table: pl.DataFrame, folder: Path, name: str) -> None:
    """`NAME.parquet` and `NAME.csv` in a folder."""
    buffer = io.BytesIO()  # no file of a fixed name: several processes may end in one folder at once
    table.write_parquet(buffer)
    write_whole(folder / f"{name}.parquet", buffer.getvalue())
    write_whole(folder / f"{name}.csv", as_csv(table))


def as_csv(table: pl.DataFrame) -> bytes:
    """The table as CSV; a text that a spreadsheet would take for a formula has an apostrophe before it.

    >>> as_csv(pl.DataFrame({"group": ["=1+1", "a-b"], "value": [-1.5, 2.0]}))
    b"group,value\\n'=1+1,-1.5\\na-b,2.0\\n"
    """
    return table.with_columns(pl.col(pl.String).str.replace(f"^({FORMULA})", "'$1")).write_csv().encode()


def restored(table: pl.DataFrame) -> pl.DataFrame:
    """The texts of a table that was written by `as_csv`, as they were."""
    return table.with_columns(pl.col(pl.String).str.replace(f"^'({FORMULA})", "$1"))
