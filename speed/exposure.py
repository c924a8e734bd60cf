"""Names in captions, all at once against word by word: `python speed/exposure.py [captions] [--memory]`.

Generated captions of about eleven words, of which one in ten names one of 844 made-up people and one in ten is not
ASCII. Both ways count the same. With `--memory`: how much memory a file and one ten times as long take.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import Mentions, Term
from beholder.studies.exposure.people import WORD_TERMS

_ASCII = str.maketrans({chr(code): chr(code).lower() if chr(code).isalnum() else " " for code in range(128)})
PEOPLE = 844
EACH = 10
"""The slow way gets one caption in so many."""


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


class Cost:
    """Megabytes for each second of the clock and of the processor; the best of three."""

    def __init__(self, work: Callable[[], object], size: float) -> None:
        clock, processor = [], []
        for _ in range(3):
            began = time.perf_counter(), time.process_time()
            work()
            clock.append(time.perf_counter() - began[0])
            processor.append(time.process_time() - began[1])
        self.clock, self.processor = size / min(clock) / 1e6, size / min(processor) / 1e6


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


def peak(lines: int) -> float:
    """Megabytes that a process takes at most which counts a file of so many captions."""
    code = (
        "import resource, sys; sys.path.insert(0, 'speed'); import exposure as e; "
        "e.count_captions([e.CaptionFile(sys.argv[1])], e.Mentions(e.WORD_TERMS)); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.txt"
        with path.open("w") as file:
            file.writelines(
                f"a caption of no great length, with a dog and number {number}\n" for number in range(lines)
            )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(count: int, *, memory: bool) -> None:
    """Print both rates and their ratio, and the memory."""
    names, captions = made(count, random.Random(1))
    terms, few = [*(Term("name", name) for name in names), *WORD_TERMS], captions[::EACH]
    mentions = Mentions(terms)
    assert mentions.count("\n".join([*few, ""]).encode()).apart.tolist() == word_by_word(terms, few)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.txt"
        path.write_text("\n".join(captions))
        size = path.stat().st_size
        fast = Cost(lambda: count_captions([CaptionFile(path)], mentions), size)
        slow = Cost(lambda: word_by_word(terms, few), size / EACH)
    print(
        f"exposure: {fast.clock:.0f} MB/s on {os.cpu_count()} cores, {fast.processor:.0f} MB per second of processor "
        f"time, {fast.processor / slow.processor:.1f} × word by word ({slow.processor:.1f} MB)"
    )
    if memory:
        print(f"exposure: {peak(1_000_000):.0f} MB for 1,000,000 captions, {peak(10_000_000):.0f} MB for 10,000,000")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else 400_000, memory="--memory" in sys.argv)
