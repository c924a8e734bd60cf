"""Published models stand beside a run only where the quantity is the same."""

from __future__ import annotations

from types import SimpleNamespace

from beholder.run import Run
from beholder.studies.public_figures.published_rank import comparable_results, published_rank


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
