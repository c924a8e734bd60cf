"""Counting: equal to looking for every name in every caption, and what was not read is told."""

from __future__ import annotations

import gzip
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beholder.core.errors import DataError
from beholder.studies.exposure import captions, counting
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import Mentions, Term

NAMES = ["Ana Diaz", "Bo Li", "Cy", "Ana", "dog"]


def write(path: Path, text: str) -> CaptionFile:
    path.write_text(text, encoding="utf-8")
    return CaptionFile(path)


def test_planted_counts_come_back(tmp_path: Path):
    rng = random.Random(2)
    said = [[rng.choice(["Ana Diaz", "BO LI", "cy", "ana", "a dog", "cat"]) for _ in range(3)] for _ in range(3000)]
    captions = [", ".join(words) for words in said]
    files = [write(tmp_path / f"{part}.txt", "\n".join(captions[part::2])) for part in range(2)]
    counts = count_captions(files, Mentions([Term("name", name) for name in NAMES]))
    without = [re.sub("Ana Diaz", "", caption) for caption in captions]
    for place, name in enumerate(NAMES):
        texts = without if name == "Ana" else captions
        expected = sum(bool(re.search(rf"\b{name}\b", text, re.IGNORECASE)) for text in texts)
        assert counts.apart[place] == expected
    assert counts.inside[3] == sum(
        "Ana Diaz" in a and not re.search(r"\bana\b", b, re.I) for a, b in zip(captions, without, strict=True)
    )
    assert counts.captions == 3000


def test_empty_and_malformed_records_are_counted_and_told(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"caption\turl\nAna\tu\n \tu\nbroken\n\xff\tu\nBo Li\tu\n")
    counts = count_captions([CaptionFile(path)], Mentions([Term("name", name) for name in NAMES]))
    (tally,) = counts.files
    assert (tally.captions, tally.empty, tally.malformed, tally.first_malformed) == (2, 1, 2, 3)
    assert tally.remarks == [
        f"{path}: empty captions: 1",
        f"{path}: malformed records: 2, the first is record 3; captions read: 2",
    ]


def test_a_file_without_captions_is_refused_rather_than_counted_as_nobody(tmp_path: Path):
    with pytest.raises(DataError, match="No caption could be read"):
        count_captions([write(tmp_path / "a.txt", "\n \n")], Mentions([Term("name", "Ana")]))


def test_the_bar_ends_where_the_files_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting, "MEGABYTE", 100)
    monkeypatch.setattr(captions, "CHUNK", 1000)
    moved: list[int] = []

    @contextmanager
    def bar(label: str, total: int, done: int) -> Iterator[object]:
        moved.append(-total)
        yield moved.append

    files = [write(tmp_path / f"{part}.txt", "a caption\n" * 1000) for part in range(2)]
    count_captions(files, Mentions([Term("name", "Ana")]), bar)
    assert moved[0] == -200
    assert all(step > 0 for step in moved[1:])
    assert sum(moved[1:]) == 200


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.tsv.gz", "a.txt.zst", "a.parquet"])
def test_a_stopped_count_goes_on_and_ends_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setattr(captions, "CHUNK", 2000)
    monkeypatch.setattr(counting, "SECONDS", -1.0)
    rng = random.Random(5)
    said = [rng.choice([*NAMES, "", "x"]) for _ in range(4000)]
    if name == "a.parquet":
        pl.DataFrame({"text": said}).write_parquet(tmp_path / name, row_group_size=300)
    else:
        packed = {".gz": gzip.compress, ".zst": lambda text: pa.compress(text, "zstd", asbytes=True)}
        text = b"text\n" + "\n".join(said).encode() + b"\n\xff\n"
        (tmp_path / name).write_bytes(packed.get(Path(name).suffix, bytes)(text))
    mentions, store = Mentions([Term("name", each) for each in NAMES]), tmp_path / "store"
    whole = count_captions([CaptionFile(tmp_path / name)], mentions)
    looks = []

    def stopping(self: Mentions, text: bytes) -> Any:
        looks.append(text.count(b"\n"))
        if len(looks) == 6:
            raise KeyboardInterrupt
        return count(self, text)

    count = Mentions.count
    with monkeypatch.context() as patched:
        patched.setattr(Mentions, "count", stopping)
        with pytest.raises(KeyboardInterrupt):
            count_captions([CaptionFile(tmp_path / name)], mentions, store=store)
        looks.clear()
        looks.extend([0] * 6)
        again = count_captions([CaptionFile(tmp_path / name)], mentions, store=store)
    assert sum(looks) < len(said)
    assert (again.apart.tolist(), again.inside.tolist(), again.files) == (
        whole.apart.tolist(),
        whole.inside.tolist(),
        whole.files,
    )


def test_a_file_that_was_read_is_not_read_again_unless_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, mentions = write(tmp_path / "a.txt", "Ana\n"), Mentions([Term("name", "Ana")])
    first = count_captions([file], mentions, store=tmp_path)
    monkeypatch.setattr(CaptionFile, "parts", None)
    assert count_captions([file], mentions, store=tmp_path).files == first.files
    monkeypatch.undo()
    changed = write(tmp_path / "a.txt", "Ana\nAna\n")
    assert count_captions([changed], mentions, store=tmp_path).apart.tolist() == [2]
    other = Mentions([Term("name", "Bo")])
    assert count_captions([changed], other, store=tmp_path).apart.tolist() == [0]


