"""Exposure counts names in captions 9 × as fast as word by word, in the same memory however long a file is.

Generated captions of ten words: one in ten names one of 844 made-up people, one in ten is not ASCII. All ways count the
same. Processor time counts, since it can be had on a busy machine: threads and Ray's workers share it among cores.

    --megabytes 600      compare the memory for a file of 600 MB with that for one of a sixth
"""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import unicodedata
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from bench import Claim, main, timed

from beholder.scores import executor
from beholder.studies.exposure import counting
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import WORD_TERMS, Mentions, Term

_ASCII = str.maketrans({chr(code): chr(code).lower() if chr(code).isalnum() else " " for code in range(128)})
PEOPLE = 844
LAION = 30e9
"""Bytes of LAION-400M's captions, about."""
CORES = (2, 16, 64)
NAMES = ("a.txt", "a.txt.gz", "a.txt.zst", "a.tsv", "a.tsv.gz", "a.tsv.zst", "a.parquet", "one-group.parquet")
SLOW_NAMES = ("a.csv", "a.jsonl")


def made(count: int, rng: random.Random) -> tuple[list[str], list[str]]:
    """Names of two words that many share one half of, and captions."""
    syllables = [a + b for a in "bcdfghklmnprst" for b in "aeiou"]
    firsts = ["".join(rng.choices(syllables, k=2)).capitalize() for _ in range(150)]
    lasts = ["".join(rng.choices(syllables, k=3)).capitalize() for _ in range(600)]
    names = sorted({f"{rng.choice(firsts)} {rng.choice(lasts)}" for _ in range(2 * PEOPLE)})[:PEOPLE]
    filler = [*("".join(rng.choices(syllables, k=2)) for _ in range(3000)), *firsts, "dog", "person", "chair"]
    captions = [
        " ".join([*rng.choices(filler, k=9), rng.choice(names) if rng.random() < 0.1 else rng.choice(filler)])
        for _ in range(count)
    ]
    return names, [text.replace("a", "á", 1) if rng.random() < 0.1 else text for text in captions]


def reference_words(text: str) -> list[str]:
    """Words without capitals and accents, the obvious way."""
    if text.isascii():
        return text.translate(_ASCII).split()
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return re.findall(r"[^\W_]+", "".join(letter for letter in apart if not unicodedata.combining(letter)))


def word_by_word(terms: list[Term], captions: list[str]) -> list[int]:
    """As exposure counted before: every caption split into words, every word looked up."""
    starting: dict[str, list[tuple[int, list[str]]]] = {}
    for index, term in enumerate(terms):
        words = reference_words(term.text)
        starting.setdefault(words[0], []).append((index, words))
    counts = [0] * len(terms)
    for caption in captions:
        text = reference_words(caption)
        spans = [
            (start, start + len(words), index)
            for start, word in enumerate(text)
            for index, words in starting.get(word, ())
            if text[start : start + len(words)] == words
        ]
        for index in {span[2] for span in spans if not _covered(span, spans, terms)}:
            counts[index] += 1
    return counts


def _covered(span: tuple[int, int, int], spans: list[tuple[int, int, int]], terms: list[Term]) -> bool:
    start, end, index = span
    return any(
        first <= start and end <= last and last - first > end - start and terms[other].kind == terms[index].kind
        for first, last, other in spans
    )


def automaton(mentions: Mentions, captions: Sequence[str]) -> list[list[int]]:
    """Polars' automaton (Aho and Corasick's) alone: where names are, without rules about accents and captions."""
    names = [f" {term.text.lower()} " for term in mentions.terms]
    places = pl.Series(["\n".join(captions)]).str.find_many(names, ascii_case_insensitive=True, overlapping=True)
    return [places.item().to_list()]


@cache
def world(count: int) -> tuple[list[str], Mentions]:
    """Captions, and what is looked for in them."""
    names, captions = made(count, random.Random(1))
    return captions, Mentions([*(Term("name", name) for name in names), *WORD_TERMS])


# Files


