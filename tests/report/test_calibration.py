"""The calibration page: promises, curves and every trial in a table."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.calibration.experiments import experiments
from beholder.calibration.repeat import repeat
from beholder.calibration.summary import summarise, summary
from beholder.calibration.weaknesses import weaknesses
from beholder.report.calibration import promises, render_calibration
from beholder.studies.trial import Trial
from beholder.studies.trial_summary import Summary


def drawn(covered: int, called: int, of: int = 1000) -> np.ndarray:
    """Outcomes around a truth of 0: so many intervals hold it, so many p-values are small."""
    low = np.where(np.arange(of) < covered, -1.0, 0.5)
    p_value = np.where(np.arange(of) < called, 0.01, 0.5)
    return np.stack([np.zeros(of), low, np.ones(of), p_value], axis=1)


def test_a_broken_promise_is_named():
    (coverage, alarms) = promises([summary(Trial("some.metric", "a world", 100, 0.0), drawn(900, 70))])
    assert not coverage.kept
    assert "some.metric · a world: 90.0" in coverage.sentence
    assert not alarms.kept


# What is promised, in a reduced version; the full one is `beholder calibrate`, its numbers in docs/calibration.md


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> list[Summary]:
    names = [
        "association 100 people, mean 0.04",
        "ratio 100 women, 100 men, b = 1",
        "identity 100",
        "identity 30",
        "gap 2 groups of 100, gap 0 points",
        "judgements 2 groups of 100, difference 0",
        "depths",
        "precision 2 groups of 400, shown by 40 % and 15 %, quality 1.5 and 1.5",
    ]
    chosen = [experiments()[name] for name in names]
    folder = tmp_path_factory.mktemp("calibration")
    return summarise(chosen, repeat(chosen, folder, repetitions=150, seed=5, workers=1))


@pytest.mark.slow
def test_intervals_cover_and_tests_are_quiet(reduced: list[Summary]):
    assert all(promise.kept for promise in promises(reduced)), promises(reduced)


@pytest.mark.slow
def test_known_weaknesses_are_found_and_listed(reduced: list[Summary]):
    listed = {weakness.metric: weakness for weakness in weaknesses(reduced)}
    assert {"gras.largest_gap", "disparity.ap_gap", "perception.skew", "apa.identity_given_image"} <= set(listed)
    assert all(weakness.found for weakness in listed.values())


@pytest.mark.slow
def test_the_page_holds_every_trial_and_asks_the_network_for_nothing(reduced: list[Summary]):
    page = render_calibration(reduced, settings="150 repetitions")
    assert all(each.trial.metric in page for each in reduced)
    assert "default-src" in page
    assert "http://" not in page.partition("<script>")[0]
