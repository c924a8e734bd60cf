"""Caption files: every layout gives its captions, and what cannot be read is given as None, not as text."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beholder.core.errors import DataError, MissingData
from beholder.studies.exposure import captions
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.mentions import words_of

SAID = ["a dog", "Ana Díaz, “in red”", 'say "hi"', "x"]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    data = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    packed = {".gz": gzip.compress, ".zst": lambda each: pa.compress(each, "zstd", asbytes=True)}
    path.write_bytes(packed[path.suffix](data) if path.suffix in packed else data)
    return path


def captions_of(file: CaptionFile) -> list[str | None]:
    """Every caption; None for a record that cannot be read."""
    return [caption for part in file.parts() for caption in part.captions]


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
        ("a.tsv.zst", tsv("text")),
        ("a.csv.zst", csv_text()),
        ("a.csv", csv_text()),
        ("a.csv.gz", csv_text()),
        ("a.jsonl", jsonl()),
        ("a.jsonl.gz", jsonl()),
        ("a.json", json.dumps({"info": {}, "annotations": [{"id": 1, "caption": said} for said in SAID]})),
    ],
)
def test_every_layout_gives_its_captions(tmp_path: Path, name: str, text: str):
    assert captions_of(CaptionFile(write(tmp_path, name, text))) == SAID


def test_parquet_gives_its_captions_and_nulls_are_empty(tmp_path: Path):
    pl.DataFrame({"URL": ["u"] * 5, "TEXT": [*SAID, None]}).write_parquet(tmp_path / "a.parquet", row_group_size=2)
    assert captions_of(CaptionFile(tmp_path / "a.parquet")) == [*SAID, ""]


def test_numbers_in_place_of_captions_cannot_be_read(tmp_path: Path):
    pl.DataFrame({"text": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    assert captions_of(CaptionFile(tmp_path / "a.parquet")) == [None, None]
    path = write(tmp_path, "a.json", json.dumps({"annotations": [{"caption": 3}, {"id": 1}, {"caption": "x"}]}))
    assert captions_of(CaptionFile(path)) == [None, None, "x"]


def test_another_column_goes_by_its_name_or_without_a_header_by_its_number(tmp_path: Path):
    path = write(tmp_path, "a.tsv", "one\ttwo\nA\tB\n")
    assert captions_of(CaptionFile(path, "two")) == ["B"]
    assert captions_of(CaptionFile(path, "2")) == ["two", "B"]


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("a.txt", b"good\n\xff bad\ngood", ["good", None, "good"]),
        ("a.tsv", b"caption\turl\nA\tu\nonly\nB\tu\tmore\nC\tu\n", ["A", None, None, "C"]),
        ("a.tsv", b'caption\turl\n"unclosed\tu\nB\tu\n', ['"unclosed', "B"]),
        ("a.csv", b"caption,url\nA,u\n\xff,u\nonly\nB,u\n", ["A", None, None, "B"]),
        ("a.csv", b'caption\n"two\nlines"\n\nB\n', ["two lines", "B"]),
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
    assert captions_of(CaptionFile(write(tmp_path, name, text))) == given


def test_a_field_without_end_costs_one_record_and_not_the_file(tmp_path: Path):
    path = write(tmp_path, "a.csv", 'caption\nA\n"' + "word " * 30_000 + "\n" + "B\n" * 3)
    given = captions_of(CaptionFile(path))
    assert given == ["A", None, "B", "B", "B"]


def test_a_line_without_end_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(captions, "LONGEST_LINE", 64)
    text = "A\n" + "x" * 1000 + "\n" + "y" * 63 + "\nB\n" + "z" * 65
    assert captions_of(CaptionFile(write(tmp_path, "a.txt", text))) == ["A", None, "y" * 63, "B", None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz", "a.parquet", "a.json"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str, small_parts: None):
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
        for part in CaptionFile(tmp_path / name).parts():
            assert len(part.captions)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    rows = 20_000 if name == "a.json" else 6_000
    few = peak(rows)
    assert peak(3 * rows) < few * 1.5 + 100_000


def test_a_wrong_column_is_answered_with_those_that_exist(tmp_path: Path):
    path = write(tmp_path, "a.tsv", "url\talt\nu\tA\n")
    with pytest.raises(DataError, match=r"(?s)no column 'caption' or 'TEXT' or 'text'. It has: url, alt.*--column"):
        captions_of(CaptionFile(path))
    pl.DataFrame({"alt": ["A"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"no column 'mine'\. It has: alt"):
        captions_of(CaptionFile(tmp_path / "a.parquet", "mine"))


def test_files_that_are_cut_off_are_told_by_name(tmp_path: Path):
    whole = gzip.compress(b"a caption\n" * 9999)
    (tmp_path / "a.txt.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.txt.gz").write_bytes(b"no gzip at all")
    zst = pa.compress(b"".join(b"caption %d\n" % i for i in range(99_999)), "zstd", asbytes=True)
    (tmp_path / "a.txt.zst").write_bytes(zst[: len(zst) // 2])
    (tmp_path / "b.txt.zst").write_bytes(b"no zstandard at all")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "a.json").write_text('{"annotations": [{"caption": "A"}')
    for name in ("a.txt.gz", "b.txt.gz", "a.txt.zst", "b.txt.zst", "a.parquet", "a.json"):
        with pytest.raises(DataError, match=name):
            captions_of(CaptionFile(tmp_path / name))


def test_what_is_not_there_or_packed_is_told_at_once(tmp_path: Path):
    with pytest.raises(MissingData, match="no caption file"):
        CaptionFile(tmp_path / "a.txt")
    with pytest.raises(DataError, match="Unpack it first"):
        CaptionFile(write(tmp_path, "a.json.gz", "{}"))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.zst", "a.json", "a.parquet", "a.csv"])
def test_the_bytes_read_grow_up_to_the_size(tmp_path: Path, name: str, small_parts: None):
    said = [f"caption {row}" for row in range(20_000)]
    if name.endswith("parquet"):
        pl.DataFrame({"text": said}).write_parquet(tmp_path / name, row_group_size=3000)
    else:
        text = json.dumps({"annotations": [{"caption": each} for each in said]})
        write(tmp_path, name, text if name.endswith("json") else "\n".join(["text", *said]))
    file = CaptionFile(tmp_path / name)
    parts = list(file.parts())
    read = [part.read for part in parts]
    assert len(parts) > 5
    assert read == sorted(read)
    assert 0 < read[0] <= read[-1] <= file.size


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read a few records at a time."""
    for name, size in (("CHUNK", 4096), ("RANGE", 2), ("ROWS", 100), ("RECORDS", 500)):
        monkeypatch.setattr(captions, name, size)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.tsv", "a.tsv.zst", "a.jsonl", "a.parquet"])
