"""Every value of every study is what it was, whatever becomes of its null, its bounds and its verdict."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runs import COMMANDS, HERE, PLACE, run

KEY = [*PLACE, "group"]
NO_VALUES = (
    r"^gras\.((bias_score|biased_traits)_(shown|sized|expected)|wording_share|other_gap)$"
    r"|^custom\..*(selection_rate|impact_ratio)$"
)
"""Counts of verdicts, what shuffles give, what folds of people gave, and what came later: no values of the paper."""

STATISTICS = r"^gras\.(welch|template_anova|omega_squared)$"
"""The demo asks models, whose last bits depend on the processor (P(Yes) moves by 6e-8): these magnify them."""

DRAWN = ("demo", "apa", "disparity")
"""Some of their values are drawn at random; those of the others are the same however few draws bound them."""


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_values_are_what_they_were(name: str, tmp_path: Path):
    few = () if name in DRAWN else ("--draws", "100")
    before, now = (
        table.filter(~pl.col("metric").str.contains(NO_VALUES)).select(*KEY, "value", "n").sort(*KEY, "value")
        for table in (
            pl.read_parquet(HERE / f"{name}.parquet").rename({"benchmark": "study"}),
            run(name, tmp_path, *few),
        )
    )
    now = now.filter(pl.col("metric").is_in(before["metric"].unique().implode()))  # metrics may be added, not lost
    if name != "demo":
        assert_frame_equal(before, now, rel_tol=1e-6, abs_tol=1e-9)
        return
    tests = pl.col("metric").str.contains(STATISTICS)
    assert_frame_equal(before.filter(~tests), now.filter(~tests), rel_tol=1e-5, abs_tol=1e-7)
    assert_frame_equal(before.filter(tests), now.filter(tests), rel_tol=1e-4, abs_tol=1e-4)
