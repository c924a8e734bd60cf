"""Every row of the results is in the page, and can be found there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_runs import unpacked as unpacked_page

from beholder._run import Run
from beholder.report import number_table as ledger
from beholder.report.number_table import Ledger, results_ledger
from beholder.report.page import render, write_page


def unpacked(data: dict[str, Any]) -> pl.DataFrame:
    """The slow obvious way back."""
    columns = {}
    for name, field in data["fields"].items():
        words = field.get("words")
        columns[name] = [words[c] if words and c is not None else c for c in field["cells"]]
    return pl.DataFrame(columns)


def test_what_is_packed_is_what_was_there(two_models: Run):
    results = two_models.results
    names = ("metric", "subset", "group", "note", "n", "value")
    back = unpacked(Ledger(results, [], [(name, name) for name in names]).data)
    assert set(back.columns) == set(names)
    for name in ("metric", "subset", "group", "note", "n"):
        assert back[name].to_list() == results[name].to_list()
    values = [None if value is None else float(f"{value:.5g}") for value in results["value"]]
    assert back["value"].to_list() == pytest.approx(values)


def test_the_page_holds_every_row_and_only_filters_that_choose(two_models: Run):
    page = render(two_models.report)
    data = unpacked_page(re.search(r'id="ledger-cells">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["rows"] == two_models.results.height
    assert '<select name="model">' in page
    assert '<select name="dataset">' not in page  # there is one


def test_too_many_rows_are_left_to_the_file(two_models: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledger, "MOST", 10)
    assert results_ledger(two_models.results) is None
    page = render(two_models.report)
    assert 'id="rows"' not in page
    assert 'href="results.csv"' in page


def test_an_empty_run_has_no_ledger():
    assert results_ledger(Run().results) is None


@pytest.fixture
def page(two_models: Run, browser: Any, tmp_path: Path) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    opened.goto(write_page(two_models.report, tmp_path).as_uri())
    yield opened
    opened.close()


def column(page: Any, number: int) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        f"#ledger tbody tr > :nth-child({number})", "cells => cells.map(c => c.childNodes[0].textContent)"
    )
    return found


@pytest.mark.slow
def test_a_link_leads_to_the_rows_it_names_and_they_can_be_sorted(page: Any, two_models: Run):
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.click('.findings a[data-metric="apa.bias_ratio"]')
    page.wait_for_selector("#ledger tbody tr")
    assert "metric=apa.bias_ratio" in page.evaluate("location.hash")  # a link that keeps the filters
    assert set(column(page, 1)) == {"apa.bias_ratio"}
    assert len(set(column(page, 2))) == 1  # one model
    page.select_option("#filters [name=model]", "")
    page.click("#ledger thead th:nth-child(4) button")
    wanted = two_models.results.filter(metric="apa.bias_ratio").sort("value", descending=True)["value"]
    assert [float(text) for text in column(page, 4)] == pytest.approx(wanted.to_list(), rel=1e-3)
    assert page.get_attribute("#ledger thead th:nth-child(4)", "aria-sort") == "descending"
    page.fill("#filters [name=text]", "politicians siglip")
    assert page.inner_text("#shown").startswith("1 of ")


@pytest.mark.slow
def test_a_hostile_name_is_a_word_in_the_ledger(hostile_run: Run, page: Any, tmp_path: Path):
    page.goto(write_page(hostile_run.report, tmp_path / "hostile").as_uri())
    page.evaluate("document.getElementById('rows').scrollIntoView()")
    page.wait_for_selector("#ledger tbody tr")
    page.fill("#filters [name=text]", "onerror")
    assert "onerror=alert" in page.inner_text("#ledger tbody")
    assert page.query_selector("#ledger img") is None
