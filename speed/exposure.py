"""Names in captions, one pass against a loop over all names: `python speed/exposure.py [captions]`.

Generated captions of about eleven words, of which one in ten names one of 844 made-up people; every way finds the same.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import Mentions, Term, words_of

PEOPLE = 844
EACH = 10
"""The loop gets one caption in so many: it would take an hour with all."""


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
    return names, captions


def rate(work: Callable[[], object], captions: int) -> float:
    """Captions a second, the best of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return captions / min(times)


def one_pass(names: list[str], captions: list[str]) -> list[int]:
    mentions, counts = Mentions([Term("name", name) for name in names]), [0] * len(names)
    for caption in captions:
        for index in mentions.find(caption).apart:
            counts[index] += 1
    return counts


def alternation(names: list[str], captions: list[str]) -> list[int]:
    """All names in one regular expression."""
    indices = {" ".join(words_of(name)): index for index, name in enumerate(names)}
    pattern, counts = re.compile(rf"\b(?:{'|'.join(map(re.escape, indices))})\b"), [0] * len(names)
    for caption in captions:
        for name in set(pattern.findall(" ".join(words_of(caption)))):
            counts[indices[name]] += 1
    return counts


def loop(names: list[str], captions: list[str]) -> list[int]:
    """The obvious way: every name in every caption."""
    patterns = [re.compile(rf"\b{re.escape(name.lower())}\b") for name in names]
    return [sum(bool(pattern.search(caption.lower())) for caption in captions) for pattern in patterns]


def memory(captions: list[str], names: list[str]) -> float:
    """Kilobytes at the peak while a file of these captions is counted."""
    mentions = Mentions([Term("name", name) for name in names])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.txt"
        path.write_text("\n".join(captions))
        tracemalloc.start()
        count_captions([CaptionFile(path)], mentions)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / 1e3


if __name__ == "__main__":
    count = int(sys.argv[1]) if sys.argv[1:] else 20_000
    names, captions = made(count, random.Random(1))
    few = captions[::EACH]
    assert one_pass(names, few) == alternation(names, few) == loop(names, few)
    fast = rate(lambda: one_pass(names, captions), len(captions))
    middle, slow = (rate(lambda way=way: way(names, few), len(few)) for way in (alternation, loop))  # type: ignore[misc]
    print(
        f"exposure: {fast:,.0f} captions/s, {fast / slow:.0f} × a loop over {len(names)} names, "
        f"{fast / middle:.0f} × one regular expression of all names"
    )
    small, large = (memory(each, names) for each in (few, captions))
    print(f"exposure: {small:.0f} kB for a file of {len(few):,} captions, {large:.0f} kB for one of {count:,}")
