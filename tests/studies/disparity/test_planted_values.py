"""The planted objects imply one gap and two average precisions each."""

from __future__ import annotations

from collections import Counter

from beholder.glasshouse.planted_objects import PLANTED_OBJECTS, implied_average_precision
from beholder.studies.disparity.planted import PLANTED


def test_every_thing_has_a_gap_that_is_the_difference_of_its_two_precisions():
    assert Counter(row["metric"] for row in PLANTED) == {"disparity.ap_gap": 5, "disparity.average_precision": 10}
    gaps = {row["concept"]: row["value"] for row in PLANTED if row["metric"] == "disparity.ap_gap"}
    for planted in PLANTED_OBJECTS:
        man, woman = (implied_average_precision(planted.item, group) for group in ("man", "woman"))
        assert gaps[planted.item] == man - woman
