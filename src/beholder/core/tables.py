"""Read the tables that come with data sets: text from strangers, checked before it is believed."""

from __future__ import annotations

import csv
import io
from pathlib import Path, PurePosixPath

import polars as pl

from beholder.core.errors import DataError, MissingData


def read_text(path: Path) -> str:
    """A UTF-8 file's text; anything else is an error that names the file and the position."""
    if not path.is_file():
        raise MissingData(f"The table {path} is not there.")
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 text (byte 0x{data[error.start]:02x}).\n"
            "Save the table as UTF-8 and try again; nothing was guessed."
        ) from None


def read_delimited(path: Path, delimiter: str = ",") -> pl.DataFrame:
    """A delimited text file as strings: blanks around cells stripped, empty cells null, unnamed columns dropped."""
    lines = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    try:
        rows = [(lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        raise DataError(f"{path}: line {lines.line_num} cannot be read: {error}.") from error
    if not rows:
        raise DataError(f"{path}: the table is empty.")
    header = [cell.strip() for cell in rows[0][1]]
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{path}: line {line} has {len(row)} cells, the header has {len(header)}.")
    keep = [i for i, name in enumerate(header) if name and not name.startswith("Unnamed")]
    names = [header[i] for i in keep]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: the column {repeated[0]!r} occurs more than once.")
    columns = {name: [row[i].strip() or None for _, row in rows[1:]] for i, name in zip(keep, names, strict=True)}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def read_table(path: Path) -> pl.DataFrame:
    """A CSV, TSV or Parquet table, by its ending."""
    if not path.is_file():
        raise MissingData(f"The table {path} is not there.")
    if path.suffix.lower() in {".parquet", ".pq"}:
        try:
            return pl.read_parquet(path)
        except Exception as error:
            raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    return read_delimited(path, "\t" if path.suffix.lower() in {".tsv", ".txt"} else ",")


def require_columns(table: pl.DataFrame, names: list[str], path: Path) -> None:
    """Every one of these columns, or an error that says which is missing and which exist."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"{path}: the column {missing[0]!r} is missing.\nThe table has: {', '.join(table.columns) or 'no columns'}."
        )


def require_inside(names: pl.Series, path: Path) -> None:
    """Every image's name lies below the folder it is relative to; one that is empty or leads out of it is refused."""
    for row, name in enumerate(names.to_list(), start=2):
        if not name:
            raise DataError(f"{path}: row {row} names no image.")
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise DataError(f"{path}: row {row} names {name!r}, which lies outside the folder of images.")
