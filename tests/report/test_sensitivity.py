"""Small changes of the pictures: each finding says how much of its interval they move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.chapter.finding import finding
from beholder.core.results import Row, results_table
from beholder.datasets import load_dataset
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.images import CHANGES, changed_uri, open_image
from beholder.prompts.prompt_set import prompt_set
from beholder.report.report import moves, sensitivity_table
from beholder.studies.custom.study import custom_study

WORDS = prompt_set("words", [{"text": w, "level": "words", "concept": w} for w in ("kind", "cold")])


def results(value: float, low: float | None = 0.4, high: float | None = 0.6) -> pl.DataFrame:
    rows = [
        Row("x.gap", value, 10, "share", subset="a", low=low, high=high),
        Row("x.gap", 0.1, 10, "share", subset="b"),
    ]
    return results_table(rows, study="x", model="m", dataset="d")


def test_a_move_is_a_share_of_the_interval() -> None:
    found = [finding(results(0.5).row(0, named=True), "gap", "Headline", "Sentence.")]
    after = pl.concat([results(value).with_columns(change=pl.lit(str(value))) for value in (0.45, 0.55)])
    (move,) = moves(found, after)
    assert (move.low, move.high, move.share) == (0.45, 0.55, pytest.approx(0.5))
    table = sensitivity_table(found, after)
    assert table is not None
    assert [cell.text for cell in table.rows[0]] == ["Headline", "0.5", "0.45 to 0.55", "50%"]


def test_without_an_interval_no_share_is_given() -> None:
    found = [finding(results(0.5, None, None).row(0, named=True), "gap", "Headline", "Sentence.")]
    (move,) = moves(found, results(0.45).with_columns(change=pl.lit("one")))
    assert move.share is None


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_small_and_has_its_own_digest(change: str, tmp_path: Path) -> None:
    y, x = np.mgrid[:60, :80]
    Image.fromarray(np.stack([x * 3, y * 4, x + y], axis=2).astype(np.uint8)).save(tmp_path / "a.png")
    plain, uri = str(tmp_path / "a.png"), changed_uri(str(tmp_path / "a.png"), change)
    before, after = open_image(plain), open_image(uri)
    assert max(abs(before.width - after.width), abs(before.height - after.height)) <= 2
    difference = np.asarray(after.resize(before.size), float) - np.asarray(before, float)
    assert 0 < np.abs(difference).mean() < 4
    digests = ImageDigests(tmp_path / "digests").of([plain, uri])
    assert None not in digests
    assert digests[0] != digests[1]


def test_an_audit_measures_again_after_each_change(people: Callable[..., Path], tmp_path: Path) -> None:
    source = f"folder:{people(24)}"
    options = AuditOptions(dataset=source, out=tmp_path / "run", store=tmp_path / "store", perturb=2, draws=100)
    run = audit_models(["null"], [custom_study(WORDS, by=("gender",))], options)
    assert set(run.perturbed["change"]) == set(list(CHANGES)[:2])
    assert run.perturbed.height == 2 * run.results.height
    assert load_run(tmp_path / "run").perturbed.equals(run.perturbed)
    assert len(load_dataset(source)) == 24
