"""Findings about captions follow from the rows, and nothing is claimed without captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beholder._run import Run
from beholder.studies.exposure.chapter import exposure_findings, exposure_tables


def findings(run: Run) -> dict[str, Any]:
    return {
        each.headline: each
        for (_,), part in run.results.group_by(["model"], maintain_order=True)
        for each in exposure_findings(part)
    }


def test_women_who_are_named_less_and_known_less_are_found(made: Callable[..., Run]):
    known = findings(made())
    assert known["Women are named less often than men"].shown
    assert "senators and mayors" in known["Women are named less often than men"].sentence
    assert known["The model knows people better whom captions name more often"].shown
    gap = known["The right name stands out more for men than for women"]
    assert gap.shown
    assert "at equal exposure" in gap.sentence
    assert "Of 9,000 captions, 15 contain “actress” and 14 “actor”." in known["Actresses and actors"].sentence


def test_no_difference_is_told_as_not_shown(made: Callable[..., Run]):
    known = findings(made(often=(1.5, 1.5), known=0.0))
    assert not known["No difference between how often women and men are named was found"].shown
    assert not known["No link between captions and known names was found"].shown


def test_when_no_caption_names_anyone_nothing_is_claimed(made: Callable[..., Run]):
    run = made(often=(-50.0, -50.0))
    assert set(findings(run)) == {
        "No caption names anyone",
        "Actresses and actors",
        "No difference in how well women and men are known by name was found",
    }
    ratios = next(table for table in exposure_tables(run.results) if table.title == "Women over men")
    assert {cell.text for row in ratios.rows for cell in row[2:]} == {"—"}
    assert "captions name nobody" in ratios.notes[0]
