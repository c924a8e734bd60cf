"""The calibration page and the tables of the docs."""

from __future__ import annotations

import html
from pathlib import Path

import polars as pl
import pytest

from beholder.calibration.claims import SCHEMA, judged
from beholder.core.errors import UsageError
from beholder.report.replication import BEGIN, END, heat_cell, heats, render_calibration, write_into


@pytest.fixture
def table() -> pl.DataFrame:
    none = {**dict.fromkeys(SCHEMA, 0), "study": "gras", "design": "5 + 40", "worlds": 400}
    rows = [
        {"world": "noise", "claim": "gras.gap", "null": 400, "alarm": 40, "interval": 400, "missed": 40},
        {"world": "noise", "claim": "gras.welch", "tests": 400, "small": 399},
        {"world": "gender only", "claim": "gras.gap", "true": 400, "found": 399},
        {"world": "ties", "claim": "gras.gap", "null": 400, "alarm": 4, "true": 400, "found": 400},
    ]
    return judged(pl.DataFrame([{**none, **row} for row in rows]))


def test_every_claim_stands_beside_every_world(table: pl.DataFrame):
    (heat,) = heats(table)
    assert heat.worlds == ["noise", "gender only", "ties"]
    ((name, cells),) = heat.rows
    assert name == "gras.gap"
    assert [(cell.text, cell.detail, cell.kind) for cell in cells] == [
        ("10", "90", "broken"),
        ("99.8", "", "true"),
        ("1 / 100", "", ""),
    ]


def test_a_claim_of_which_nothing_is_told_has_a_dash(table: pl.DataFrame):
    assert heat_cell(table.row(1, named=True)).text == "—"


def test_the_page_names_what_is_broken_and_asks_the_network_for_nothing(table: pl.DataFrame):
    page = html.unescape(render_calibration(table)).replace("\N{NO-BREAK SPACE}", " ")
    assert "Not kept: gras.gap · noise · 5 + 40: 10.0 % of 400" in page
    assert "gras.welch: 100 % of worlds" in page
    assert "default-src" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_tables_replace_what_stood_between_the_marks(table: pl.DataFrame, tmp_path: Path):
    page = tmp_path / "calibration.md"
    page.write_text(f"Before\n{BEGIN}\nstale\n{END}\nAfter\n")
    write_into(page, table)
    once = page.read_text()
    assert "stale" not in once
    assert "| `gras.gap` | **10** (90) | *99.8* | 1 / 100 |" in once
    assert once.startswith("Before\n")
    assert once.endswith("\nAfter\n")
    write_into(page, table)
    assert page.read_text() == once
    page.write_text("nothing")
    with pytest.raises(UsageError, match="two lines"):
        write_into(page, table)
