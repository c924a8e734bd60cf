"""The small parts of the engine: names and order of groups, who is a person, arrangements, skewed errors."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import FACT, skewed, unskewed, verdict_of
from beholder.comparison.groups import People, Strata, _names, natural, people_of
from beholder.comparison.power import Scores
from beholder.comparison.shuffles import arrangements, compare_pairs, compare_ranks, exchanged


def test_groups_are_sorted_by_number_and_named_without_doubt():
    assert sorted(["10 man", "2 man", "under 2"], key=natural) == ["under 2", "2 man", "10 man"]
    assert _names([("A B", "C"), ("A", "B C")]) == ['"A B" "C"', '"A" "B C"']
    assert _names([("A", "B")]) == ["A B"]


def test_people_are_told_apart_and_described():
    assert people_of(pl.DataFrame({"name": ["Ada", "Ada", None]})).codes.tolist() == [0, 0, 1]
    assert People(np.array([0, 0, 1])).described() == "2 people, 3 pictures; each person counts once"
    assert People(np.arange(2)).described() == "2 people, one picture each"
    assert Strata(("branch",), np.zeros(2, int), np.empty((2, 0))).variant == "within branch"


def test_a_verdict_needs_a_test_and_five_people():
    verdicts = [verdict_of(0.01, 30), verdict_of(0.2, 30), verdict_of(0.01, 4), verdict_of(None, 30)]
    assert verdicts == ["difference found", "none found", "too little data", "too little data"]
    assert FACT not in verdicts


def test_a_skewed_t_is_bent_and_bent_back():
    assert skewed(np.array(2.0), 0.0) == 2.0
    assert unskewed(skewed(np.array(-9.0), 0.6), 0.6) == pytest.approx(-9)


def test_planted_levels_stay_between_0_and_1():
    assert Scores(0.2, 0.6).levels(0.25) == (0.725, 0.475)
    assert Scores(0.2, 0.5).levels(1.0) == (1.0, 0.0)


def test_arrangements_are_counted():
    assert arrangements(np.array([0, 0, 1, 1]), np.zeros(4, int)) == 6
    part = compare_pairs(np.full((8, 1), 0.125), np.full((8, 1), 0.125), np.random.default_rng(0))
    assert (part.value.tolist(), part.arrangements) == ([1.0], 256.0)


def test_opposite_ranks_and_right_answers_are_recognised():
    rng, blocks = np.random.default_rng(0), np.zeros(6, int)
    assert compare_ranks(np.arange(6.0), -np.arange(6.0), blocks, rng, 99).value == pytest.approx([-1.0])
    made = exchanged(np.eye(8), np.arange(8), np.zeros(8, int), rng)
    assert made is not None
    assert (made.value, made.expected) == (1.0, 0.125)
