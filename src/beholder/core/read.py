"""The doors for files from outside: text, JSON, TOML, NumPy arrays, Parquet, CSV; and tables that are written.

What comes through a door is of the promised form. Anything else raises an error of ours that names the file and the
place; nothing behind the door has to check again. The caller says which error fits: `BadScores`, `ModelError` …
"""

import codecs
import csv
import io
import json
import re
import tomllib
import types
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, get_args, get_origin

import numpy as np
import polars as pl
from polars.exceptions import PanicException

from beholder.core.errors import BeholderError, DataError, MissingData, UsageError, first_line
from beholder.core.files import leads_out, write_whole
from beholder.core.types import AnyArray, Entry, Fields

LARGEST = 2 << 30  # bytes of a file that is read whole, and of an array that comes out of one
MOST_CELLS = 200_000_000  # cells of a Parquet table: a small file may claim any number of them
LONGEST_NUMBER = 300  # digits of a whole number; a longer one is beyond every float
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that is one of two halves of a character
Fault = type[BeholderError]


def read_bytes(path: Path, error: Fault = DataError) -> bytes:
    """A file's bytes; what cannot be opened, and what is too large to be read whole, is refused."""
    try:
        if not path.is_file():
            raise (MissingData if error is DataError else error)(f"The file {path} is not there.")
        if path.stat().st_size > LARGEST:
            raise error(f"{path} has more than {LARGEST >> 30} GB, which is too large for such a file.")
        return path.read_bytes()
    except OSError as fault:
        raise error(f"{path} cannot be read: {fault.strerror or first_line(fault)}.") from fault


def read_text(path: Path, error: Fault = DataError) -> str:
    """A file's text, UTF-8 or marked UTF-16."""
    return decoded(read_bytes(path, error), str(path), error)


def decoded(data: bytes, name: str, error: Fault = DataError) -> str:
    """The bytes of a file as text; anything but UTF-8 and marked UTF-16 is an error that names the position."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as fault:
        read, meant = fault.object, encoding.upper().removesuffix("-SIG")  # what was read has no byte-order mark
        raise error(
            f"{name}: line {read.count(10, 0, fault.start) + 1} is not {meant} text (byte 0x{read[fault.start]:02x}).\n"
            "Save the file as UTF-8 and try again; nothing was guessed."
        ) from None


def read_json(path: Path, error: Fault = DataError) -> Any:
    """A file's JSON value. Numbers that no float can hold, and halves of characters, are refused."""
    return parse_json(read_text(path, error), str(path), error)


def parse_json(text: str, name: str, error: Fault = DataError) -> Any:
    """The same for a text that is a part of a file; `name` says which."""

    def refused(number: str) -> Any:
        raise error(f"{name} has a number without end ({number[:12]}…).")

    try:
        value = json.loads(
            text,
            parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_NUMBER else refused(digits),
            parse_float=lambda digits: number if abs(number := float(digits)) < np.inf else refused(digits),
        )
        if HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as fault:
        raise error(f"{name} is not readable JSON: {fault}.") from fault
    except UnicodeEncodeError as fault:
        raise error(f"{name} has half a character (a lone surrogate) in a text.") from fault
    except RecursionError as fault:
        raise error(f"{name} is nested too deeply.") from fault
    return value


def read_toml(path: Path, error: Fault = UsageError) -> Entry:
    """A TOML file's entries; whole numbers have 64 bits, as TOML says."""
    text = read_text(path, error)
    try:
        entries = tomllib.loads(text)
        _refuse_large(entries)
    except RecursionError as fault:
        raise error(f"{path} is nested too deeply.") from fault
    except (ValueError, OverflowError) as fault:  # broken TOML is a ValueError, and so is a number without end
        raise error(f"{path} is not TOML: {first_line(fault)}") from fault
    return entries


def _refuse_large(value: Any) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"a number of {len(str(value))} digits")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_large(each)


def read_array(path: Path, error: Fault = DataError) -> AnyArray:
    """The numbers of a `.npy` file, or of the first array of a `.npz`; nothing else is ever unpacked."""
    data = read_bytes(path, error)
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                first = next(each for each in archive.infolist() if each.filename.endswith(".npy"))
                if first.file_size > LARGEST:
                    raise ValueError(f"an array of {first.file_size} bytes")
                data = archive.read(first)
        version = np.lib.format.read_magic(file := io.BytesIO(data))
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(file)
        if dtype.kind not in "fiub":
            raise ValueError(f"it holds {dtype}, not numbers")
        count = int(np.prod(shape, dtype=object))
        array = np.frombuffer(data, dtype, count, file.tell())  # never larger than the file
    except Exception as fault:  # NumPy evaluates a header as Python, and fails in as many ways
        raise error(f"{path} is not a NumPy array file: {first_line(fault)}.") from fault
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def read_parquet(path: Path, columns: Mapping[str, pl.DataType | type[pl.DataType]] | None = None) -> pl.DataFrame:
    """A Parquet table of texts, numbers and truth values; with `columns` exactly these, in these types."""
    table = parse_parquet(read_bytes(path), str(path))
    return table if columns is None else typed(table, columns, path)


