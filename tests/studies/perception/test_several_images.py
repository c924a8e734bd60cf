"""Trials with several images a person: intervals of a family cover together, and alarms are few without difference."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.core.results import Row
from beholder.studies.perception.ranking import balanced_subset
from beholder.studies.perception.scores import group_by
from beholder.studies.perception.several_images import at_once, people_world, several_image_experiments
from beholder.studies.study import MeasureOptions
from beholder.studies.trial_summary import FALSE_ALARMS


def test_all_at_once_covers_only_where_every_interval_covers():
    rows = [
        Row("perception.gap", 0.5, 9, "cosine", low=0.1, high=0.9, p_value=0.02),
        Row("perception.gap", 0.1, 9, "cosine", low=-0.3, high=0.5, p_value=0.7),
        Row("perception.gap", 0.1, 9, "cosine"),
    ]
    found = at_once(rows, [0.5, 0.0, 0.0])
    assert found.low < 0 < found.high
    assert found.p_value == 0.02
    missed = at_once(rows, [1.0, 0.0, 0.0])
    assert not missed.low <= 0 <= missed.high


def test_people_of_one_group_are_balanced_by_people_and_not_by_images():
    judged = people_world(0.0, crossed=False, rng=np.random.default_rng(1))
    chosen, how = balanced_subset(judged, MeasureOptions())
    part = judged.rows(chosen)
    by_gender = {gender[0]: own["person"].n_unique() for gender, own in part.images.group_by("gender")}
    assert set(by_gender.values()) == {30}
    assert how == "30 people of each gender, with all their images"
    assert group_by(part.images, ("gender",)).names == ["man", "woman"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["130 people, 100", "100 people shown", "unequal pool", "widest 0", "curves"])
def test_worlds_without_difference_raise_few_alarms(name: str):
    """Sixty worlds: so many alarms as a true rate of 6 % has in 1 of 300 at most."""
    experiment = next(each for each in several_image_experiments() if name in each.name and "0.5" not in each.name)
    worlds = np.array([experiment.simulate(np.random.default_rng([3, seed])) for seed in range(60)])
    assert ((worlds[:, :, 3] <= 0.05).mean(axis=0) <= FALSE_ALARMS + 0.09).all()
