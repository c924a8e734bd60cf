"""True values from very large draws: what is stored is what a new draw gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beholder.studies import large_draws
from beholder.studies.public_figures import trials as public_figures


@pytest.mark.parametrize("name", ["identity 30", "identity 100"])
def test_a_stored_large_draw_is_what_a_new_one_gives(name: str):
    again = large_draws.draw(name, public_figures.LARGE_DRAWS[name], total=20_000, seed=99)
    stored = large_draws.large_draws(Path(public_figures.__file__).parent)[name]
    assert stored.draws >= 1_000_000
    assert again.value == pytest.approx(stored.value, abs=4 * np.hypot(again.error, stored.error))


def test_a_draw_is_cut_into_parts_and_counts_every_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(large_draws, "PART", 40)
    sizes: list[int] = []

    def make(count: int, rng: np.random.Generator) -> np.ndarray:
        sizes.append(count)
        return rng.normal(3.0, 1.0, count)

    drawn = large_draws.draw("a", make, total=100)
    assert sizes == [40, 40, 20]
    assert drawn.draws == 100
    assert drawn.value == pytest.approx(3.0, abs=4 * drawn.error)
    assert drawn.error == pytest.approx(0.1, abs=0.03)


def test_a_draw_follows_its_name_and_seed():
    def make(count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(0.0, 1.0, count)

    first, again, other = (large_draws.draw(name, make, total=20).value for name in ("a", "a", "b"))
    assert first == again != other
