"""Tables from strangers: read as they stand, or refused with the file, the line and what is wrong."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError, MissingData
from beholder.core.read import read_delimited, read_table, require_columns


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.csv"


def test_cells_are_stripped_empty_ones_null_and_unnamed_columns_dropped(path: Path):
    path.write_text("\ufeff text , ,Unnamed: 0,Unnamed,n\n a b ,x,0,1,\n\n,y,1,2, 3\n", encoding="utf-8")
    assert read_delimited(path).to_dicts() == [{"text": "a b", "n": None}, {"text": None, "n": "3"}]


@pytest.mark.parametrize("inside", ["\n", "\r\n", "\u2028", "\x85", "\x0c", ",", '""'])
def test_what_stands_in_quotes_is_one_cell_and_stays_as_it_is(path: Path, inside: str):
    path.write_bytes(f'text,n\n"two{inside}halves",1\nb,2\n'.encode())
    cell = f"two{inside}halves".replace('""', '"')
    assert read_delimited(path).rows() == [(cell, "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the table is empty"),
        (b"\n\n", "the table is empty"),
        (b"a,b\n1,2\n\n3\n", "line 4 has 1 cells, the header has 2"),
        (b'a,b\n"1\n1",2\n3\n', "line 4 has 1 cells, the header has 2"),
        (b"a,b, a\n1,2,3\n", "the column 'a' occurs more than once"),
        (b"a\nx\ncaf\xe9\n", r"line 3 is not UTF-8 text \(byte 0xe9\)"),
        (b"a\n" + b"x" * 200_000, "line 2 cannot be read: field larger"),
    ],
    ids=["nothing", "blank", "short", "short after a long cell", "twice", "latin", "endless"],
)
def test_what_is_no_table_is_refused_with_its_place(path: Path, content: bytes, told: str):
    path.write_bytes(content)
    with pytest.raises(DataError, match=told):
        read_delimited(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_first_line_says_what_stands_between_cells(path: Path, delimiter: str, encoding: str):
    path.write_bytes(f'a{delimiter}"b,;\t,;\t"\r\n1{delimiter}"2,3; 4"\r\n{delimiter}\r\n'.encode(encoding))
    assert read_table(path).to_dicts() == [{"a": "1", "b,;\t,;": "2,3; 4"}]


def test_json_lines_are_a_table_and_a_bad_line_is_named(tmp_path: Path):
    path = tmp_path / "metadata.jsonl"
    path.write_text('{"file_name": "a.png", "age": 3}\n\n{"file_name": "b.png", "ok": true, "age": 4.5}\n')
    assert read_table(path).rows() == [("a.png", 3.0, None), ("b.png", 4.5, "true")]
    path.write_text('{"a": 1}\nnothing\n')
    with pytest.raises(DataError, match="line 2 is not readable JSON"):
        read_table(path)


def test_parquet_keeps_its_types_and_damaged_parquet_is_told(tmp_path: Path):
    table = pl.DataFrame({"n": [1, 2]})
    table.write_parquet(tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").equals(table)
    (tmp_path / "odd.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"odd\.parquet cannot be read as Parquet"):
        read_table(tmp_path / "odd.parquet")


def test_a_table_that_is_not_there_is_said_to_be_missing(path: Path):
    for read in (read_table, read_delimited):
        with pytest.raises(MissingData, match="is not there"):
            read(path)


def test_a_missing_column_is_named_beside_those_that_exist(path: Path):
    require_columns(pl.DataFrame({"a": [1], "b": [2]}), ["a"], path)
    with pytest.raises(DataError, match=r"the column 'c' is missing\.\nThe table has: a, b\."):
        require_columns(pl.DataFrame({"a": [1], "b": [2]}), ["a", "c", "d"], path)


def test_a_line_of_json_may_hold_a_separator_of_lines(tmp_path: Path):
    path = tmp_path / "people.jsonl"
    path.write_bytes('{"image": "a.png", "place": "Rue\u2028Haute"}\r\n{"image": "b.png", "place": "x"}\n'.encode())
    assert read_table(path)["place"].to_list() == ["Rue\u2028Haute", "x"]


def test_latin_1_behind_a_byte_order_mark_is_named_by_line_and_byte(tmp_path: Path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xef\xbb\xbfimage,gender\na.png,m\xe4nnlich\n")
    with pytest.raises(DataError, match=r"people.csv: line 2 is not UTF-8 text \(byte 0xe4\)."):
        read_table(path)
