"""Errors say what was asked, what exists and what to do; they survive the way between processes."""

from __future__ import annotations

import pickle

import pytest

from beholder.core import errors
from beholder.core.errors import BadImage, BeholderError, MissingExtra, UnknownName, UnusableScore, first_line

FAMILY = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]


def test_one_base_catches_them_all_and_the_drawn_family_is_whole():
    assert all(issubclass(each, BeholderError) for each in FAMILY)
    assert errors.__doc__ is not None
    assert all(each.__name__ in errors.__doc__ for each in FAMILY)


def test_an_unknown_name_lists_what_exists_and_the_nearest():
    error = UnknownName("attribute", "genders", ["race", "gender", "age"], where="fairface")
    assert str(error) == "fairface has no attribute 'genders'.\nIt has: age, gender, race. Did you mean 'gender'?"
    assert "Did you mean" not in str(UnknownName("attribute", "xyz", ["gender"]))
    assert "It has: none." in str(UnknownName("attribute", "xyz", []))


def test_a_long_list_is_cut():
    text = str(UnknownName("model", "zzz", [f"model {number:02}" for number in range(40)]))
    assert "model 29 …" in text
    assert "model 30" not in text


@pytest.mark.parametrize("error", [BadImage("a.jpg", "cut short"), UnusableScore("image", range(12))])
def test_an_error_of_a_worker_arrives_whole(error: BeholderError):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_what_to_do_is_part_of_the_message():
    assert "pip install 'beholder-audit[torch]'" in str(MissingExtra("CLIP", "torch"))
    text = str(UnusableScore("image", range(12)))
    assert "12 image(s), at position 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …" in text
    assert "--precision float32" in text


def test_the_first_line_of_an_error_is_short_and_never_empty():
    assert first_line(ValueError("\n one\ntwo")) == "one"
    assert first_line(ValueError()) == "ValueError"
    assert len(first_line(ValueError("x" * 1000))) == 300
