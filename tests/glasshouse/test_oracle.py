"""The oracle's true values are what its draws come to."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.glasshouse.oracle import Noise, Oracle, belief_logits, oracle_with_mean
from beholder.metrics.association import softmax


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_true_mean_is_that_of_a_large_draw():
    oracle = Oracle(0.3, {"gender": {"woman": -0.7}}, Noise(person=0.5, image=1.0, prompt=0.6, template=0.4, cell=0.8))
    levels = oracle.levels(3, 2, rng())
    labels = {"gender": np.repeat(["woman", "man"], 50_000), "person": np.repeat(np.arange(50_000), 2)}
    drawn = oracle.probability(labels, levels, rng(2))
    for gender, shift, rows in (("woman", -0.7, slice(0, 50_000)), ("man", 0.0, slice(50_000, None))):
        assert drawn[rows].mean(axis=0) == pytest.approx(oracle.true_mean(shift, levels), abs=0.006), gender


def test_effects_move_only_the_prompts_they_touch():
    oracle = Oracle(effects={"gender": {"woman": 5.0}}, noise=Noise(image=0.0))
    labels = {"gender": np.array(["woman", "man"])}
    levels, touched = oracle.levels(2, 1, rng()), np.array([True, False])
    found = oracle.latent(labels, levels, rng(), touched=touched)[:, :, 0]
    assert found.tolist() == [[5.0, 0.0], [0.0, 0.0]]


def test_pictures_of_one_person_move_together():
    oracle = Oracle(noise=Noise(person=1.0, image=0.0))
    labels = {"person": np.array(["a", "a", "b"])}
    found = oracle.latent(labels, oracle.levels(1, 1, rng()), rng())[:, 0, 0]
    assert found[0] == found[1] != found[2]


def test_an_oracle_can_be_asked_for_a_mean():
    oracle = oracle_with_mean(0.1, Noise(image=2.0))
    assert oracle.true_mean(oracle.shift_for(0.4)) == pytest.approx(0.4)


def test_belief_comes_back_out_of_a_softmax():
    shares = np.array([0.2, 0.9])
    assert softmax(belief_logits(shares, 9))[:, 0] == pytest.approx(shares)
