"""Tables: text from strangers, checked before it is believed; and those that Beholder writes."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import polars as pl
from polars.exceptions import PanicException

from beholder.core.errors import DataError, first_line
from beholder.core.files import leads_out, write_whole
from beholder.core.read import decoded, parse_json, parse_parquet, read_bytes, read_text, typed
from beholder.core.types import Entry, Fields

DELIMITERS = (",", ";", "\t")  # what separates the cells of a table; of equal counts the first is meant


def read_delimited(path: Path, delimiter: str | None = None) -> pl.DataFrame:
    """A delimited text file as strings: blanks around cells stripped, empty cells null, unnamed columns dropped."""
    return parse_delimited(read_text(path), str(path), delimiter)


def parse_delimited(text: str, name: str, delimiter: str | None = None) -> pl.DataFrame:
    """The text of such a file; without a delimiter, that of its first line is used: comma, semicolon or tab."""
    found = delimiter or delimiter_of(text.lstrip("\r\n").partition("\n")[0])
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=found)
    try:
        rows = [(lines.line_num, row) for row in lines if any(row)]
    except csv.Error as error:
        raise DataError(f"{name}: line {lines.line_num} cannot be read: {error}.") from error
    if not rows:
        raise DataError(f"{name}: the table is empty.")
    header = [cell.strip() for cell in rows[0][1]]
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{name}: line {line} has {len(row)} cells, the header has {len(header)}.")
    keep = [i for i, column in enumerate(header) if column and not column.startswith("Unnamed")]
    names = [header[i] for i in keep]
    repeated = sorted({column for column in names if names.count(column) > 1})
    if repeated:
        raise DataError(f"{name}: the column {repeated[0]!r} occurs more than once.")
    columns = {column: [row[i].strip() or None for _, row in rows[1:]] for i, column in zip(keep, names, strict=True)}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def delimiter_of(line: str) -> str:
    """What separates the cells of a line; a delimiter in quotation marks does not count."""
    return max(DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)


def read_table(path: Path) -> pl.DataFrame:
    """A CSV, TSV, JSON-lines or Parquet table, by its ending."""
    return parse_table(read_bytes(path), str(path))


def parse_table(data: bytes, name: str) -> pl.DataFrame:
    """The bytes of such a table; `name` is its file's."""
    ending = PurePosixPath(name).suffix.lower()
    if ending in {".parquet", ".pq"}:
        return parse_parquet(data, name)
    text = decoded(data, name)
    return _parse_json_lines(text, name) if ending == ".jsonl" else parse_delimited(text, name)


def _parse_json_lines(text: str, name: str) -> pl.DataFrame:
    rows: list[Entry] = []
    for number, line in enumerate(text.split("\n"), start=1):  # a text may hold U+2028, which ends no line of JSON
        value = parse_json(line.strip() or "{}", f"{name}: line {number}")
        if not isinstance(value, dict):
            raise DataError(f'{name}: line {number} is not a JSON object, such as {{"file_name": "a.jpg"}}.')
        rows += [value] if value else []
    if not rows:
        raise DataError(f"{name}: the table is empty.")
    return table_of(rows)


def table_of(rows: Sequence[Fields]) -> pl.DataFrame:
    """Records as a table: numbers stay numbers where a column has nothing else, all else is text, nothing is null."""
    columns = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(key) for row in rows]
        plain = {type(value) for value in values if value is not None} <= {int, float}
        columns[key] = values if plain else [_text(value) for value in values]
    return pl.DataFrame(columns, strict=False)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str) or value != value:  # NaN, which pandas writes for nothing
        return (value if isinstance(value, str) else "").strip() or None
    return json.dumps(value, ensure_ascii=False)


def column_name(name: str) -> str:
    """A column's name however it is written."""
    return "_".join(name.lower().split())


