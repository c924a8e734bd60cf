"""The page in a real browser: readable by everyone, drawn when seen, saved and printed as promised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder._run import Run
from beholder.comparison.family import NAMES
from beholder.report.page import write_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(two_models: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(two_models.report, tmp_path_factory.mktemp("page"))


def drawn(page: Any) -> int:
    return int(page.evaluate("document.querySelectorAll('.view.drawn').length"))


def draw_all(page: Any) -> None:
    """Open what is closed, show every panel, and wait until every chart is drawn."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate("document.querySelectorAll('.panel').forEach((each) => (each.hidden = false))")
    for view in page.query_selector_all(".view"):
        view.scroll_into_view_if_needed()
    for _ in range(3000):
        if drawn(page) == page.locator(".view").count():
            return
        page.wait_for_timeout(100)
    pytest.fail("some charts were not drawn")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (768, "dark"), (1440, "light"), (1440, "dark")])
def test_no_barrier_for_anyone(path: Path, browser: Any, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True
    )
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    draw_all(page)
    violations = Axe().run(page).response["violations"]
    context.close()
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in violations] == []
    assert said == []


def test_the_first_screen_answers_every_question(two_models: Run, browser: Any, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    sure = Run(two_models.results.with_columns(p_value=pl.lit(0.0005)), two_models.record)
    page.goto(write_page(sure.report, tmp_path).as_uri())
    proof = page.eval_on_selector(".proof .belief", "bar => bar.getBoundingClientRect().bottom")
    asked = {(finding.model, finding.question) for finding in two_models.findings if finding.question}
    assert page.locator(".card tbody tr:not(.whose)").count() == len(asked)
    assert proof < 600
    assert page.evaluate(WORDS_IN_VIEW) <= 350
    assert page.locator(".answer .badge").first.inner_text()[2:] in ("Difference found", "None found")
    page.close()


WORDS_IN_VIEW = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walk.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    const box = range.getBoundingClientRect();
    const element = walk.currentNode.parentElement;
    if (!element.checkVisibility() || element.closest(".skip")) continue;
    if (box.width && box.left >= 0 && box.top < innerHeight && box.bottom > 0)
      words += walk.currentNode.textContent.split(/\\s+/).filter(Boolean).length;
  }
  return words;
}"""


def test_charts_are_drawn_when_they_come_into_view(path: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 500})
    page.goto(path.as_uri())
    page.wait_for_timeout(500)
    assert drawn(page) < page.locator(".view").count()
    draw_all(page)
    page.close()


def test_a_chart_is_saved_under_its_name(path: Path, browser: Any, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    draw_all(page)
    figure = page.locator("figure.chart").first
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b""), ("HTML", b"<!doctype html>")):
        with page.expect_download() as started:
            figure.get_by_role("button", name=re.compile("Embed" if kind == "HTML" else f"as {kind}")).click()
        name = started.value.suggested_filename
        assert re.fullmatch(rf"models-apa-apa-[\w-]+\.{kind.lower()}", name)
        data = Path(started.value.path()).read_bytes()
        assert data.startswith(start)
        assert len(data) > 100
        if kind == "SVG":
            assert b"currentColor" not in data
        if kind == "HTML":
            assert b"<svg" in data
            assert b"<script" not in data
    figure.get_by_role("button", name="Copy link").click()
    assert page.evaluate("location.hash") == "#" + str(figure.get_attribute("id"))
    page.close()


def test_tabs_are_reached_and_turned_by_keyboard(path: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    page.locator("details.all > summary").first.click()
    tabs = page.locator(".tabs").first
    tabs.locator("[role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "Table"
    assert tabs.locator("[role=tabpanel]:visible").get_attribute("data-tab") == "Table"
    page.close()


def test_a_link_to_a_finding_leads_to_it(path: Path, two_models: Run, browser: Any) -> None:
    finding = two_models.findings[-1]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{path.as_uri()}#{finding.id}")
    page.wait_for_timeout(300)
    assert page.locator(f"#{finding.id}").is_visible()
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.click(f"#{finding.id} a.link")
    assert page.evaluate("location.hash") == f"#{finding.id}"
    page.close()


def test_verdicts_are_words_where_colours_are_the_readers_own(path: Path, browser: Any) -> None:
    context = browser.new_context(forced_colors="active")
    page = context.new_page()
    page.goto(path.as_uri())
    badges = page.locator(".answer .badge").all_inner_texts()
    assert {text[2:].split(" (")[0] for text in badges} <= set(NAMES.values())
    assert badges
    context.close()


def test_the_page_prints_on_few_sheets(path: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    draw_all(page)
    page.reload()
    page.wait_for_timeout(500)
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
    assert 1 < pages < 20
    page.close()
