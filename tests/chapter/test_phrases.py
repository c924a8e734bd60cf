"""Words that every chapter needs."""

from __future__ import annotations

import pytest

from beholder.chapter.numbers import count, drawn, listed, picture, plural


@pytest.mark.parametrize(
    ("names", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a and b", "c, d", "e"], "a and b, c, d and e")]
)
def test_names_are_listed_as_a_sentence_has_them(names: list[str], text: str):
    assert listed(names) == text


def test_small_numbers_are_words():
    assert [count(number) for number in (0, 12, 13)] == ["no", "twelve", "13"]


def test_only_known_groups_have_a_plural():
    assert [plural(group) for group in ("man", "woman", "humans")] == ["men", "women", "humans"]


def test_the_embedded_world_is_drawn():
    assert drawn("glasshouse-faces")
    assert [picture({"dataset": name}) for name in ("glasshouse", "apa")] == ["drawing", "photograph"]
