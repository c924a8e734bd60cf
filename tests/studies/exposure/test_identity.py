"""Identity scores of an earlier audit: the same numbers as its results, read without its model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from beholder._run import Run
from beholder.cli import app
from beholder.core.errors import MissingData, UsageError
from beholder.datasets import load_dataset
from beholder.studies.exposure.study import identity_scores

pytestmark = pytest.mark.real


def run(*words: object) -> None:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_everybody_who_was_audited_is_read_from_the_store(data: Path, tmp_path: Path, undrawn: list[object]):
    out, store = tmp_path / "run", tmp_path / "store"
    places = ("--data", data, "--out", out, "--store", store)
    run("audit", "null", "-s", "apa", *places, "--limit", 8, "--draws", 100, "-q")
    (people,) = identity_scores(out, load_dataset("apa", data), store).values()
    assert people.height == 40
    assert people.columns == ["name", "gain", "known", "branch"]
    with pytest.raises(MissingData, match="--store"):
        identity_scores(out, load_dataset("apa", data), tmp_path / "elsewhere")


def test_imported_scores_are_read_from_their_files_again(
    data: Path, golden: Path, tmp_path: Path, undrawn: list[object]
):
    scores = golden / "identity_logits_senate.npy"
    run("measure", "apa", "--scores", scores, "--data", data, "--out", tmp_path, "--draws", 100, "-q")
    people = identity_scores(tmp_path, load_dataset("apa", data), tmp_path)["imported"]
    logits = np.load(scores).astype(float)
    assert people["branch"].unique().to_list() == ["senate"]
    senate = load_dataset("apa", data).where(branch="senate").table
    alike = senate.select(pl.concat_str("gender", "party")).to_series().to_numpy()
    for row, (gain, label) in enumerate(zip(people["gain"], alike, strict=True)):
        others = np.flatnonzero((alike == label) & (np.arange(len(alike)) != row))
        expected = logits[row, row] - logits[row, others].mean() if len(others) else None
        assert gain == (None if expected is None else pytest.approx(expected))


def test_a_run_of_something_else_is_refused_by_name(data: Path, tmp_path: Path):
    other = Run()
    other.record.studies, other.record.datasets = ["apa"], [{"name": "glasshouse"}]
    other.save(tmp_path)
    with pytest.raises(UsageError, match="apa on glasshouse"):
        identity_scores(tmp_path, load_dataset("apa", data), tmp_path)