def parse_parquet(data: bytes, name: str) -> pl.DataFrame:
    """The bytes of such a table; dates and categories become text, decimals numbers; lists and bytes are refused."""
    try:
        rows = pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item()
        schema = pl.read_parquet_schema(io.BytesIO(data))
        if rows * max(1, len(schema)) > MOST_CELLS:
            raise ValueError(f"{rows} rows of {len(schema)} columns are more than {MOST_CELLS} cells; split it")
        table = pl.read_parquet(data).with_columns(
            pl.col(column).cast(pl.Float64 if kind.is_decimal() else pl.String)
            for column, kind in schema.items()
            if kind.is_decimal() or kind in (pl.Null, pl.Categorical, pl.Enum, pl.Date, pl.Datetime, pl.Time)
        )
    except (Exception, PanicException) as fault:  # polars panics on some damage, which is no Exception
        raise DataError(f"{name} cannot be read as Parquet: {first_line(fault)}.") from fault
    for column, kind in table.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
            raise DataError(f"{name}: the column {column!r} holds {kind}. Write one text or number into each cell.")
    return table


def typed(table: pl.DataFrame, columns: Mapping[str, pl.DataType | type[pl.DataType]], path: Path) -> pl.DataFrame:
    """The table with exactly these columns; one that is not there is null, one of another kind is refused.

    Numbers become text where text is wanted, and whole numbers decimal ones; text never becomes a number.
    """
    made = []
    for name, kind in columns.items():
        values = table[name] if name in table.columns else pl.Series(name, [None] * table.height, pl.Null)
        here = values.dtype
        fits = here == kind or kind == pl.String or (here.is_integer() and kind in (pl.Float64, pl.Int64))
        if not (fits or (here.is_float() and kind == pl.Float64) or values.null_count() == len(values)):
            raise DataError(f"{path}: the column {name!r} holds {here}, where {kind} is expected.")
        try:
            made.append(values.cast(kind))
        except pl.exceptions.PolarsError as fault:
            raise DataError(f"{path}: the column {name!r} does not fit into {kind}: {first_line(fault)}.") from fault
    return pl.DataFrame(made)


WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
WORDS |= {list: "a list", dict: "an object"}


def require_form(value: Any, form: Any, path: Path, place: str = "", error: Fault = DataError) -> None:
    """Raise unless a JSON value has a form: a type, such as `dict[str, int]` or `float | None`; `[form]` for a list of
    such values; `{"name": form, "?size": form}` for an object, in which names with `?` may be missing.
    """
    kind, parts = get_origin(form) or type(form), get_args(form)
    kinds = parts if kind is types.UnionType else (kind if isinstance(form, dict | list) else form,)
    if not any(_fits(value, each) for each in kinds):
        wanted = " or ".join(WORDS.get(get_origin(each) or each, "nothing") for each in kinds)
        shown = json.dumps(value, default=str)[:60]
        raise error(f"{path}: {place.lstrip('.') or 'the file'} must be {wanted}; it is {shown}.")
    if isinstance(form, dict):
        inner = {name.removeprefix("?"): each for name, each in form.items()}
        if missing := [name for name in form if name[0] != "?" and name not in value]:
            raise error(f"{path}: {place or 'the file'} has no '{missing[0]}'.")
    elif kind is list:
        for number, each in enumerate(value, 1):
            require_form(each, parts[0] if parts else form[0], path, f"{place}[{number}]", error)
        return
    else:
        inner = dict.fromkeys(value, parts[1]) if kind is dict else {}
    for name in [name for name in inner if name in value]:
        require_form(value[name], inner[name], path, f"{place}.{name}", error)


def _fits(value: Any, form: Any) -> bool:
    kind = get_origin(form) or form
    if kind in (int, float):  # of 64 bits; true and false are no numbers here
        number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return number and bool(abs(value) < 2**63)
    return form is Any or (value is None if kind in (None, type(None)) else isinstance(value, kind))


# Tables: text from strangers, checked before it is believed; and those that Beholder writes

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
