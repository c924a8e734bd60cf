"""Trial of exposure: worlds are measured as captions and models are, and the wholly unfair one is found."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.studies.exposure.measures import RATIO, TRIALS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, UNFAIR, WORLDS, Design, draw

OPTIONS = MeasureOptions(draws=100, shuffles=199)


def called(world: str, design: Design) -> set[str]:
    rows = TRIALS.measure(draw(world, design, TRIALS.prompts, np.random.default_rng(6)), OPTIONS)
    return {row.metric for row in rows if row.verdict == DIFFERENCE}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_every_world_can_be_measured_in_every_design(world: str):
    for design in DESIGNS.values():
        assert called(world, design) <= {RATIO, "exposure.identity_gap", "exposure.identity_correlation"}


@pytest.mark.parametrize("world", [UNFAIR, GENDER_ONLY])
def test_who_is_always_named_and_who_never_is_found_from_ten_of_each_on(world: str):
    assert called(world, Design(10, 10)) == {RATIO}
