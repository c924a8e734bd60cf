"""Mentions: counts equal those of the obvious slow way, and a name is told apart from a longer one around it."""

from __future__ import annotations

import random
import re
import sys
import unicodedata
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beholder.core.errors import DataError
from beholder.studies.exposure import mentions
from beholder.studies.exposure.captions import part_of
from beholder.studies.exposure.mentions import Mentions, Term, words_of

NAMES = ["Ana Díaz", "ana", "Ana Díaz-Cruz", "Cruz", "Bo O'Neil", "Élan Vital", "P.V. Sindhu", "Cruz Ana", "ANA DIAZ"]
NAMES += [
    "Łukasz Cruz",
    "Straße",
    "中 Bo",
    "Ana Ana",
    "İpek Işık",
    "Maximiliano",
    "Ana Maximiliana",
    "Maximili Anastasia Cruz",
]
TERMS = [*(Term("name", name) for name in NAMES), Term("level", "cruz"), Term("other", "vital sign")]
PIECES = ["Ana", "DIAZ", "Di\u0301az", "díaz", "-", "_", "Cruz", "’s", "aná", "O’Neil", "bo", "P", "V.", "Sindhu"]
PIECES += ["Élan", "E\u0301lan", "vital", "sign", "Vitals", "\u0301", "łukasz", "ŁUKASZ", "Lukasz", "STRASSE", "straße"]
PIECES += [
    "ＣＲＵＺ",
    "banana",
    "\u00a0",
    ",",
    "9",
    "ß",
    "中",
    "\t",
    "\n",
    "\r",
    "\0",
    "\x1c",
    "²",
    "½",
    "ﬁ",
    "🦉",
    "\u0345",
    *(
        "İpek",
        "ipek",
        "IŞIK",
        "ışık",
        "isik",
        "I",
        "ſ",
        "\u00ad",
        "\u200d",
        "‐",
        "が",
        "한국",
        "한",
        "中国",
        "Ǆ",
        "ΐ",
        "ς",
    ),
    *("Maximiliano", "MAXIMILIANA", "Maximili", "Maximilianos", "Anastasia", "\u2028", "\x85"),
]


# The obvious way, word by word and caption by caption: what counting was before it was fast.


def reference_words(text: str) -> list[str]:
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return re.findall(r"[^\W_]+", "".join(letter for letter in apart if not unicodedata.combining(letter)))


def reference(caption: str, terms: Sequence[Term]) -> tuple[set[int], set[int]]:
    """Every span of words that is a term; then those that a longer one of its kind does not cover."""
    text, spans = reference_words(caption), []
    for index, term in enumerate(terms):
        words = reference_words(term.text)
        for start in range(len(text) - len(words) + 1):
            if text[start : start + len(words)] == words:
                spans.append((start, start + len(words), index))
    apart = {
        index
        for start, end, index in spans
        if not any(
            first <= start and end <= last and last - first > end - start and terms[other].kind == terms[index].kind
            for first, last, other in spans
        )
    }
    return apart, {index for _, _, index in spans} - apart


def reference_counts(captions: Sequence[str | None], terms: Sequence[Term]) -> tuple[list[int], list[int]]:
    found = [reference(caption, terms) for caption in captions if caption is not None]
    apart, inside = ([sum(index in each[side] for each in found) for index in range(len(terms))] for side in (0, 1))
    return apart, inside


def counted(captions: Sequence[str | None], terms: Sequence[Term]) -> tuple[list[int], list[int]]:
    counts = Mentions(terms).count(part_of(pl.Series(captions, dtype=pl.String), 0).text)
    return counts.apart.tolist(), counts.inside.tolist()


def find(mentions: Mentions, caption: str) -> tuple[set[int], set[int]]:
    """The terms of one caption."""
    counts = mentions.count(part_of(pl.Series([caption]), 0).text)
    return set(np.flatnonzero(counts.apart).tolist()), set(np.flatnonzero(counts.inside).tolist())


