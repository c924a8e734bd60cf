"""Damage to files, by format: bytes that are lost or changed, and values of a kind that nobody expects there.

Every function takes a valid file and a source of chance and gives a damaged one; equal chance gives equal damage.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

DEEP = 3000
ODD_TEXTS = (
    "", " ", "\0", "a\nb", "\ufeff", "é" * 300, "=1+1", "null", "NaN", "-inf", "1e999", "9" * 400, "../../x", "/", "{}",
    "[", '"', "'", "%s", "{0}", "\u202e", "𝕏", "*", "a=b&c", "&&", "🙂", "<b>", "nan", "-0", "0", "1", "true",
    'crop:{"path":"/etc/hostname","box":[0,0,1,1]}', "wds:/etc/hostname#0+1#a", "hf:/etc/hostname#0+0#image",
    "/etc/hostname", "file:///etc/hostname", "http:\\/\\/127.0.0.1:9\\/a.png", "C:\\x", "\\\\host\\x",
)  # fmt: off
ODD_NUMBERS = (0, -1, 1, 2, 0.5, -0.5, 1.5, 1e-300, 1e300, -1e300, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30, 1e18)
"""Each is a number somewhere; few are where they land."""


def odd_value(rng: Random) -> Any:
    """A JSON value that is hardly the one expected."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: rng.choice((True, False)),
        lambda: rng.choice(ODD_NUMBERS),
        lambda: rng.choice((float("nan"), float("inf"), -float("inf"))),
        lambda: rng.choice(ODD_TEXTS),
        lambda: "\ud800" if rng.random() < 0.3 else rng.choice(ODD_TEXTS),
        lambda: [],
        lambda: {},
        lambda: [rng.choice(ODD_TEXTS), rng.choice(ODD_NUMBERS), None],
        lambda: {rng.choice(ODD_TEXTS): rng.choice(ODD_NUMBERS)},
        lambda: [[1], [[2]]],
    )
    return rng.choice(kinds)()


def damaged_bytes(data: bytes, rng: Random) -> bytes:
    """Bits flipped, a piece lost, doubled, zeroed or exchanged, or the end cut off."""
    if not data:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice((1, 1, 2, 4, 8, 32, 200)))
    kind = rng.randrange(7)
    if kind == 0:
        piece = bytes(byte ^ 1 << rng.randrange(8) for byte in data[start:end])
        return data[:start] + piece + data[end:]
    if kind == 1:
        return data[:start]
    if kind == 2:
        return data[:start] + data[end:]
    if kind == 3:
        return data[:start] + data[start:end] * rng.randrange(2, 5) + data[end:]
    if kind == 4:
        return data[:start] + b"\0" * (end - start) + data[end:]
    if kind == 5:
        other = rng.randrange(len(data))
        return data[:start] + data[other : other + end - start] + data[end:]
    return data[:start] + bytes(rng.randrange(256) for _ in range(end - start)) + data[end:]


def damaged_json(data: bytes, rng: Random) -> bytes:
    """Values of another kind, keys that are gone or renamed, numbers without end, nesting without end."""
    if rng.random() < 0.25:
        return damaged_bytes(data, rng)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = _replaced(value, rng)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.1:
        scalars = [place for place in range(len(text)) if text[place] in "0123456789"]
        if scalars:
            place = rng.choice(scalars)
            text = text[:place] + rng.choice(("9" * 5000, "1e999", "[" * DEEP, '{"a":' * DEEP)) + text[place:]
    if rng.random() < 0.05:
        text = "[" * DEEP + text + "]" * DEEP
    return text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")


