"""True values from very large draws: drawn in parts."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.studies import large_draws


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