def test_counts_equal_those_of_the_obvious_way(monkeypatch: pytest.MonkeyPatch):
    rng = random.Random(4)
    captions = [
        "".join(rng.choice(PIECES) + rng.choice(["", " ", " "]) for _ in range(rng.randrange(12))) for _ in range(3000)
    ]
    expected = reference_counts(captions, TERMS)
    assert counted(captions, TERMS) == expected
    monkeypatch.setattr(mentions, "BLOCK", 300)
    assert counted(captions, TERMS) == expected
    one_by_one = [find(Mentions(TERMS), caption) for caption in captions[:100]]
    assert one_by_one == [reference(caption, TERMS) for caption in captions[:100]]


words = st.one_of(st.sampled_from(PIECES), st.text(max_size=3), st.sampled_from(NAMES))
captions_ = st.lists(
    st.none() | st.lists(words | st.sampled_from([" ", "-", "'"]), max_size=8).map("".join), max_size=6
)
terms_ = st.lists(
    st.builds(Term, st.sampled_from("ab"), st.lists(words, min_size=1, max_size=3).map(" ".join)),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@given(captions=captions_, terms=terms_)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_counts_equal_those_of_the_obvious_way_whatever_is_looked_for(captions: list[str | None], terms: list[Term]):
    """Accents, capitals, punctuation, hyphens, apostrophes, combining marks, overlapping names, any letters."""
    terms = [term if reference_words(term.text) else Term("a", "Ana") for term in terms]
    assert counted(captions, terms) == reference_counts(captions, terms)


@given(st.text())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_words_of_a_text_are_those_of_the_obvious_way(text: str):
    assert words_of(text) == reference_words(text)


def test_every_letter_is_read_by_the_same_rule_beside_any_other():
    for code in range(128):
        text = f"a{chr(code)}B"
        assert words_of(text) == reference_words(text) == words_of(f"{text} ä")[:-1]


@pytest.mark.slow
def test_every_character_is_folded_as_in_the_obvious_way():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(characters), 1000):
        part = characters[start : start + 1000]
        for text in ("x".join(part), "".join(part)):
            assert words_of(text) == reference_words(text)


@pytest.mark.parametrize(
    "caption", ["ana diaz", "Ana  DÍAZ", "by Ana Di\u0301az's dog", "#ana_diaz", "(Ana)-Díaz.", "\ufeffAna Díaz"]
)
def test_capitals_accents_and_punctuation_do_not_matter(caption: str):
    assert find(Mentions([Term("name", "Ana Díaz")]), caption) == ({0}, set())


@pytest.mark.parametrize("caption", ["Anaa Díaz", "Ana B. Díaz", "Díaz Ana", "AnaDíaz", "Ana Dĺaz", ""])
def test_every_letter_and_the_order_do(caption: str):
    assert find(Mentions([Term("name", "Ana Díaz")]), caption) == (set(), set())


def test_a_caption_counts_once_however_often_it_says_a_name():
    assert Mentions([Term("name", "Ana")]).count(b"Ana, Ana and Ana\n").apart.tolist() == [1]


def test_a_name_inside_a_longer_one_is_told_apart_from_the_name_alone():
    mentions = Mentions([Term("name", "Ronaldo"), Term("name", "Cristiano Ronaldo")])
    assert find(mentions, "Cristiano Ronaldo scores") == ({1}, {0})
    assert find(mentions, "Cristiano Ronaldo meets Ronaldo") == ({0, 1}, set())


def test_names_that_overlap_are_both_said():
    mentions = Mentions([Term("name", "Ana Cruz"), Term("name", "Cruz Bo")])
    assert find(mentions, "Ana Cruz Bo") == ({0, 1}, set())


def test_a_longer_term_of_another_kind_hides_nothing():
    mentions = Mentions([Term("occupation", "athlete"), Term("specialty", "track athlete")])
    assert find(mentions, "a track athlete") == ({0, 1}, set())


def test_a_name_without_letters_is_refused():
    with pytest.raises(DataError, match="no letter"):
        Mentions([Term("name", "…")])