def write(path: Path, captions: Sequence[str], copies: int = 1) -> None:
    """The captions so many times, in the layout of the file's name; tables have an address beside each."""
    tables = {".tsv": "\t", ".csv": ","}
    ending, packed = (path.suffixes[0], path.suffixes[-1]) if len(path.suffixes) > 1 else (path.suffix, "")
    addresses = [f"http://example.org/pictures/{number:08}/{number * 7919 % 999983}.jpg" for number in range(9999)]
    rows = [(addresses[number % 9999], caption) for number, caption in enumerate(captions)]
    if ending == ".parquet":
        table = pa.table({"url": [row[0] for row in rows], "caption": [row[1] for row in rows]})
        if path.stem == "one-group":
            pq.write_table(pa.concat_tables([table] * copies), path, row_group_size=copies * len(rows))
            return
        with pq.ParquetWriter(path, table.schema) as file:
            for _ in range(copies):
                file.write_table(table, row_group_size=100_000)
        return
    if ending in tables:
        header = f"url{tables[ending]}caption\n"
        text = "".join(f"{url}{tables[ending]}{caption}\n" for url, caption in rows)
    else:
        header = ""
        text = "".join(
            json.dumps({"url": url, "caption": caption}) + "\n" if ending == ".jsonl" else f"{caption}\n"
            for url, caption in rows
        )
    pack = {".gz": gzip.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}.get(packed, bytes)
    with path.open("wb") as file:
        file.write(pack(header.encode()))
        data = pack(text.encode())
        for _ in range(copies):
            file.write(data)


def counted(path: Path, count: int) -> Callable[[], object]:
    """Exposure's count of a file."""
    _, mentions = world(count)
    return lambda: count_captions([CaptionFile(path)], mentions)


# Claims


def rates(options: Namespace) -> Iterator[Claim]:
    """Ours, the automaton alone, and word by word, on text; then every layout; then what LAION-400M would take."""
    count = 2000 if options.quick else options.captions
    captions, mentions = world(count)
    few = captions[::10]
    ours = mentions.count("\n".join([*few, ""]).encode())
    assert ours.apart.tolist() == word_by_word(list(mentions.terms), few)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        write(path, captions)
        size = path.stat().st_size / 1e6
        ways = [
            timed("ours, file to counts", counted(path, count)),
            timed("polars' automaton alone, on text in memory", lambda: automaton(mentions, captions)),
            timed("word by word, a tenth", lambda: word_by_word(list(mentions.terms), few), share=0.1),
        ]
        yield Claim(
            f"{size:.0f} MB of captions as text, {len(mentions.terms)} names and words",
            ["way", "MB per second of processor time", "ratio"],
            [[way.name, size / way.processor, way.processor / ways[0].processor] for way in ways],
        )
        rows: list[list[str | float | None]] = []
        for name in (*NAMES, *SLOW_NAMES):
            path = Path(folder) / name
            write(path, captions)
            way = timed(name, counted(path, count), repeats=2)
            rows.append(
                [name, path.stat().st_size / 1e6, size / way.processor, path.stat().st_size / 1e6 / way.processor]
            )
        yield Claim(
            "Every layout; tables have an address beside each caption",
            ["file", "MB", "MB of captions per second of processor time", "MB of the file"],
            rows,
        )
    yield laion(size / ways[0].processor)


def laion(rate: float) -> Claim:
    """Minutes for LAION-400M's captions, if all cores are used and storage keeps up."""
    return Claim(
        f"Estimate, not measured: LAION-400M's captions ({LAION / 1e9:.0f} GB) as text at {rate:.0f} MB per second of "
        "processor time, if every core is busy and storage keeps up",
        ["cores", "minutes"],
        [[float(cores), LAION / 1e6 / rate / cores / 60] for cores in CORES],
    )


def memory(options: Namespace) -> Iterator[Claim]:
    """Peaks of processes that count one file each, with all their workers."""
    most = 1.0 if options.quick else options.megabytes
    rows: list[list[str | float | None]] = []
    block = world(2000)[0] * (1 if options.quick else 50)
    for name in NAMES[:1] if options.quick else (*NAMES, *SLOW_NAMES):
        peaks = []
        for megabytes in (most / 6, most):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / name
                write(path, block, copies=max(1, round(megabytes * 1e6 / sum(map(len, block)))))
                command = [sys.executable, __file__, "--peak", str(path)]
                peaks.append(float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
        rows.append([name, *peaks])
    yield Claim(
        f"Peak memory for {most / 6:.0f} and for {most:.0f} MB of captions, all processes; workers from "
        f"{counting.LONG >> 20} MB on, {executor.usable_cores()} at most",
        ["file", "MB, shorter", "MB, longer"],
        rows,
    )


def print_peak(path: Path) -> None:
    """Count a file and print the megabytes of this process and, for each worker, those of the largest one."""
    executor.STARTING = get_context("spawn")  # as children of this process, whose peak is known
    counted(path, 2000)()
    own = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print((int(own[1] if own else 0) + largest * executor.usable_cores()) / 1024)


def options() -> ArgumentParser:
    """How much."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--captions", type=int, default=400_000)
    parser.add_argument("--megabytes", type=float, default=60.0)
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(Path(sys.argv[2]))
    else:
        main(rates, memory, parser=options())
