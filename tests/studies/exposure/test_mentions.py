"""Mentions: the index finds what a loop over all names finds, and tells a name apart from a longer one around it."""

from __future__ import annotations

import random
import re
import sys
import unicodedata

import pytest

from beholder.core.errors import DataError
from beholder.studies.exposure.mentions import Mentions, Term, words_of

NAMES = ["Ana Díaz", "ana", "Ana Díaz-Cruz", "Cruz", "Bo O'Neil", "Élan Vital", "P.V. Sindhu", "Cruz Ana", "ANA DIAZ"]
TERMS = [*(Term("name", name) for name in NAMES), Term("level", "cruz"), Term("other", "vital sign")]


def plain(text: str) -> str:
    """Words between single blanks, letter by letter: the rule written out."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (" " if not letter.isalnum() else letter for letter in folded if not unicodedata.combining(letter))
    return f" {' '.join(''.join(kept).split())} "


def obvious(caption: str, terms: list[Term]) -> tuple[set[int], set[int]]:
    """Every term by itself: with blanks around it, then crossed out where a longer one of its kind covers it."""
    text, apart, anywhere = plain(caption), set(), set()
    places = {
        place: [match.start() for match in re.finditer(f"(?={re.escape(plain(term.text))})", text)]
        for place, term in enumerate(terms)
    }
    for place, starts in places.items():
        mine = len(plain(terms[place].text))
        for start in starts:
            anywhere.add(place)
            covered = any(
                first <= start and start + mine <= first + len(plain(terms[other].text))
                for other, firsts in places.items()
                if terms[other].kind == terms[place].kind and len(plain(terms[other].text)) > mine
                for first in firsts
            )
            if not covered:
                apart.add(place)
    return apart, anywhere - apart


def test_the_index_equals_a_loop_over_all_names():
    rng, mentions = random.Random(4), Mentions(TERMS)
    pieces = ["Ana", "DIAZ", "Di\u0301az", "díaz", "-", "_", "Cruz", "’s", "aná", "O’Neil", "bo", "P", "V.", "Sindhu"]
    pieces += ["Élan", "E\u0301lan", "vital", "sign", "Vitals"]
    pieces += ["ＣＲＵＺ", "banana", "\u00a0", ",", "9", "ß", "中", "\t"]
    for _ in range(4000):
        caption = "".join(rng.choice(pieces) + rng.choice(["", " ", " "]) for _ in range(rng.randrange(9)))
        assert mentions.find(caption) == obvious(caption, TERMS), caption


def test_every_letter_is_read_by_the_same_rule_on_both_ways():
    """ASCII takes a quicker way: together with a letter that is not, it must give the same words."""
    for code in range(128):
        text = f"a{chr(code)}B"
        assert words_of(text) == words_of(f"{text} ä")[:-1]


@pytest.mark.slow
def test_folding_twice_changes_nothing():
    for code in range(sys.maxunicode + 1):
        if not 0xD800 <= code < 0xE000:
            once = words_of(chr(code))
            assert words_of(" ".join(once)) == once, hex(code)


@pytest.mark.parametrize(
    "caption", ["ana diaz", "Ana  DÍAZ", "by Ana Di\u0301az's dog", "#ana_diaz", "(Ana)-Díaz.", "\ufeffAna Díaz"]
)
def test_capitals_accents_and_punctuation_do_not_matter(caption: str):
    assert Mentions([Term("name", "Ana Díaz")]).find(caption).apart == {0}


@pytest.mark.parametrize("caption", ["Anaa Díaz", "Ana B. Díaz", "Díaz Ana", "AnaDíaz", "Ana Dĺaz", ""])
def test_every_letter_and_the_order_do(caption: str):
    assert Mentions([Term("name", "Ana Díaz")]).find(caption) == (set(), set())


def test_a_caption_counts_once_however_often_it_says_a_name():
    assert Mentions([Term("name", "Ana")]).find("Ana, Ana and Ana").apart == {0}


def test_a_name_inside_a_longer_one_is_told_apart_from_the_name_alone():
    mentions = Mentions([Term("name", "Ronaldo"), Term("name", "Cristiano Ronaldo")])
    assert mentions.find("Cristiano Ronaldo scores") == ({1}, {0})
    assert mentions.find("Cristiano Ronaldo meets Ronaldo") == ({0, 1}, set())


def test_names_that_overlap_are_both_said():
    mentions = Mentions([Term("name", "Ana Cruz"), Term("name", "Cruz Bo")])
    assert mentions.find("Ana Cruz Bo") == ({0, 1}, set())


def test_a_longer_term_of_another_kind_hides_nothing():
    mentions = Mentions([Term("occupation", "athlete"), Term("specialty", "track athlete")])
    assert mentions.find("a track athlete") == ({0, 1}, set())


def test_a_name_without_letters_is_refused():
    with pytest.raises(DataError, match="no letter"):
        Mentions([Term("name", "…")])
