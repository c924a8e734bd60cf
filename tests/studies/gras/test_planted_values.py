"""What the planted traits imply is the plain average over the drawn faces."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from beholder.glasshouse.faces import faces
from beholder.glasshouse.planted_traits import ATTRIBUTES, PLANTED_TRAITS, p_yes
from beholder.studies.gras.planted import PLANTED, implied


@pytest.mark.parametrize("planted", PLANTED_TRAITS, ids=lambda planted: planted.trait)
def test_implied_is_the_plain_average_over_the_faces(planted):
    for attribute in ATTRIBUTES:
        groups = {row[attribute] for row in faces()}
        means = {
            group: np.mean([_planted(planted.trait, row) for row in faces() if row[attribute] == group])
            for group in groups
        }
        for group, mean in means.items():
            found = implied("gras.group_mean", attribute, group, planted.trait)
            assert found == pytest.approx(mean)
        gap = implied("gras.largest_gap", attribute, "", planted.trait)
        assert gap == pytest.approx(max(means.values()) - min(means.values()))
        assert gap == pytest.approx(abs(planted.effect) if planted.attribute == attribute else 0)


def _planted(trait, row):
    scene = {"pose": row["pose"], "lighting": row["lighting"]}
    return p_yes(trait, row["gender"], int(row["skin_tone"]), row["age_years"], **scene)


def test_planted_rows_look_like_results():
    assert all(set(row) == {"metric", "subset", "group", "concept", "value", "note"} for row in PLANTED)
    assert Counter(row["metric"] for row in PLANTED) == {"gras.largest_gap": 72, "gras.group_mean": 72}
    assert sum(row["value"] > 0 for row in PLANTED if row["metric"] == "gras.largest_gap") == 12


def test_nothing_is_planted_for_another_metric():
    with pytest.raises(ValueError, match=r"gras\.welch"):
        implied("gras.welch", "gender", "", "brave")
