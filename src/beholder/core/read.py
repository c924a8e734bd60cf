"""The doors for files from outside: text, JSON, TOML, NumPy arrays and Parquet. `core/tables.py` has that for CSV.

What comes through a door is of the promised form. Anything else raises an error of ours that names the file and the
place; nothing behind the door has to check again. The caller says which error fits: `BadScores`, `ModelError` …
"""

import codecs
import io
import json
import re
import tomllib
import types
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
import polars as pl
from polars.exceptions import PanicException

from beholder.core.errors import BeholderError, DataError, MissingData, UsageError, first_line
from beholder.core.types import AnyArray, Entry

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
