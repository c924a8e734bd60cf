"""True values in closed form are those of a large world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beholder.studies.gras import trials as traits
from beholder.studies.perception.trials import judged_world, marked_share, true_skew


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_true_skew_and_markedness_are_those_of_a_large_world():
    judged = judged_world(100_000, 0.5, rng())
    order = np.argsort(-judged.by_dimension(judged.cosine)[:, 0])[:20_000]
    assert np.log((order < 100_000).mean() / 0.5) == pytest.approx(true_skew(0.5, 0.1), abs=0.01)
    own = judged.word("male")
    assert own is not None
    assert (judged.neutral[:100_000] > own[:100_000]).mean() == pytest.approx(marked_share(), abs=0.005)


@pytest.mark.parametrize(("attribute", "gap"), [("gender", 0.1), ("race", 0.1), ("race", 0.0)])
def test_the_true_share_of_variance_is_that_of_a_large_world(attribute: str, gap: float):
    oracle, levels = traits._gapped(attribute, gap)
    labels = {attribute: np.repeat(np.arange(traits.GROUPS[attribute]), 40_000).astype(str)}
    first = type(levels)(levels.latent[:1, :1])
    values = oracle.probability(labels, first, rng())[:, 0, 0].reshape(-1, 40_000)
    between = values.mean(axis=1).var()
    share = between / (between + values.var(axis=1).mean())
    assert traits.true_share(oracle, levels, attribute) == pytest.approx(share, abs=4e-3)


def test_the_true_favour_of_a_cell_is_that_of_a_large_cell():
    levels, slope = traits._crossed_world()
    moved = replace(traits.PLAIN, effects={"cell": {"a": 0.3}})
    labels = {"cell": np.repeat("a", 40_000)}
    p_yes = moved.probability(labels, levels, rng(), touched=np.arange(traits.CROSSED_TRAITS) < 2)
    favour = p_yes[:, :2].mean() - p_yes[:, 2:].mean()
    assert float(traits.favour(levels, 0.3)) == pytest.approx(favour, abs=3e-3)
    assert slope > 0


@pytest.mark.slow
def test_pooled_intersections_cover_as_they_say():
    """Over 250 worlds; the full run has a thousand."""
    experiment = next(e for e in traits.intersection_experiments() if "of 6 to 42" in e.name)
    drawn = np.array([experiment.simulate(rng(seed)) for seed in range(250)])[:, 0]
    assert 0.91 <= ((drawn[:, 1] <= 0) & (drawn[:, 2] >= 0)).mean() <= 0.985
