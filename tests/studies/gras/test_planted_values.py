"""What the planted traits imply is the plain average over the drawn faces."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.glasshouse.planted import ATTRIBUTES, PLANTED_TRAITS, group_means, p_yes
from beholder.glasshouse.world import faces
from beholder.studies.gras.phrases import planted_gap


@pytest.mark.parametrize("planted", PLANTED_TRAITS, ids=lambda planted: planted.trait)
def test_implied_is_the_plain_average_over_the_faces(planted):
    for attribute in ATTRIBUTES:
        groups = {row[attribute] for row in faces()}
        means = {
            group: np.mean([_planted(planted.trait, row) for row in faces() if row[attribute] == group])
            for group in groups
        }
        for group, mean in means.items():
            assert group_means(attribute, planted.trait)[group] == pytest.approx(mean)
        gap = planted_gap(attribute, planted.trait)
        assert gap == pytest.approx(max(means.values()) - min(means.values()))
        assert gap == pytest.approx(abs(planted.effect) if planted.attribute == attribute else 0)


def _planted(trait, row):
    scene = {"pose": row["pose"], "lighting": row["lighting"]}
    return p_yes(trait, row["gender"], int(row["skin_tone"]), row["age_years"], **scene)


def test_twelve_gaps_are_planted_and_all_others_are_exactly_zero():
    gaps = [planted_gap(attribute, planted.trait) for planted in PLANTED_TRAITS for attribute in ATTRIBUTES]
    assert len(gaps) == 72
    assert sum(gap > 0 for gap in gaps) == 12
