"""The chapter on captions: what it says follows from the rows, and absent is shown as absent."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from beholder.core.results import results_table
from beholder.report.page import render
from beholder.report.terminal import print_summary
from beholder.run import Run
from beholder.studies.exposure.charts import exposure_figures
from beholder.studies.exposure.counting import Counts, Tally
from beholder.studies.exposure.findings import exposure_findings
from beholder.studies.exposure.measures import METRICS, count_rows, identity_rows, word_rows
from beholder.studies.exposure.people import WORD_TERMS
from beholder.studies.exposure.study import EXPOSURE
from beholder.studies.exposure.tables import exposure_tables
from beholder.studies.study import MeasureOptions

HOSTILE = "<script>alert(1)</script>"
OPTIONS = MeasureOptions(draws=150)


def made(*, often: tuple[float, float] = (0.5, 2.0), known: float = 0.05, called: str = "captions.txt") -> Run:
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
            "identity": known * np.log1p(captions) + rng.normal(0, 0.01, 120),
        }
    )
    counts = Counts(np.arange(len(WORD_TERMS)), np.zeros(len(WORD_TERMS), int), [Tally("a", captions=9000)])
    run = Run()
    for model, rows in (
        (called, [*count_rows(people, OPTIONS), *word_rows(counts, 0)]),
        ("mine", identity_rows(people, OPTIONS)),
    ):
        run.add(results_table(rows, benchmark="exposure", model=model, dataset="apa"))
    run.record.benchmarks = ["exposure"]
    run.record.declared["exposure"] = EXPOSURE.declaration()
    return run


def findings(run: Run) -> dict[str, Any]:
    return {
        each.headline: each
        for (_,), part in run.results.group_by(["model"], maintain_order=True)
        for each in exposure_findings(part)
    }


def test_women_who_are_named_less_and_known_less_are_found():
    found = findings(made())
    assert found["Women are named less often than men"].shown
    assert "senators and mayors" in found["Women are named less often than men"].sentence
    assert found["The model knows people better whom captions name more often"].shown
    gap = found["The gender gap in known names, before and after exposure"]
    assert gap.shown
    assert "at equal exposure" in gap.sentence
    assert "Of 9,000 captions, 15 contain “actress” and 14 “actor”." in found["Actresses and actors"].sentence


def test_no_difference_is_told_as_not_shown():
    found = findings(made(often=(1.5, 1.5), known=0.0))
    assert not found["No difference between women and men is shown"].shown
    assert not found["No link is shown between captions and known names"].shown


def test_when_no_caption_names_anyone_nothing_is_claimed():
    run = made(often=(-50.0, -50.0))
    assert set(findings(run)) == {"No caption names anyone", "Actresses and actors"}
    ratios = next(table for table in exposure_tables(run.results) if table.title == "Women over men")
    assert {cell.text for row in ratios.rows for cell in row[2:]} == {"—"}
    assert "captions name no woman or no man" in ratios.notes[0]


def test_every_metric_is_in_a_table_of_its_topic():
    made_tables = list(exposure_tables(made().results))
    assert [table.title for table in made_tables] == [
        "Captions per person",
        "Women over men",
        "Words",
        "Named and known by name",
    ]
    assert {table.topic for table in made_tables} == {"named", "words", "known"}
    assert all(len(row) == len(table.header) for table in made_tables for row in table.rows)


def test_every_figure_is_drawn_with_its_intervals():
    drawn = {figure.name: str(figure.paper()) for figure in exposure_figures(made().results)}
    assert set(drawn) == {"captions-women-over-men", "never-named", "named-and-known"}
    assert all("'low'" in spec for spec in drawn.values())


@pytest.mark.slow
def test_the_page_names_the_captions_and_escapes_them():
    page = render(made(called=HOSTILE).report)
    assert "<h1>Who is named in &lt;script&gt;alert(1)&lt;/script&gt;, compared with what mine knows</h1>" in page
    assert HOSTILE not in page
    assert all(metric.name in page for metric in METRICS)


def test_the_terminal_shows_findings_and_tables():
    console = Console(width=100, record=True, file=io.StringIO())
    run = made()
    print_summary(run.report, console)
    text = console.export_text()
    assert "Women are named less often than men" in text
    assert "Captions per person" in text
