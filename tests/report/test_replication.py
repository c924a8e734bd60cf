"""The replication page holds every cell, escapes what it shows and runs no script but its own."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_runs import unpacked

from beholder.report.replication import consistency, counts, ledger, write_replication


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replication")
    write_replication(ledger(), consistency(), folder, models=[])
    return folder


def test_the_page_holds_every_cell_and_counts_each_verdict(folder: Path):
    page = (folder / "replication.html").read_text()
    embedded = re.search(r'id="ledger-cells">(.*?)</script>', page, re.DOTALL)
    assert embedded
    assert unpacked(embedded[1])["rows"] == pl.read_parquet(folder / "ledger.parquet").height
    for verdict, numbers in counts(ledger()).items():
        columns = "".join(f'<td class="strong">{numbers[origin]:,}</td>' for origin in ("printed tables", "none"))
        assert f"{verdict}</th>{columns}" in page
    assert "From printed tables</th>" in page
    assert "From this run" not in page, "no run was named"


def test_the_page_asks_the_network_for_nothing(folder: Path):
    page = (folder / "replication.html").read_text()
    assert "default-src 'none'" in unescape(page)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)


@pytest.mark.slow
def test_the_filters_leave_what_was_asked_for(folder: Path, browser: Any):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((folder / "replication.html").as_uri())
    page.select_option("select[name=metric]", "apa.bias_ratio")
    page.select_option("select[name=table]", "Table 6")
    assert page.inner_text("#shown").startswith("39 of ")
    page.fill("input[name=text]", "siglip large")
    assert page.locator("#ledger tbody tr").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
    assert said == []


def test_a_pair_of_groups_is_shown_with_both_names(folder: Path):
    page = (folder / "replication.html").read_text()
    embedded = re.search(r'id="ledger-cells">(.*?)</script>', page, re.DOTALL)
    assert embedded
    shown = json.dumps(unpacked(embedded[1]), ensure_ascii=False)
    assert '"sc weat · causalface · race · white · against black · mean"' in shown
