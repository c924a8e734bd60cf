"""Counting: equal to looking for every name in every caption, and what was not read is told."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from beholder.core.errors import DataError
from beholder.studies.exposure import counting
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
    monkeypatch.setattr(counting, "BETWEEN", 10)
    moved: list[int] = []

    @contextmanager
    def bar(label: str, total: int, done: int) -> Iterator[object]:
        moved.append(-total)
        yield moved.append

    files = [write(tmp_path / f"{part}.txt", "a caption\n" * 1000) for part in range(2)]
    count_captions(files, Mentions([Term("name", "Ana")]), bar)
    assert moved[0] == -200
    assert all(step > 0 for step in moved[1:])
    assert 190 <= sum(moved[1:]) <= 200
