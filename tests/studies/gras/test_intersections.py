"""Interactions: what goes beyond the sum of single attributes, against a plain least-squares fit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.studies.gras.groups import Answers
from beholder.studies.gras.intersections import Intersections, intersections


def crossed(*, main: float = 0.0, together: float = 0.0, images: int = 1, seed: int = 1) -> Intersections:
    """Two genders × three races × two ages, 30 people each; Male × C × 40 gets `together` on top of its attributes."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(12), 30 * images)
    gender, race, age = np.unravel_index(cell, (2, 3, 2))
    who = np.arange(len(cell)) // images
    effect = main * (gender + race / 2 + age) + together * ((gender == 1) & (race == 2) & (age == 1))
    values = rng.normal(0, 0.05, (len(cell), 2, 1))[who] + np.stack([effect, 0 * effect], axis=1)[:, :, None] + 0.4
    columns = {"gender": ("Female", "Male"), "race": ("A", "B", "C"), "age": ("20", "40")}
    places = {
        name: np.array(names)[own] for (name, names), own in zip(columns.items(), (gender, race, age), strict=True)
    }
    table = pl.DataFrame({**places, "person": who.astype(str)})
    answers = Answers(table, ["kind", "cold"], ["positive", "negative"], ["T1"], values)
    found = intersections(answers, np.random.default_rng(0))
    assert found is not None
    return found


def test_main_effects_alone_are_no_interaction() -> None:
    found = crossed(main=0.1)
    assert (found.from_mean.p_value <= 0.05).sum() >= 6, "the cells do differ"
    assert found.beyond.together > 0.05
    assert (found.beyond.p_value > 0.05).all()


def test_a_cell_beyond_its_attributes_is_shown_whatever_they_are() -> None:
    for main in (0.0, 0.1):
        found = crossed(main=main, together=0.08)
        top = found.names.index("Male × C × 40")
        assert found.beyond.together <= 0.05
        assert found.beyond.p_value[top] <= 0.05
        assert found.beyond.low[top] > 0


def test_departures_are_those_of_a_least_squares_fit() -> None:
    found = crossed(main=0.1, together=0.05)
    labels = [name.split(" × ") for name in found.names]
    design = np.array([[1, g == "Male", r == "B", r == "C", a == "40"] for g, r, a in labels], dtype=float)
    fit = design @ np.linalg.lstsq(design, found.raw, rcond=None)[0]  # cells of one size
    np.testing.assert_allclose(found.additive, fit)
    np.testing.assert_allclose(found.beyond.value, found.raw - fit)


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_people_are_one_observation(seed: int) -> None:
    alone, copied = crossed(seed=seed), crossed(images=4, seed=seed)
    assert copied.size.tolist() == [120] * 12
    assert copied.beyond.together > 0.01
    width = [float((each.beyond.high - each.beyond.low).mean()) for each in (alone, copied)]
    assert width[1] == pytest.approx(width[0], rel=0.2)