def with_plain_names(table: pl.DataFrame, path: str) -> pl.DataFrame:
    """Names of columns in lower case, blanks in them as `_`; two that become the same are refused."""
    names = {name: column_name(name) for name in table.columns}
    (twice, count), *_ = Counter(names.values()).most_common(1) or [("", 0)]
    if count > 1:
        same = ", ".join(repr(name) for name, plain in names.items() if plain == twice)
        raise DataError(f"{path}: the columns {same} have the same name. Rename one of them.")
    if strange := [name for name in table.columns if name == "*" or (name[:1], name[-1:]) == ("^", "$")]:
        raise DataError(f"{path}: the column {strange[0]!r} has the form of a search pattern (`*`, `^…$`). Rename it.")
    return table.rename(names)


def column_in(table: pl.DataFrame, name: str) -> str:
    """The name as the table has it: as it is written, or as `column_name` reads it."""
    return name if name in table.columns else column_name(name)


def require_columns(table: pl.DataFrame, names: list[str], path: Path) -> None:
    """Every one of these columns, or an error that says which is missing and which exist."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"{path}: the column {missing[0]!r} is missing.\nThe table has: {', '.join(table.columns) or 'no columns'}."
        )


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


def read_labels(
    path: Path,
    image: str,
    columns: Sequence[str],
    *,
    delimiter: str | None = None,
    filled: int = 0,
    climbs: bool = False,
) -> pl.DataFrame:
    """A list of images with labels: every column is there, and the first `filled` have a value in each row.

    An image's name lies below the folder it is relative to; one that is empty, or that `climbs`, is refused.
    """
    table = read_delimited(path, delimiter)
    require_columns(table, [image, *columns], path)
    for row, name in enumerate(table[image].to_list(), start=2):
        if not name:
            raise DataError(f"{path}: row {row} names no image.")
        if leads_out(name) and not climbs:
            raise DataError(f"{path}: row {row} names {name!r}, which lies outside the folder of images.")
    for column in columns[:filled]:
        if table[column].null_count():
            raise DataError(f"{path}: row {(table[column].is_null().arg_max() or 0) + 2} has no {column}.")
    return table


def read_own_csv(path: Path, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    """A CSV that Beholder wrote, with these columns; one that is not there is null."""
    text = read_text(path)
    if "\r" in text.partition("\n")[0].rstrip("\r"):  # lines that end as on old machines
        text = text.replace("\r", "\n")
    try:
        table = pl.read_csv(text.encode(), infer_schema=False)
        table = table.filter(~pl.all_horizontal(pl.all().is_null()))  # empty lines
    except (Exception, PanicException) as fault:
        raise DataError(f"{path} cannot be read as CSV: {first_line(fault)}.") from fault
    return typed(restored(table), columns, path)


# Tables that Beholder writes: Parquet for programs, and CSV that a spreadsheet opens without running anything. It takes
# a text that begins with = + - @ for a formula, and names come from strangers: such text gets an apostrophe before it.

FORMULA = r"'*[=+\-@\t\r\n＝＋－＠]"  # how such a text begins, after the apostrophes that it may have itself


def write_table(table: pl.DataFrame, folder: Path, name: str) -> None:
    """`NAME.parquet` and `NAME.csv` in a folder."""
    buffer = io.BytesIO()  # no file of a fixed name: several processes may end in one folder at once
    table.write_parquet(buffer)
    write_whole(folder / f"{name}.parquet", buffer.getvalue())
    write_whole(folder / f"{name}.csv", as_csv(table))


def as_csv(table: pl.DataFrame) -> bytes:
    """The table as CSV; a text that a spreadsheet would take for a formula has an apostrophe before it."""
    return table.with_columns(pl.col(pl.String).str.replace(f"^({FORMULA})", "'$1")).write_csv().encode()


def restored(table: pl.DataFrame) -> pl.DataFrame:
    """The texts of a table that was written by `as_csv`, as they were."""
    return table.with_columns(pl.col(pl.String).str.replace(f"^'({FORMULA})", "$1"))
