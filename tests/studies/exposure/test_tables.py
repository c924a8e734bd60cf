"""Tables of captions: every metric, and absent is shown as absent."""

from __future__ import annotations

from collections.abc import Callable

from beholder._run import Run
from beholder.studies.exposure.chapter import exposure_tables


def test_every_metric_is_in_a_table_of_its_topic(made: Callable[..., Run]):
    made_tables = list(exposure_tables(made().results))
    assert [table.title for table in made_tables] == [
        "Captions per person",
        "Women over men",
        "Words",
        "Named and known by name",
    ]
    assert {table.topic for table in made_tables} == {"named", "words", "known"}
    assert all(len(row) == len(table.header) for table in made_tables for row in table.rows)
