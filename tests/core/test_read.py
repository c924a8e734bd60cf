"""The doors: what is not of the promised form is refused with the file and the place, and costs no memory."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder.core import read
from beholder.core.errors import BadScores, DataError, MissingData, ModelError, UsageError
from beholder.core.progress import ran_out
from beholder.core.read import read_array, read_json, read_parquet, read_toml, require_form


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", r"a number without end \(999999999999…\)"),
        ('{"a": 1e999}', "a number without end"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{"a": ', "is not readable JSON: Expecting value: line 1"),
    ],
)
def test_json_that_cannot_be_held_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ModelError, match=told):
        read_json(tmp_path / "a.json", ModelError)


def test_json_keeps_large_numbers_that_a_float_can_hold(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"model_max_length": {10**30}, "limit": Infinity}}')
    assert read_json(tmp_path / "a.json") == {"model_max_length": 10**30, "limit": float("inf")}


@pytest.mark.parametrize("text", ["a = " + "[" * 10_000, "a = " + "9" * 5000, f"a = {2**63}", "a ="])
def test_toml_that_cannot_be_held_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UsageError, match=r"a\.toml is (nested too deeply|not TOML)"):
        read_toml(tmp_path / "a.toml")


def test_what_is_no_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingData, match="is not there"):
        read_json(tmp_path / "nothing.json")
    with pytest.raises(DataError, match="File name too long"):
        read_json(tmp_path / ("x" * 300))
    (tmp_path / "large").write_bytes(b"1234")
    monkeypatch.setattr(read, "LARGEST", 3)
    with pytest.raises(DataError, match="too large"):
        read_json(tmp_path / "large")


def npy(**header: Any) -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, {"descr": "<f4", "fortran_order": False, "shape": (2, 2), **header})
    return sink.getvalue() + np.arange(4, dtype=np.float32).tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, order: Any) -> None:
    cells = np.arange(24, dtype=np.float32).reshape(2, 3, 4, order=order)
    np.save(tmp_path / "a.npy", cells)
    np.savez_compressed(tmp_path / "a.npz", cells)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), cells)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npz"), cells)


@pytest.mark.parametrize(
    "data",
    [
        npy(shape=(10**6, 10**6)),
        npy(descr="|O"),
        npy(descr="<U4"),
        npy().replace(b"{", b"(", 1),
        npy().replace(b"(2, 2)", b"((2, 2", 1),
        b"",
        b"PK\x03\x04",
    ],
)
def test_an_array_is_never_larger_than_its_file_and_never_run(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(BadScores, match="is not a NumPy array file"):
        read_array(tmp_path / "a.npy", BadScores)


def test_an_archive_that_would_unpack_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arr_0.npy", npy(shape=(500, 500)) + bytes(1_000_000))
    monkeypatch.setattr(read, "LARGEST", 100_000)
    with pytest.raises(DataError, match="an array of 10"):
        read_array(tmp_path / "a.npz")


def test_tables_are_cast_where_nothing_is_lost_and_refused_where_it_is(tmp_path: Path) -> None:
    columns = {"name": pl.String, "value": pl.Float64, "n": pl.Int64, "later": pl.String}
    table = pl.DataFrame({"name": [1, 2], "value": [1, 2], "n": [3, None], "more": ["a", "b"]})
    table.write_parquet(tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet", columns).rows() == [("1", 1.0, 3, None), ("2", 2.0, None, None)]
    for odd, told in (
        (table.with_columns(value=pl.lit("much")), "the column 'value' holds String, where Float64 is expected"),
        (table.with_columns(n=pl.lit(0.5)), "the column 'n' holds Float64"),
        (table.with_columns(n=pl.lit(2**64 - 1, pl.UInt64)), "the column 'n' does not fit into Int64"),
        (table.with_columns(more=pl.lit([1, 2])), "the column 'more' holds List"),
        (table.with_columns(more=pl.lit(b"a")), "the column 'more' holds Binary"),
    ):
        odd.write_parquet(tmp_path / "a.parquet")
        with pytest.raises(DataError, match=told):
            read_parquet(tmp_path / "a.parquet", columns)


def test_a_small_file_that_claims_many_cells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl.DataFrame({"a": [1] * 600, "b": [2] * 600}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(read, "MOST_CELLS", 1000)
    with pytest.raises(DataError, match="600 rows of 2 columns are more than 1000 cells"):
        read_parquet(tmp_path / "a.parquet")


FORM = {"name": str, "?size": float | None, "?notes": list[str]}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "the file must be an object"),
        ({}, "the file has no 'name'"),
        ({"name": 3}, "name must be a text; it is 3"),
        ({"name": "a", "size": "b"}, "size must be a number or nothing"),
        ({"name": "a", "size": float("nan")}, "size must be a number"),
        ({"name": "a", "size": True}, "size must be a number"),
        ({"name": "a", "notes": ["b", None]}, r"notes\[2\] must be a text; it is null"),
    ],
)
def test_the_form_of_a_value_is_checked_to_its_leaves(value: object, told: str) -> None:
    require_form({"name": "a", "size": None, "notes": [], "more": 1}, FORM, Path("a.json"))
    with pytest.raises(DataError, match=told):
        require_form(json.loads(json.dumps(value)), FORM, Path("a.json"))


def test_every_library_has_its_own_words_for_no_memory() -> None:
    said = ("std::bad_alloc", "[Errno 12] Cannot allocate memory", "x.so: failed to map segment from shared object")
    assert all(ran_out(RuntimeError(text)) for text in (*said, "can't start new thread", "CUDA out of memory"))
    assert ran_out(MemoryError())
    assert not ran_out(ValueError("no such name"))
