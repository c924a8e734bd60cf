"""Published models stand beside a run only where the quantity is the same."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl

from beholder._run import Run
from beholder.studies.public_figures.published import comparable_results, published_rank


def test_a_model_ranks_among_39_published_ones(apa_run: Run) -> None:
    table = published_rank(apa_run.results)
    assert table is not None
    assert table.title == "Where this model ranks among 39 published models"
    assert any("do not add up to 100" in note for note in table.notes)
    assert any("reads the other way" in note for note in table.notes)


def test_nothing_published_stands_beside_drawn_people(glasshouse_run: Run, make: SimpleNamespace) -> None:
    assert published_rank(glasshouse_run.results) is None
    assert comparable_results(make.apa(dataset="my_photos")) == []


def test_identity_among_fewer_names_is_not_compared(make: SimpleNamespace) -> None:
    few = make.share("apa.identity_given_image", 0.9, 10, subset="senate", chance=1 / 10)
    assert comparable_results(make.run(few).results) == []


def test_a_part_of_a_pool_is_not_compared(apa_run: Run) -> None:
    """With `--limit 60` each branch has as much weight as the others, and the published pool has not."""
    whole = {each.row["subset"] for each in comparable_results(apa_run.results) if each.metric == "bias_ratio"}
    part = apa_run.results.with_columns(n=pl.when(pl.col("subset") == "politicians").then(180).otherwise("n"))
    left = {each.row["subset"] for each in comparable_results(part) if each.metric == "bias_ratio"}
    assert whole - left == {"politicians"}
