"""What the wording changes, against worlds whose truth is known and against plain formulas."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.groups import people_of
from beholder.studies.gras.groups import Answers, Grouped
from beholder.studies.gras.measures import WordingShares

ALL = np.ones(4, dtype=bool)


def grouped(gaps: np.ndarray, n: int = 400, noise: float = 0.1, seed: int = 1, images: int = 1) -> Grouped:
    """Two groups of `n` that differ by `gaps[n_wordings]` in each of four traits."""
    rng = np.random.default_rng(seed)
    first = np.repeat([1.0, 0.0], n)
    people = np.arange(2 * n) // images
    own = rng.normal(0, noise, (2 * n, 4, len(gaps)))[people]
    p_yes = 0.5 + first[:, None, None] * gaps + own
    table = pl.DataFrame({"gender": np.where(first > 0, "a", "b"), "person": people.astype(str)})
    names = [f"T{k}" for k in range(len(gaps))]
    return Grouped(Answers(table, list("klmn"), ["positive"] * 4, names, p_yes), "gender", people_of(table))


@pytest.mark.parametrize("gaps", [(0.1, 0.1, 0.1), (0.1, 0.0, 0.05), (0.1, -0.1, 0.0)])
def test_the_share_is_the_true_one(gaps: tuple[float, ...]) -> None:
    truth = np.var(gaps) / np.mean(np.square(gaps))
    assert WordingShares(grouped(np.array(gaps))).share(ALL) == pytest.approx(truth, abs=0.1)


def test_noise_is_not_counted_as_wording() -> None:
    """Few images: differences between wordings are mostly noise, which the plain share counts in full."""
    values = []
    for seed in range(30):
        groups = grouped(np.full(3, 0.1), n=40, noise=0.3, seed=seed)
        values.append(WordingShares(groups).share(ALL))
    deviations = groups.compared().deviations
    plain = 1 - 3 * (deviations.mean(axis=2) ** 2).sum() / (deviations**2).sum()
    assert plain > 0.1
    assert np.nanmean(values) < 0.08


def test_copies_of_people_are_one_person() -> None:
    gaps = np.array([0.1, 0.0, 0.05])
    alone, copied = (WordingShares(grouped(gaps, n=60 * k, images=k)).share(ALL) for k in (1, 5))
    assert copied == pytest.approx(alone, abs=1e-9)


def test_what_chance_adds_is_taken_off_the_squares() -> None:
    """On average over worlds of pure noise nothing is left."""
    left = []
    for seed in range(300):
        shares = WordingShares(grouped(np.zeros(3), n=15, noise=0.3, seed=seed))
        left.append([shares._total.sum(), shares._changing.sum()])
    mean, error = np.mean(left, axis=0), np.std(left, axis=0) / np.sqrt(300)
    assert (np.abs(mean) < 4 * error).all()


def test_without_any_difference_there_is_no_share() -> None:
    assert np.isnan(WordingShares(grouped(np.zeros(3), noise=0.0)).share(ALL))
