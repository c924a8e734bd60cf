"""Charts of captions."""

from __future__ import annotations

from collections.abc import Callable

from beholder._run import Run
from beholder.studies.exposure.chapter import exposure_figures


def test_every_figure_is_drawn_with_its_intervals(made: Callable[..., Run]):
    drawn = {figure.name: str(figure.paper()) for figure in exposure_figures(made().results)}
    assert set(drawn) == {"captions-women-over-men", "never-named", "named-and-known"}
    assert all("'low'" in spec for spec in drawn.values())
