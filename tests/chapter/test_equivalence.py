"""Tables of equivalence read verdict and δ from their columns; no note is parsed."""

from __future__ import annotations

import polars as pl

from beholder.chapter.chapter import gap_equivalence_table, ratio_equivalence_table
from beholder.core.results import Row, results_table
from beholder.metrics.group_tests import VERDICTS


def part(*rows: Row) -> pl.DataFrame:
    return results_table(rows, study="s", model="m", dataset="d")


def test_verdicts_of_traits_are_counted_by_attribute():
    rows = [
        Row(
            "s.equivalence",
            bound,
            80,
            "probability",
            subset="skin_tone",
            equivalence=verdict,
            delta=0.02,
            note="undecided",
        )
        for bound, verdict in ((0.01, "equivalent"), (0.05, "difference"), (None, "difference"))
    ]
    (table,) = gap_equivalence_table(part(*rows))
    assert table.title == "Traits shown to differ, or shown to be within 2 points"
    counts = {verdict: "0" for verdict in VERDICTS} | {"equivalent": "1", "difference": "2"}
    assert [cell.text for cell in table.rows[0]] == ["skin tone", "80", "5.0", *counts.values()]


def test_without_a_verdict_or_rows_there_is_no_table():
    old = Row("s.equivalence", 0.1, 80, "ratio", subset="actors", p_value=0.5, note="equivalent; δ = 0.1")
    for rows in ((), (old,)):
        assert [*ratio_equivalence_table(part(*rows)), *gap_equivalence_table(part(*rows))] == []
