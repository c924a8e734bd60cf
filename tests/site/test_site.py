"""The site: every number once, what does not compare said apart, pages that work from disk and send nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder._gate import Rule
from beholder._run import Run
from beholder.core.errors import UsageError
from beholder.report.page import write_page
from beholder.site import best_cell, build_site, questions, site_numbers


def saved(run: Run, folder: Path) -> Path:
    run.save(folder)
    run.save_findings(folder)
    write_page(run.report, folder)
    return folder


def test_published_models_and_runs_stand_at_one_place(apa_run: Run) -> None:
    numbers = site_numbers({"mine": apa_run})
    ratio = next(q for q in questions(numbers) if q.title == "Bias ratio: politicians")
    assert ratio.numbers.filter(run="mine").height == 1
    assert ratio.numbers.filter(run="")["model"].n_unique() > 30
    assert ratio.headline


def test_what_was_measured_in_another_way_is_not_ranked(apa_run: Run) -> None:
    apa_run.record.datasets = [{"name": "apa", "images": 200, "of": 845}]
    numbers = site_numbers({"part": apa_run})
    assert set(numbers.filter(run="part")["reason"]) == {"200 of 845 images"}
    ratio = next(q for q in questions(numbers) if q.title == "Bias ratio: politicians")
    cell = best_cell(ratio, "clip")
    assert cell is not None
    assert cell.reason == "200 of 845 images"


def test_the_front_page_has_own_models_first_then_the_most_even_handed(apa_run: Run, tmp_path: Path) -> None:
    text = build_site([saved(apa_run, tmp_path / "run")], tmp_path / "site").read_text(encoding="utf-8")
    assert re.search(r"<h1>In \d+ of 39 published models women get a lower probability", text)
    assert "Yours, clip: 0.62 times" in text
    board = text[text.index('<section id="apa">') :]
    rows = re.findall(r'<tr( class="own")?><th scope="row">.*?</tr>', board[: board.index("</table>")], re.S)
    assert rows[0] == ' class="own"'
    assert "own" not in "".join(rows[1:])
    page = next((tmp_path / "site" / "models").glob("*-clip.html")).read_text(encoding="utf-8")
    assert "Difference found" in page


def test_random_scores_are_no_model(apa_run: Run) -> None:
    noise = apa_run.results.with_columns(model=pl.lit("null"))
    assert site_numbers({"noise": Run(noise, apa_run.record)}, published=False).is_empty()


def test_an_empty_site_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name at least one run folder"):
        build_site([], tmp_path, published=False)


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_file(apa_run: Run, hostile_run: Run, tmp_path: Path) -> None:
    runs = [saved(apa_run, tmp_path / "first"), saved(hostile_run, tmp_path / "x" / "first")]
    rule = Rule("apa.bias_ratio", {"subset": "politicians"}, at_least=0.9)
    index = build_site(runs, tmp_path / "site", rules=[rule])
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in (each for each in pages if "runs" not in each.parts):
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        for link in re.findall(r'(?:href|src)="([^"#]+)(?:#[^"]*)?"', text):
            assert (page.parent / link).is_file(), (page, link)
    assert "stopped: 1 of" in index.read_text(encoding="utf-8")
    assert not list((tmp_path / "site").rglob("*.npy"))


@pytest.mark.slow
def test_the_site_works_from_disk(two_models: Run, browser: Any, tmp_path: Path) -> None:
    index = build_site([saved(two_models, tmp_path / "run")], tmp_path / "site")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(index.as_uri())
    page.fill("#search", "siglip")
    shown = page.locator("section:not(#runs) .board tbody tr:visible th").all_inner_texts()
    assert shown
    assert all("siglip" in name.lower() for name in shown)
    page.fill("#search", "")
    page.focus("#apa thead th:nth-child(2)")
    page.keyboard.press("Enter")
    values = page.eval_on_selector_all(
        "#apa tbody td:nth-child(2)", "cells => cells.map((cell) => Number(cell.dataset.value))"
    )
    assert values == sorted(values, reverse=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto((tmp_path / "site" / "scatter.html").as_uri() + "#x=parameters&y=apa-bias-ratio-actors")
    page.wait_for_selector("#scatter svg .mark-symbol path")
    assert page.locator("#scatter svg .mark-symbol path").count() > 20
    assert "x=parameters" in page.evaluate("location.hash")
    assert messages == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
