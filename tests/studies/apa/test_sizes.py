"""Sizes of branches and pools follow from the data set's own table."""

from __future__ import annotations

from beholder.studies.apa.printed import SIZES


def test_a_pool_is_the_sum_of_its_branches():
    assert SIZES["politicians"] == {None: 636, "woman": 183, "man": 453}
    assert SIZES["actors"] == {None: 100, "woman": 40, "man": 60}
    assert SIZES["house"][None] == 436