def test_reading_goes_on_where_it_stopped_and_ranges_are_the_whole(tmp_path: Path, name: str, small_parts: None):
    """Parts are the same ones wherever reading begins; a line in the midst of which a part ends belongs to it."""
    said = [f"caption {row} é" + " longer" * (row % 97 == 0) * 900 for row in range(1500)]
    if name.endswith("parquet"):
        pl.DataFrame({"text": said}).write_parquet(tmp_path / name, row_group_size=100, compression="uncompressed")
    else:
        lines = [json.dumps({"text": each}) for each in said] if name == "a.jsonl" else said
        write(tmp_path, name, "\n".join(["text", *lines] if ".tsv" in name else lines))
    file = CaptionFile(tmp_path / name)
    parts = list(file.parts())
    assert [caption for part in parts for caption in part.captions] == said
    resumed = [number for number, part in enumerate(parts, 1) if part.resume is not None]
    assert len(resumed) > 3
    for number in resumed[:: max(1, len(resumed) // 6)]:
        rest = list(file.parts(parts[number - 1].resume or 0))
        assert [part.text for part in rest] == [part.text for part in parts[number:]]
        assert [part.resume for part in rest] == [part.resume for part in parts[number:]]
    for start in (0, parts[resumed[1] - 1].resume or 0):
        ranges = list(file.ranges(start))
        assert len(ranges) > 1 or Path(name).suffix in captions.PACKED
        pieces = [part.text for each in ranges for part in file.parts(*each)]
        assert pieces == [part.text for part in file.parts(start)]


@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz", "a.jsonl.zst", "a.parquet"])
def test_files_behind_a_uri_are_read_like_local_ones(tmp_path: Path, name: str):
    fsspec = pytest.importorskip("fsspec")
    if name.endswith("parquet"):
        pl.DataFrame({"text": SAID}).write_parquet(tmp_path / name)
    else:
        text = {"a.txt": "\n".join(SAID), "a.tsv.gz": tsv(), "a.jsonl.zst": jsonl()}[name]
        write(tmp_path, name, text)
    uri = f"memory://captions/{name}"
    with fsspec.open(uri, "wb") as file:
        file.write((tmp_path / name).read_bytes())
    assert captions_of(CaptionFile(uri)) == SAID == captions_of(CaptionFile(f"file://{tmp_path / name}"))
    assert CaptionFile(uri).size == (tmp_path / name).stat().st_size


def test_what_a_uri_cannot_give_is_told():
    fsspec = pytest.importorskip("fsspec")
    with pytest.raises(MissingData, match=r"no caption file at memory://nowhere/a\.txt"):
        CaptionFile("memory://nowhere/a.txt")
    for name in ("part-1.txt", "part-0.txt", "other.txt"):
        with fsspec.open(f"memory://many/{name}", "wb") as file:
            file.write(b"a dog\n")
    some = [file.path for file in captions.caption_files(["memory://many/part-*.txt"])]
    assert some == ["memory://many/part-0.txt", "memory://many/part-1.txt"]
    with pytest.raises(MissingData, match=r"no caption file like memory://many/p-\*"):
        captions.caption_files(["memory://many/p-*"])
    with pytest.raises(MissingData, match=r"nosuch://a\.txt cannot be opened"):
        CaptionFile("nosuch://a.txt")
    with fsspec.open("memory://captions/a.json", "wb") as file:
        file.write(b"{}")
    with pytest.raises(DataError, match="Copy it here first"):
        CaptionFile("memory://captions/a.json")


def test_half_a_character_is_no_letter_and_spoils_nothing(tmp_path: Path):
    path = write(tmp_path, "a.jsonl", '{"text": "Ana\\ud800Bo"}\n{"text": "x"}')
    assert [words_of(caption or "") for caption in captions_of(CaptionFile(path))] == [["ana", "bo"], ["x"]]


@pytest.mark.parametrize("number", ["0", "3"])
def test_a_column_beyond_the_file_is_refused(tmp_path: Path, number: str):
    path = tmp_path / "a.tsv"
    path.write_text("1\tone\n2\ttwo\n")
    with pytest.raises(DataError, match=rf"no column {number}\. Its columns are numbered 1 to 2"):
        captions_of(CaptionFile(path, number))


cells = st.text(st.sampled_from("ab é"), max_size=3)
rows = st.lists(st.lists(cells, min_size=0, max_size=4).map("\t".join), max_size=6)


@given(rows=rows, index=st.integers(0, 2))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_column_of_a_tsv_is_that_of_lines_with_all_cells(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], index: int
):
    path = tmp_path_factory.mktemp("tsv") / "a.tsv"
    path.write_text("".join(f"{row}\n" for row in ("x\ty\tz", *rows)))
    split = [row.split("\t") for row in rows if row]
    expected = [row[index] if len(row) == 3 else None for row in split]
    assert captions_of(CaptionFile(path, "xyz"[index])) == expected
