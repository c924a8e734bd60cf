"""What a damaged file really holds, by the standard library and Arrow: every value that was read must stand there.

`TRUTH` reads a file's bytes for all oracles; a test gives them other bytes, and every oracle has to notice.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import tarfile
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
Row = frozenset[str]


class WrongValueError(AssertionError):
    """A value that was read and does not stand in the file."""


class Truth:
    """The bytes of a file."""

    def read(self, path: Path) -> bytes:
        return path.read_bytes()


TRUTH = Truth()


def holds(true: object, what: str) -> None:
    if not true:
        raise WrongValueError(what)


def plain(value: object) -> str | None:
    """A cell as it is compared: texts without blanks around, numbers in five digits; None for nothing."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    text = unicodedata.normalize("NFC", str(value)).strip().lower().replace("infinity", "inf")
    if isinstance(value, int | float | np.number) or NUMBER.fullmatch(text):
        number = float(value if not isinstance(value, str) else text)
        return f"{number:.4e}" if np.isfinite(number) else None if np.isnan(number) else str(number)
    return None if text == "nan" else text or None


def texts_of(data: bytes) -> str:
    return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")


def rows_of(path: Path) -> list[dict[str, Any]] | None:
    """The records of a table; None where these means cannot tell."""
    data = TRUTH.read(path)
    try:
        if path.suffix == ".parquet":
            return [dict(row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
        if path.suffix == ".jsonl":
            return [row for line in texts_of(data).split("\n") if line.strip() and (row := dict(json.loads(line)))]
        text, tables = texts_of(data), list[list[list[str]]]()
        for delimiter in (",", ";", "\t"):
            with suppress(csv.Error):
                tables.append(
                    [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
                )
        best = max(tables, key=lambda rows: len(rows[0]))
        if text.count('"') % 2 or len({*map(str.strip, best[0])}) < len(best[0]):  # read in as many ways as readers
            return None
        return [dict(zip(map(str.strip, best[0]), row, strict=False)) for row in best[1:]]
    except (ValueError, IndexError, pa.ArrowException, OSError, TypeError, RecursionError):
        return None


def simple(row: dict[str, Any]) -> bool:
    return all(value is None or isinstance(value, str | int | float | bool) for value in row.values())


def each_from(path: Path, read: Iterable[Iterable[object]], *, every: bool = False, header: bool = False) -> None:
    """Every row that was read has all its values in one row of the file; with `every` none is lost."""
    rows = rows_of(path)
    if rows is None or not all(map(simple, rows)):
        return
    names = {plain(name) for row in rows[:1] for name in row} if header else set()
    known = [{plain(value) for value in row.values()} | names for row in rows]
    empty = full = 0  # a row whose cells are all empty may be left out of `rows`
    for values in read:
        cells = {plain(value) for value in values} - {None}
        empty, full = empty + (not cells), full + bool(cells)
        holds(not cells or any(cells <= row for row in known), f"{path.name}: no row holds {sorted(map(str, cells))}")
    holds(not every or full <= len(rows) <= full + empty, f"{path.name}: {full} to {full + empty} rows of {len(rows)}")


def cells_from(path: Path, images: list[str], prompts: list[str], values: np.ndarray) -> None:
    """Every score stands beside its image and its prompt in a wide or a long file."""
    rows = rows_of(path)
    if rows is None or not rows or not all(map(simple, rows)):
        return
    long = {"prompt_id", "score"} <= {str(name).strip() for name in rows[0]}
    for i, j in np.argwhere(~np.isnan(values)):
        value, image, prompt = plain(float(values[i, j])), plain(images[i]), plain(prompts[j])
        for row in rows:
            named = {plain(name): row[name] for name in row}
            here = image in (plain(named.get("image_id")), plain(named.get("file")))
            if long:
                here = here and _like(named.get("prompt_id"), prompt)
                found = {plain(named.get("score"))}
            else:
                found = {plain(row[name]) for name in row if _like(name, prompt)}
            if here and any(_close(one, value) for one in found):
                break
        else:
            raise WrongValueError(f"{path.name}: {value} of {image} and {prompt} stands nowhere")


def _like(one: object, other: str | None) -> bool:
    def same(text: object) -> str:
        return re.sub(r"\W+", "", str(plain(text)))

    return same(one) == same(other)


def _close(one: str | None, other: str | None) -> bool:
    one = {"true": "1", "false": "0"}.get(one or "", one)
    with suppress(TypeError, ValueError):
        return bool(np.isclose(np.float32(float(one or "x")), np.float32(float(other or "x")), rtol=1e-3, atol=1e-30))
    return one == other


def same_array(path: Path, values: np.ndarray) -> None:
    with suppress(ValueError, OSError, EOFError, SyntaxError, TypeError, UnicodeDecodeError, MemoryError):
        array = np.load(io.BytesIO(TRUTH.read(path)), allow_pickle=False)
        array = next(iter(array.values())) if isinstance(array, np.lib.npyio.NpzFile) else array
        right = np.asarray(array, np.float32)
        holds(values.shape == right.shape, f"{path.name}: {values.shape} is {right.shape}")
        holds(np.allclose(values, right, rtol=1e-4, equal_nan=True), f"{path.name}: numbers differ")


def captions_of(path: Path) -> Iterator[str]:
    """The captions of a file, whatever its form."""
    data = TRUTH.read(path)
    if path.suffix == ".gz":
        data, path = gzip.decompress(data), path.with_suffix("")
    if path.suffix == ".zst":
        data, path = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(), path.with_suffix("")
    if path.suffix == ".txt":
        yield from data.decode().split("\n")
    elif path.suffix == ".jsonl":
        yield from (str(json.loads(line)["text"]) for line in data.decode().split("\n") if line.strip())
    elif path.suffix == ".json":
        yield from (str(entry["caption"]) for entry in json.loads(data)["annotations"])
    elif path.suffix == ".parquet":
        yield from (str(text or "") for text in pq.read_table(io.BytesIO(data))["TEXT"].to_pylist())
    else:
        delimiter, quoting = ("\t", csv.QUOTE_NONE) if path.suffix == ".tsv" else (",", csv.QUOTE_MINIMAL)
        yield from (
            row["TEXT"] for row in csv.DictReader(io.StringIO(data.decode()), delimiter=delimiter, quoting=quoting)
        )


WORD = re.compile(r"(?:^|\s)dog(?:\s|$)")


def counts_between(path: Path, captions: int, dogs: int, malformed: int) -> None:
    """Captions with the word: no fewer than have blanks around it, no more than have its letters."""
    try:
        texts = [unicodedata.normalize("NFKC", text).casefold() for text in captions_of(path)]
    except Exception:  # damaged so that these means cannot read it
        return
    least, most = sum(bool(WORD.search(text)) for text in texts), sum("dog" in text for text in texts)
    holds(least - malformed <= dogs <= most, f"{path.name}: {dogs} captions say dog; between {least} and {most} do")
    holds(captions <= len(texts), f"{path.name}: {captions} captions of {len(texts)}")


def members_of(path: Path) -> dict[str, bytes]:
    """The files in a tar; empty if these means cannot read it."""
    with suppress(Exception), tarfile.open(fileobj=io.BytesIO(TRUTH.read(path))) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}  # type: ignore[union-attr]
    return {}


def pictures_of(path: Path) -> set[bytes]:
    """The pictures in a Parquet shard, or empty."""
    with suppress(Exception):
        column = pq.read_table(io.BytesIO(TRUTH.read(path)))["image"].to_pylist()
        return {cell if isinstance(cell, bytes) else cell["bytes"] for cell in column if cell}
    return set()


def entries_of(path: Path) -> Any:
    """What a JSON or TOML file says, or None."""
    data = TRUTH.read(path)
    with suppress(ValueError, RecursionError, LookupError):
        return tomllib.loads(texts_of(data)) if path.suffix == ".toml" else json.loads(texts_of(data))
    return None


def leaves(value: Any) -> set[str | None]:
    """Every text and number in nested entries, and their names; a path also by its last part."""
    if isinstance(value, dict):
        return set[str | None]().union(*map(leaves, value.values()), map(plain, value), [plain(value)])
    if isinstance(value, list):
        return set[str | None]().union(*map(leaves, value), [plain(value)])
    return {plain(value), plain(Path(value).name) if isinstance(value, str) else None}


def said_in(path: Path, values: Iterable[object], *more: str) -> None:
    """Every one of these stands somewhere in a file of nested entries."""
    entries = entries_of(path)
    if entries is not None:
        strange = {plain(value) for value in values} - leaves(entries) - {None, *more}
        holds(not strange, f"{path.name}: {sorted(map(str, strange))[:5]} stands nowhere")