def _replaced(value: Any, rng: Random) -> Any:
    """The value with something in it changed: whole branches seldom, leaves often."""
    if isinstance(value, dict) and value and rng.random() < 0.92:
        key = rng.choice(list(value))
        kind = rng.randrange(8)
        if kind == 0:
            return {name: each for name, each in value.items() if name != key}
        if kind == 1:
            return {**value, rng.choice(ODD_TEXTS): value[key]}
        return {**value, key: _replaced(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.92:
        place = rng.randrange(len(value))
        kind = rng.randrange(8)
        if kind == 0:
            return value[:place] + value[place + 1 :]
        if kind == 1:
            return [*value, value[place]]
        return [*value[:place], _replaced(value[place], rng), *value[place + 1 :]]
    return odd_value(rng)


def damaged_lines(data: bytes, rng: Random) -> bytes:
    """JSON lines: one of them damaged, or bytes."""
    if rng.random() < 0.5:
        return damaged_bytes(data, rng)
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    lines[place] = damaged_json(lines[place] or b"{}", rng)
    return b"\n".join(lines)


def damaged_toml(data: bytes, rng: Random) -> bytes:
    """Lines lost, doubled or moved; values of another kind; nesting and numbers without end."""
    if rng.random() < 0.3:
        return damaged_bytes(data, rng)
    lines = data.decode().split("\n")
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(lines))
        key, equals, _ = lines[place].partition("=")
        values = (
            "[" * DEEP, "[" * DEEP + "]" * DEEP, "9" * 5000, "1e999", "nan", "-inf", "true", "{a = 1}", "[1, 'a']",
            "2020-01-01", "''", '"\\u0000"', "[]", "[[]]", "10" + "0" * 30, "-1", "0x10", "1979-05-27T07:32:00Z",
            json.dumps(rng.choice(ODD_TEXTS)),
        )  # fmt: off
        changed = f"{key}= {rng.choice(values)}" if equals else rng.choice(("[", "[a.b]", "[[rule]]", "a.b.c = 1"))
        lines[place : place + 1] = rng.choice(([changed], [changed], [], [lines[place]] * 2, [lines[place], changed]))
    return "\n".join(lines).encode("utf-8", "replace")


def damaged_csv(data: bytes, rng: Random) -> bytes:
    """Cells, columns and rows that do not fit; other encodings; quotes that do not close; a cell without end."""
    kind = rng.random()
    if kind < 0.25:
        return damaged_bytes(data, rng)
    if kind < 0.35:
        text = data.decode("utf-8", "replace")
        return rng.choice(
            (
                lambda: text.encode("utf-16"),
                lambda: b"\xef\xbb\xbf" + data,
                lambda: text.encode("latin-1", "replace") + b"\xe9",
                lambda: text.replace(",", ";").encode(),
                lambda: text.replace("\n", "\r").encode(),
                lambda: text.replace(",", "\t").encode(),
                lambda: text.replace("\n", "\n\n").encode(),
                lambda: data + b'"' + b"x" * 140_000,
            )
        )()
    rows = [line.split(",") for line in data.decode("utf-8", "replace").split("\n")]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.randrange(len(rows))
        column = rng.randrange(max(1, len(rows[row])))
        change = rng.randrange(7)
        if change <= 2:
            rows[row][column : column + 1] = [rng.choice(ODD_TEXTS)]
        elif change == 3:
            rows[row].append(rng.choice(ODD_TEXTS))
        elif change == 4:
            rows.insert(row, list(rows[rng.randrange(len(rows))]))
        elif change == 5:
            rows = [[cell for place, cell in enumerate(each) if place != column] for each in rows]
        else:
            rows = rows[:row] + rows[row + 1 :] or [[]]
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")


def damaged_parquet(data: bytes, rng: Random) -> bytes:
    """Columns of another type, renamed, doubled, lost or half empty; rows lost and doubled; or bytes."""
    if rng.random() < 0.3:
        return damaged_bytes(data, rng)
    table = pq.read_table(io.BytesIO(data))
    columns = list(zip(table.column_names, table.columns, strict=True))
    for _ in range(rng.choice((1, 1, 2))):
        if not columns:
            break
        place = rng.randrange(len(columns))
        name, values = columns[place]
        change = rng.randrange(9)
        if change <= 2:
            columns[place] = (name, _odd_column(values, rng))
        elif change == 3:
            columns[place] = (rng.choice((*ODD_TEXTS, *table.column_names)), values)
        elif change == 4:
            columns.append((name, values))
        elif change == 5:
            del columns[place]
        else:
            columns[place] = (name, _odd_cells(values, rng))
    if rng.random() < 0.2 and table.num_rows:
        rows = [rng.randrange(table.num_rows) for _ in range(rng.choice((0, 1, table.num_rows)))]
        columns = [(name, values.take(pa.array(rows, pa.int64()))) for name, values in columns]
    sink = io.BytesIO()
    made = pa.Table.from_arrays([values for _, values in columns], names=[name for name, _ in columns])
    pq.write_table(made, sink, compression=rng.choice(("zstd", "snappy", "none")))
    return sink.getvalue()


def _odd_column(values: pa.ChunkedArray, rng: Random) -> pa.ChunkedArray:
    """The same number of cells, of another type."""
    n = len(values)
    makers: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.nulls(n),
        lambda: pa.array([rng.choice((1, 0, -1, None, 2**40)) for _ in range(n)], pa.int64()),
        lambda: pa.array([rng.choice((1.5, float("nan"), float("inf"), None, -1e300)) for _ in range(n)], pa.float64()),
        lambda: pa.array([rng.choice((True, False, None)) for _ in range(n)]),
        lambda: pa.array([rng.choice((*ODD_TEXTS, None)) for _ in range(n)], pa.string()),
        lambda: pa.array([rng.choice((b"\xff\xfe", b"a", None)) for _ in range(n)], pa.binary()),
        lambda: pa.array([rng.choice(([1, 2], [], None)) for _ in range(n)], pa.list_(pa.int64())),
        lambda: pa.array([{"a": 1, "b": "x"}] * n, pa.struct({"a": pa.int64(), "b": pa.string()})),
        lambda: pa.array([rng.choice((0, 10**9, None)) for _ in range(n)], pa.timestamp("us")),
        lambda: pa.array([1] * n, pa.date32()),
        lambda: pa.array([1] * n, pa.time64("us")),
        lambda: pa.array([2**64 - 1] * n, pa.uint64()),
        lambda: pa.array([1] * n, pa.decimal128(38, 5)),
        lambda: pa.array([1] * n, pa.duration("us")),
        lambda: pa.array([0.1] * n, pa.float16()),
        lambda: pa.array([rng.choice(("a", "b")) for _ in range(n)]).dictionary_encode(),
        lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([b"ab"] * n, pa.binary(2)),
    )
    return pa.chunked_array([rng.choice(makers)()])


