"""Caption files: every layout gives its captions, and what cannot be read is given as None, not as text."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError, MissingData
from beholder.studies.exposure import captions
from beholder.studies.exposure.captions import CaptionFile

SAID = ["a dog", "Ana Díaz, “in red”", 'say "hi"', "x"]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    data = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def tsv(header: str = "caption") -> str:
    return f"url\t{header}\n" + "".join(f"http://x\t{said}\n" for said in SAID)


def csv_text() -> str:
    return pl.DataFrame({"url": ["u"] * len(SAID), "TEXT": SAID}).write_csv()


def jsonl() -> str:
    return "".join(json.dumps({"text": said, "url": "u"}) + "\n" for said in SAID)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "\n".join(SAID)),
        ("a.caption", "\r\n".join(SAID) + "\r\n"),
        ("noending", "\ufeff" + "\n".join(SAID)),
        ("a.txt.gz", "\n".join(SAID)),
        ("a.tsv", tsv()),
        ("a.TSV", tsv("TEXT")),
        ("a.tsv.gz", tsv("text")),
        ("a.csv", csv_text()),
        ("a.csv.gz", csv_text()),
        ("a.jsonl", jsonl()),
        ("a.jsonl.gz", jsonl()),
        ("a.json", json.dumps({"info": {}, "annotations": [{"id": 1, "caption": said} for said in SAID]})),
    ],
)
def test_every_layout_gives_its_captions(tmp_path: Path, name: str, text: str):
    assert list(CaptionFile(write(tmp_path, name, text))) == SAID


def test_parquet_gives_its_captions_and_nulls_are_empty(tmp_path: Path):
    pl.DataFrame({"URL": ["u"] * 5, "TEXT": [*SAID, None]}).write_parquet(tmp_path / "a.parquet", row_group_size=2)
    assert list(CaptionFile(tmp_path / "a.parquet")) == [*SAID, ""]


def test_numbers_in_place_of_captions_cannot_be_read(tmp_path: Path):
    pl.DataFrame({"text": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    assert list(CaptionFile(tmp_path / "a.parquet")) == [None, None]
    path = write(tmp_path, "a.json", json.dumps({"annotations": [{"caption": 3}, {"id": 1}, {"caption": "x"}]}))
    assert list(CaptionFile(path)) == [None, None, "x"]


def test_another_column_goes_by_its_name_or_without_a_header_by_its_number(tmp_path: Path):
    path = write(tmp_path, "a.tsv", "one\ttwo\nA\tB\n")
    assert list(CaptionFile(path, "two")) == ["B"]
    assert list(CaptionFile(path, "2")) == ["two", "B"]


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("a.txt", b"good\n\xff bad\ngood", ["good", None, "good"]),
        ("a.tsv", b"caption\turl\nA\tu\nonly\nB\tu\tmore\nC\tu\n", ["A", None, None, "C"]),
        ("a.tsv", b'caption\turl\n"unclosed\tu\nB\tu\n', ['"unclosed', "B"]),
        ("a.csv", b"caption,url\nA,u\n\xff,u\nonly\nB,u\n", ["A", None, None, "B"]),
        ("a.csv", b'caption\n"two\nlines"\n\nB\n', ["two\nlines", "B"]),
        (
            "a.jsonl",
            b'{"text": "A"}\n{"text": \n[1]\n{"other": 1}\n{"text": 5}\n\n{"text": "B"}',
            ["A", *[None] * 4, "B"],
        ),
    ],
)
def test_what_cannot_be_read_is_given_as_none_and_the_rest_is_read(
    tmp_path: Path, name: str, text: bytes, given: list[str | None]
):
    assert list(CaptionFile(write(tmp_path, name, text))) == given


def test_a_field_without_end_costs_one_record_and_not_the_file(tmp_path: Path):
    path = write(tmp_path, "a.csv", 'caption\nA\n"' + "word " * 30_000 + "\n" + "B\n" * 3)
    given = list(CaptionFile(path))
    assert given == ["A", None, "B", "B", "B"]


def test_a_line_without_end_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(captions, "LONGEST_LINE", 64)
    text = "A\n" + "x" * 1000 + "\n" + "y" * 63 + "\nB\n" + "z" * 65
    assert list(CaptionFile(write(tmp_path, "a.txt", text))) == ["A", None, "y" * 63, "B", None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz", "a.parquet", "a.json"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str):
    def peak(rows: int) -> int:
        said = [f"a caption of no great length, number {row}" for row in range(rows)]
        if name.endswith("parquet"):
            pl.DataFrame({"text": said}).write_parquet(tmp_path / name, row_group_size=2000)
        elif name.endswith("json"):
            write(tmp_path, name, json.dumps({"annotations": [{"caption": each} for each in said]}))
        else:
            write(tmp_path, name, "text\n" + "\n".join(said))
        del said
        tracemalloc.start()
        for _ in CaptionFile(tmp_path / name):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few = peak(30_000)
    assert peak(90_000) < few * 1.5


def test_a_wrong_column_is_answered_with_those_that_exist(tmp_path: Path):
    path = write(tmp_path, "a.tsv", "url\talt\nu\tA\n")
    with pytest.raises(DataError, match=r"(?s)no column 'caption' or 'TEXT' or 'text'. It has: url, alt.*--column"):
        list(CaptionFile(path))
    pl.DataFrame({"alt": ["A"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"no column 'mine'\. It has: alt"):
        list(CaptionFile(tmp_path / "a.parquet", "mine"))


def test_files_that_are_cut_off_are_told_by_name(tmp_path: Path):
    whole = gzip.compress(b"a caption\n" * 9999)
    (tmp_path / "a.txt.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.txt.gz").write_bytes(b"no gzip at all")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "a.json").write_text('{"annotations": [{"caption": "A"}')
    for name in ("a.txt.gz", "b.txt.gz", "a.parquet", "a.json"):
        with pytest.raises(DataError, match=name):
            list(CaptionFile(tmp_path / name))


def test_what_is_not_there_or_packed_is_told_at_once(tmp_path: Path):
    with pytest.raises(MissingData, match="no caption file"):
        CaptionFile(tmp_path / "a.txt")
    with pytest.raises(DataError, match="gunzip"):
        CaptionFile(write(tmp_path, "a.json.gz", "{}"))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.json", "a.parquet"])
def test_the_bytes_read_grow_up_to_the_size(tmp_path: Path, name: str):
    said = [f"caption {row}" for row in range(20_000)]
    if name.endswith("parquet"):
        pl.DataFrame({"text": said}).write_parquet(tmp_path / name)
    else:
        text = "\n".join(said) if "txt" in name else json.dumps({"annotations": [{"caption": each} for each in said]})
        write(tmp_path, name, text)
    file = CaptionFile(tmp_path / name)
    read = [file.bytes_read for _ in file]
    assert read == sorted(read)
    assert 0 < read[-1] <= file.size


@pytest.mark.parametrize("number", ["0", "3"])
def test_a_column_beyond_the_file_is_refused(tmp_path: Path, number: str):
    path = tmp_path / "a.tsv"
    path.write_text("1\tone\n2\ttwo\n")
    with pytest.raises(DataError, match=rf"no column {number}\. Its columns are numbered 1 to 2"):
        list(CaptionFile(path, number))