@pytest.mark.parametrize("damage", ["half", "number", "list", "empty"])
def test_a_damaged_count_is_told_and_made_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture):
    file, mentions = write(tmp_path / "a.txt", "Ana\nAna\n"), Mentions([Term("name", "Ana")])
    first = count_captions([file], mentions, store=tmp_path)
    (kept,) = (tmp_path / "exposure").iterdir()
    text = kept.read_text()
    damaged = {"half": text[: len(text) // 2], "number": text.replace("[2]", "[3]"), "list": "[1, 2]", "empty": ""}
    kept.write_text(damaged[damage])
    assert not caplog.records
    again = count_captions([file], mentions, store=tmp_path)
    assert (again.apart.tolist(), again.files) == ([2], first.files)
    assert "a.txt is damaged in the store. The file is counted again." in caplog.text
    assert kept.read_text() == text


def test_every_blank_of_python_makes_a_caption_empty(tmp_path: Path):
    blanks = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": [*blanks, "".join(blanks), "", "\ufeff", "\u200b", "é", "x", " x"]}).write_parquet(path)
    (tally,) = count_captions([CaptionFile(path)], Mentions([Term("name", "x")])).files
    assert (tally.captions, tally.empty) == (4, len(blanks) + 3)


KILLED = """
import os, sys
from pathlib import Path
from beholder.studies.exposure import captions, counting
from beholder.studies.exposure.mentions import Mentions, Term
captions.CHUNK, captions.ROWS, counting.SECONDS, counting.MOST_THREADS = 2000, 100, -1.0, 1
add, added = counting._Counted.add, []
def adding(self, seen):
    added.append(1)
    if len(added) == int(sys.argv[1]):
        os.kill(os.getpid(), 9)
    return add(self, seen)
counting._Counted.add = adding
files = [captions.CaptionFile(path) for path in sys.argv[3:]]
counting.count_captions(files, Mentions([Term("name", "Ana"), Term("name", "Bo Li")]), store=Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_killed_count_reads_only_what_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By SIGKILL, in the middle of the second of three files."""
    rng = random.Random(7)
    said = [[rng.choice(["Ana", "bo li", "Ana Bo Li", "", "x"]) for _ in range(2000)] for _ in range(3)]
    paths = [tmp_path / "a.txt", tmp_path / "b.parquet", tmp_path / "c.txt"]
    paths[0].write_text("\n".join(said[0]))
    pl.DataFrame({"text": said[1]}).write_parquet(paths[1], row_group_size=200)
    paths[2].write_text("\n".join(said[2]))
    mentions, store = Mentions([Term("name", "Ana"), Term("name", "Bo Li")]), tmp_path / "store"
    for name, size in (("CHUNK", 2000), ("ROWS", 100)):
        monkeypatch.setattr(captions, name, size)
    files = [CaptionFile(path) for path in paths]
    whole = count_captions(files, mentions)
    ends = len(list(files[0].parts())) + 1
    command = [sys.executable, "-c", KILLED, str(ends + 9), str(store), *map(str, paths)]
    assert subprocess.run(command, check=False, cwd=Path.cwd()).returncode == -9
    started: list[tuple[str, int]] = []
    parts = CaptionFile.parts

    def noted(self: CaptionFile, start: int = 0, stop: int | None = None) -> Any:
        started.append((Path(self.path).name, start))
        return parts(self, start, stop)

    monkeypatch.setattr(CaptionFile, "parts", noted)
    again = count_captions(files, mentions, store=store)
    assert started == [("b.parquet", 4), ("c.txt", 0)]
    assert (again.apart.tolist(), again.inside.tolist(), again.files) == (
        whole.apart.tolist(),
        whole.inside.tolist(),
        whole.files,
    )


@pytest.mark.parametrize("name", ["b.txt.gz", "b.txt.zst", "b.parquet"])
def test_damage_is_told_with_its_place_and_what_was_counted_is_kept(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(captions, "CHUNK", 50_000)
    rng = random.Random(3)
    said = [f"Ana {rng.random()}" for _ in range(30_000)]
    good, path = write(tmp_path / "a.txt", "Ana\n"), tmp_path / name
    if name == "b.parquet":
        pl.DataFrame({"text": said}).write_parquet(path, row_group_size=3000, compression="snappy")
        at = pq.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
        data = bytearray(path.read_bytes())
        data[at : at + 400] = bytes(400)
    else:
        text = "\n".join(said).encode()
        data = bytearray(gzip.compress(text) if name.endswith("gz") else pa.compress(text, "zstd", asbytes=True))
        del data[len(data) * 2 // 3 :]
    path.write_bytes(data)
    mentions, store = Mentions([Term("name", "Ana")]), tmp_path / "store"
    with pytest.raises(DataError, match=r"(?s)cannot be read to its end.*copy it again.*after record") as told:
        count_captions([good, CaptionFile(path)], mentions, store=store)
    assert name in str(told.value)
    assert "What was counted is kept up to the last place where reading can go on." in str(told.value)
    place = re.search(r"after record ([\d,]+), beyond byte ([\d,]+) of ([\d,]+)", str(told.value))
    record, byte, size = (int(number.replace(",", "")) for number in place.groups()) if place else (0, 0, 0)
    assert 0 < record < len(said)
    assert 0 < byte <= size == len(data)
    monkeypatch.setattr(CaptionFile, "parts", None)
    assert count_captions([good], mentions, store=store).apart.tolist() == [1]
    counted = counting._Counted(CaptionFile(path), mentions, store)
    assert counted.apart.tolist() == [counted.tally.records] == [record]