def _odd_cells(values: pa.ChunkedArray, rng: Random) -> pa.ChunkedArray:
    """Some cells changed to odd ones of the same type, or to null."""
    cells = values.to_pylist()
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        odd: tuple[Any, ...] = (*ODD_TEXTS, None)
    elif pa.types.is_floating(kind):
        odd = (None, float("nan"), float("inf"), -1e300, 1e300, 0.0, -1.0, 5.0, 1e-300)
    elif pa.types.is_integer(kind) and kind.bit_width == 64:
        odd = (None, 0, 1, 2**62) if pa.types.is_unsigned_integer(kind) else (None, 0, -1, 1, 2**62, -(2**62))
    else:
        odd = (None,)
    for _ in range(rng.choice((1, 2, 5))):
        if cells:
            cells[rng.randrange(len(cells))] = rng.choice(odd)
    return pa.chunked_array([pa.array(cells, kind)])


def damaged_npy(data: bytes, rng: Random) -> bytes:
    """The header's words, the kind of number, the shape; or bytes."""
    kind = rng.random()
    if kind < 0.3:
        return damaged_bytes(data, rng)
    if kind < 0.6:
        array = np.load(io.BytesIO(data))
        makers: tuple[Callable[[], Any], ...] = (
            lambda: array.astype(np.complex64),
            lambda: array.astype("U4"),
            lambda: array.astype("M8[s]"),
            lambda: array.astype(np.float16),
            lambda: array.ravel(),
            lambda: array[..., None],
            lambda: array[:0],
            lambda: array > 0,
            lambda: np.full_like(array, rng.choice((np.nan, np.inf, 0, -1e30))),
            lambda: np.asfortranarray(array),
            lambda: np.array(1.0),
            lambda: np.zeros(3, dtype=[("a", "f4"), ("b", "U2")]),
            lambda: np.array([{"a": 1}], dtype=object),
        )
        sink = io.BytesIO()
        with np.errstate(all="ignore"):
            np.save(sink, rng.choice(makers)(), allow_pickle=True)
        return sink.getvalue()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + length].decode()
    changes = (
        ("<f4", rng.choice(("<f8", "|O", "<U9999999", "V8", ">i2", "x", "<M8[s]", "<f3"))),
        ("(", rng.choice(("(((", "(10**12, ", "(-1, ", "(9" + "9" * rng.choice((12, 30)) + ", ", "('a', "))),
        ("False", rng.choice(("True", "0", "None", "__import__('os')"))),
        ("}", rng.choice(("", "}}", ", 'x': 1}", "'"))),
        ("{", rng.choice(("", "[", "{{", "{" * 500))),
        (" ", rng.choice(("\n", "\t", "'", "\\", "#"))),
    )
    header = header.replace(*rng.choice(changes), 1)
    packed = header.encode()
    return data[:8] + struct.pack("<H", min(65535, len(packed))) + packed + data[10 + length :]


def damaged_gzip(data: bytes, rng: Random) -> bytes:
    """The packed bytes damaged, or what is in them."""
    if rng.random() < 0.6:
        return damaged_bytes(data, rng)
    return gzip.compress(damaged_bytes(gzip.decompress(data), rng), 1)


def damaged_text(data: bytes, rng: Random) -> bytes:
    """A name or a line: odd texts in it, or bytes."""
    if rng.random() < 0.4:
        return damaged_bytes(data, rng)
    text = data.decode("utf-8", "replace")
    place = rng.randrange(len(text) + 1)
    odd = rng.choice((*ODD_TEXTS, "x" * 5000, ":", "@", "//", "..", "~", "\udc80", "\r", "\t", "\x1b[31m", "?", "#"))
    return (text[:place] + odd + text[place + rng.choice((0, 0, 1, 5)) :]).encode("utf-8", "surrogateescape")


def parquet_of(table: pl.DataFrame) -> bytes:
    """A frame as a Parquet file."""
    sink = io.BytesIO()
    table.write_parquet(sink)
    return sink.getvalue()


DAMAGE: dict[str, Callable[[bytes, Random], bytes]] = {
    ".json": damaged_json,
    ".jsonl": damaged_lines,
    ".toml": damaged_toml,
    ".csv": damaged_csv,
    ".tsv": damaged_csv,
    ".parquet": damaged_parquet,
    ".npy": damaged_npy,
    ".gz": damaged_gzip,
    ".name": damaged_text,
}


def damaged(name: str, data: bytes, rng: Random) -> bytes:
    """A file damaged as its ending suggests."""
    ending = name[name.rfind(".") :]
    return DAMAGE.get(ending, damaged_bytes)(data, rng)
