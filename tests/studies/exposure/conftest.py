"""Runs over captions, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.core.results import results_table
from beholder.studies.exposure.counting import Counts, Tally
from beholder.studies.exposure.measures import count_rows, identity_rows, word_rows
from beholder.studies.exposure.mentions import WORD_TERMS
from beholder.studies.exposure.study import EXPOSURE
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=150, shuffles=299)


def made_run(*, often: tuple[float, float] = (0.5, 2.0), known: float = 1.0, called: str = "captions.txt") -> Run:
    """Two branches of 60; women and men are named as often as `often` says (log), and that makes them `known`."""
    rng = np.random.default_rng(2)
    woman = np.arange(120) % 2 == 0
    captions = rng.poisson(np.exp(np.where(woman, *often)))
    people = pl.DataFrame(
        {
            "branch": np.repeat(["senate", "mayors"], 60),
            "name": [f"person {i}" for i in range(120)],
            "gender": np.where(woman, "woman", "man"),
            "ambiguous": pl.Series([None] * 120, dtype=pl.String),
            "captions": captions,
            "known": known * np.log1p(captions) + rng.normal(0, 0.2, 120),
        }
    ).with_columns(gain="known")
    counts = Counts(np.arange(len(WORD_TERMS)), np.zeros(len(WORD_TERMS), int), [Tally("a", captions=9000)])
    run = Run()
    for model, rows in (
        (called, [*count_rows(people, OPTIONS), *word_rows(counts, 0)]),
        ("mine", identity_rows(people, OPTIONS)),
    ):
        run.add(results_table(rows, study="exposure", model=model, dataset="apa"))
    run.record.studies = ["exposure"]
    run.record.declared["exposure"] = EXPOSURE.declaration()
    return run


@pytest.fixture(autouse=True)
def store_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Counts are kept between runs, not between tests."""
    monkeypatch.setenv("BEHOLDER_STORE", str(tmp_path / "store"))


@pytest.fixture
def made() -> Callable[..., Run]:
    """Makes a run over captions; see `made_run`."""
    return made_run
