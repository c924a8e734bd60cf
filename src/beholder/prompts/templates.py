"""Tables of words from users: wordings with a blank, and columns that must hold text."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from beholder.core.errors import DataError
from beholder.core.tables import read_table, require_columns


def read_templates(path: Path) -> dict[str, str]:
    """Own wordings: a table with the columns `template` (a short name) and `text`, in which `{}` is the blank."""
    table = text_columns(read_table(path), ["template", "text"], path).select("template", "text")
    for name, text in table.iter_rows():
        if text.count("{}") != 1:
            raise DataError(f"{path}: the text of the wording {name!r} needs one {{}}.")
    refuse_repeated(table["template"], "wording", path)
    return dict(table.iter_rows())


def text_columns(table: pl.DataFrame, columns: list[str], path: Path) -> pl.DataFrame:
    """The table with these columns as texts; a missing column, an empty cell or an empty table is refused."""
    require_columns(table, columns, path)
    table = table.with_columns(pl.col(columns).cast(pl.String).str.strip_chars())
    for name in columns:
        empty = table[name].is_null() | (table[name] == "")
        if empty.any():
            raise DataError(f"{path}: row {(empty.arg_max() or 0) + 2} has no {name}.")
    if not table.height:
        raise DataError(f"{path}: the table has no rows.")
    return table


def refuse_repeated(names: pl.Series, what: str, path: Path) -> None:
    """An error that names the first name that occurs twice."""
    repeated = names.filter(names.is_duplicated()).to_list()
    if repeated:
        raise DataError(f"{path}: the {what} {repeated[0]!r} occurs more than once.")
