"""Word vectors: three formats, equal to gensim's, walked in place; what breaks off is told by its byte."""

from __future__ import annotations

import gzip
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import DataError, MissingData
from beholder.studies.disparity.agreement import read_vectors

WORDS = ["in", "naïve", "New_York", "cat", "wide"]
RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(len(WORDS), 7)).astype(np.float32)


def binary(path: Path, *, newline: bytes = b"", count: int = len(WORDS)) -> Path:
    entries = [word.encode() + b" " + row.tobytes() + newline for word, row in zip(WORDS, ROWS, strict=True)]
    path.write_bytes(f"{count} 7\n".encode() + b"".join(entries))
    return path


def text(path: Path, *, header: bool, ending: str = "\n") -> Path:
    lines = [f"{len(WORDS)} 7"] if header else []
    lines += [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, ROWS.tolist(), strict=True)]
    path.write_text(ending.join(lines) + ending, encoding="utf-8", newline="")
    return path


def every_form(folder: Path) -> dict[str, Path]:
    return {
        "binary": binary(folder / "a.bin"),
        "binary with line ends, as word2vec.c writes": binary(folder / "b.bin", newline=b"\n"),
        "text": text(folder / "c.txt", header=True),
        "GloVe": text(folder / "d.txt", header=False),
        "GloVe from Windows": text(folder / "e.txt", header=False, ending="\r\n"),
    }


def test_every_form_gives_the_same_unit_vectors(tmp_path: Path) -> None:
    expected = ROWS.astype(np.float64) / np.linalg.norm(ROWS.astype(np.float64), axis=1, keepdims=True)
    for form, path in every_form(tmp_path).items():
        vectors = read_vectors(path, [*WORDS, "unicorn"])
        assert set(vectors) == set(WORDS), form
        np.testing.assert_allclose([vectors[word] for word in WORDS], expected, atol=1e-7, err_msg=form)


@pytest.mark.filterwarnings("ignore")  # gensim leaves files without a header open
def test_every_form_gives_the_cosines_of_gensim(tmp_path: Path) -> None:
    from gensim.models import KeyedVectors

    for form, path in every_form(tmp_path).items():
        options = {"binary": form.startswith("binary"), "no_header": form.startswith("GloVe")}
        other = KeyedVectors.load_word2vec_format(str(path), **options)
        vectors = read_vectors(path, WORDS)
        for one, two in itertools.combinations(WORDS, 2):
            assert vectors[one] @ vectors[two] == pytest.approx(other.similarity(one, two), abs=1e-6), form


@pytest.mark.real
def test_the_real_vectors_have_the_cosines_of_gensim(data: Path) -> None:
    from gensim.models import KeyedVectors

    path = next((data / "word2vec").glob("*.bin"))
    other = KeyedVectors.load_word2vec_format(str(path), binary=True)
    words = [other.index_to_key[place] for place in np.random.default_rng(9).choice(len(other), 200, replace=False)]
    words += ["man", "woman", "tie", "handbag"]
    vectors = read_vectors(path, words)
    ours = np.stack([vectors[word] for word in words])
    theirs = np.stack([other.get_vector(word, norm=True) for word in words]).astype(np.float64)
    assert np.abs(ours @ ours.T - theirs @ theirs.T).max() < 1e-6
    assert ours.shape[1] == 300


def test_a_word_that_stands_twice_counts_as_it_stands_first(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("a 1 0\na 0 1\nb 0 2\n")
    assert read_vectors(path, ["a", "b"])["a"].tolist() == [1, 0]


def test_a_word_of_glove_may_have_blanks_in_it(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("a 1 0\n. . . 0 1\n")
    assert read_vectors(path, [". . ."])[". . ."].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"3 7\n", mtime=0), r"is compressed \(gzip\)"),
        (b"hello world, this is a letter\n", "starts neither like word2vec"),
        (b"x" * (2 << 20), "the line is too long"),
        (b"2 3\ncat 1 2 3\ndog 1 2\n", r"byte 14: a line has 2 numbers, not 3"),
        (b"3 2\ncat 1 2\ndog 1 2\n", "is cut off after 2 of 3 words"),
        (b"cat 1 2\nwide 1 two\n", "the vector of 'wide' is not a list of finite numbers"),
        (b"cat 1 2\nwide nan 1\n", "the vector of 'wide' is not a list of finite numbers"),
        (b"cat 1 2\nwide 0 0\n", "the vector of 'wide' is all zeros"),
    ],
)
def test_what_are_no_vectors_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(path, ["wide"])


def test_a_binary_file_that_breaks_off_is_told_by_its_byte(tmp_path: Path) -> None:
    path = binary(tmp_path / "cut.bin")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    start = len(whole) - len("wide ") - 4 * 7
    with pytest.raises(DataError, match=rf"broken at byte {start}, in word 5 of 5"):
        read_vectors(path, ["wide"])
    with pytest.raises(DataError, match="in word 6 of 6"):
        read_vectors(binary(tmp_path / "more.bin", count=6), ["nowhere"])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="no word vectors at"):
        read_vectors(tmp_path / "none.bin", ["a"])


PEAK = """
import sys
from pathlib import Path
from beholder.studies.disparity.agreement import read_vectors
def resident(): return int(open("/proc/self/statm").read().split()[1])
before = resident()
assert len(read_vectors(Path(sys.argv[1]), ["w7", "nowhere"])) == 1
print(resident() - before)
"""


@pytest.mark.slow
def test_a_large_file_is_read_in_place(tmp_path: Path) -> None:
    """200 MB of vectors leave no more behind than a few: mapped pages are the system's to drop."""
    path, row = tmp_path / "large.bin", ROWS[0].tobytes() * 43
    with path.open("wb") as file:
        file.write(b"170000 301\n")
        for number in range(170_000):
            file.write(b"w%d " % number + row)
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    assert path.stat().st_size > 200e6
    assert int(done.stdout) * 4096 < 50e6  # more bytes resident once the file is closed
