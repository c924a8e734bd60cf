"""Interactions: what goes beyond the sum of single attributes, against a plain least-squares fit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.groups import people_of
from beholder.studies.gras.groups import Answers, Intersections, intersections


def crossed(
    *, main: float = 0.0, together: float = 0.0, images: int = 1, seed: int = 1, wide: float = 1.0, small: int = 30
) -> Intersections:
    """Two genders × three races × two ages, 30 people each; Male × C × 40 gets `together` on top of its attributes.

    It may have fewer people, and a spread of its own.
    """
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(12), [*[30] * 11, small])
    cell = np.repeat(people, images)
    gender, race, age = np.unravel_index(cell, (2, 3, 2))
    who = np.arange(len(cell)) // images
    last = cell == 11
    effect = main * (gender + race / 2 + age) + together * last
    noise = rng.normal(0, 0.05, (len(people), 2, 1))[who] * np.where(last, wide, 1.0)[:, None, None]
    values = noise + np.stack([effect, 0 * effect], axis=1)[:, :, None] + 0.4
    columns = {"gender": ("Female", "Male"), "race": ("A", "B", "C"), "age": ("20", "40")}
    places = {
        name: np.array(names)[own] for (name, names), own in zip(columns.items(), (gender, race, age), strict=True)
    }
    table = pl.DataFrame({**places, "person": who.astype(str)})
    answers = Answers(table, ["kind", "cold"], ["positive", "negative"], ["T1"], values)
    found = intersections(answers, people_of(table), np.random.default_rng(0), 299)
    assert found is not None
    assert found.beyond is not None
    return found


def test_main_effects_alone_are_no_interaction() -> None:
    found = crossed(main=0.1)
    assert found.from_mean.found.sum() >= 6, "the cells do differ"
    assert not found.beyond.found.any()


def test_a_cell_beyond_its_attributes_is_found_whatever_they_are() -> None:
    for main in (0.0, 0.1):
        found = crossed(main=main, together=0.12)
        top = found.names.index("Male × C × 40")
        assert found.beyond.found[top, 0]
        assert found.beyond.low[top, 0] > 0


def test_departures_are_those_of_a_least_squares_fit() -> None:
    found = crossed(main=0.1, together=0.05)
    labels = [name.split(" × ") for name in found.names]
    design = np.array([[1, g == "Male", r == "B", r == "C", a == "40"] for g, r, a in labels], dtype=float)
    fit = design @ np.linalg.lstsq(design, found.raw, rcond=None)[0]  # cells of one size
    np.testing.assert_allclose(found.departures, found.raw - fit)
    np.testing.assert_allclose(found.beyond.value[:, 0], found.raw - fit)
    np.testing.assert_allclose(found.from_mean.value[:, 0], found.raw - found.raw.mean())


@pytest.mark.slow
@pytest.mark.parametrize("wide", [2.0, 10.0])
def test_a_small_cell_of_other_spread_is_seldom_called(wide: float) -> None:
    called = 0
    for seed in range(60):
        found = crossed(seed=seed, wide=wide, small=8)
        called += bool(found.from_mean.found.any() or found.beyond.found.any())
    assert called <= 9  # 6 % of 60, and what chance adds to it in one of a hundred


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_people_are_one_observation(seed: int) -> None:
    alone, copied = crossed(seed=seed), crossed(images=4, seed=seed)
    assert copied.size.tolist() == [120] * 12
    assert not copied.beyond.found.any()
    width = [float((each.beyond.high - each.beyond.low).mean()) for each in (alone, copied)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
