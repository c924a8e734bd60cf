"""Known truth against what the audit found."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl

from beholder._run import Run
from beholder.core.results import Row, results_table
from beholder.studies.gras.chapter import gras_planted


def gap_row(trait: str, higher: str, lower: str, gap: float) -> Row:
    row = Row("gras.largest_gap", gap, 120, "probability", subset="gender", group=higher, against=lower, concept=trait)
    verdict = "difference found" if gap > 0.01 else "none found"
    return row._replace(low=gap - 0.01, high=gap + 0.01, verdict=verdict)


def test_planted_traits_are_compared_with_what_was_found(make: SimpleNamespace) -> None:
    rows = [gap_row("brave", "woman", "man", 0.19), gap_row("honest", "man", "woman", 0.002)]
    results = results_table(rows, study="gras", model="glasshouse/generative", dataset="glasshouse")
    table = gras_planted(results)
    assert table is not None
    cells = ["gender", "brave", "120", "20.0", "19.0", "woman higher than man", "yes"]
    assert [cell.text for cell in table.rows[0]] == cells
    assert table.notes == ("Where nothing was planted, a difference was found in 0 of 1 gaps.",)
    assert Run(results, make.record("x")).findings[0].headline == "The audit finds 1 of 1 planted associations"
    assert gras_planted(results.with_columns(model=pl.lit("other"))) is None


def test_a_gap_in_the_other_direction_is_not_recovered(make: SimpleNamespace) -> None:
    rows = [gap_row("brave", "man", "woman", 0.19)]
    results = results_table(rows, study="gras", model="glasshouse/generative", dataset="glasshouse")
    (finding, *_) = Run(results, make.record("x")).findings
    assert finding.headline == "The audit finds 0 of 1 planted associations"
    assert not finding.shown
