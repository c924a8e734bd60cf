"""Trials of the ratio measure what the study measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beholder.studies.public_figures.trials import bias_rows, figure_experiments
from beholder.studies.public_figures.weaknesses import weaknesses
from beholder.studies.trial_summary import Share, Summaries, Summary


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_ratio_of_the_benchmark_is_that_of_the_beliefs():
    beliefs = rng().uniform(0.1, 0.9, 50)
    (row,) = bias_rows({"a": beliefs}, 20, rng())
    assert row.value == pytest.approx(beliefs[:20].mean() / beliefs[20:].mean())


def test_alike_women_and_men_have_a_ratio_near_one_inside_its_interval():
    (row,) = bias_rows({"a": rng().uniform(0.4, 0.6, 200)}, 100, rng())
    assert row.value == pytest.approx(1.0, abs=0.05)
    assert row.low is not None
    assert row.low < 1.0 < (row.high or 0.0)


def test_weaknesses_find_their_trials_by_key_whatever_the_descriptions_say():
    trials = [
        replace(trial, setting="in other words") for experiment in figure_experiments() for trial in experiment.trials
    ]
    nothing = Share(0.5, 0.4, 0.6, 100)
    summaries = Summaries([Summary(trial, 100, 0.5, 0.0, 0.1, 0.1, 0.5, nothing, nothing) for trial in trials])
    titles = [weakness.title for weakness in weaknesses(summaries)]
    assert titles == [
        "Ratios b are skewed, strongly so with few women",
        "Identity scores depend on the number of names",
        "Several pictures of one person are not several people",
    ]


@pytest.mark.parametrize("pictures", [1, 3])
def test_a_world_of_labels_shows_no_names(pictures: int):
    name = "identity 20 women, 60 men, sees gender and party" + (", 3 pictures each" if pictures > 1 else "")
    (world,) = [each for each in figure_experiments() if each.name == name]
    (outcome,) = world.simulate(rng(2))
    assert outcome.p_value > 0.05


def test_branches_of_other_sizes_and_levels_show_no_wrong_occupation():
    world = next(each for each in figure_experiments() if each.name.startswith("gaps "))
    widest, any_of_them = world.simulate(rng(3))
    assert widest.low < 0 < widest.high
    assert any_of_them.p_value > 0.05
