"""On paper every topic that has only a table keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beholder._run import Run
from beholder.report.page import write_page

pytestmark = pytest.mark.slow
LOST = """() => [...document.querySelectorAll('.topic')].filter((topic) => {
  const seen = (each) => each.checkVisibility({ contentVisibilityAuto: true }) && each.clientHeight > 5;
  const tables = [...topic.querySelectorAll('figure.table')];
  return tables.length && !topic.querySelector('figure.chart') && !tables.some(seen);
}).map((topic) => topic.id)"""


def test_a_topic_with_only_a_table_is_printed(gras_run: Run, browser: Any, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(write_page(gras_run.report, tmp_path).as_uri())
    page.emulate_media(media="print")
    assert page.locator(".topic:not(:has(figure.chart)) figure.table").count()
    assert page.evaluate(LOST) == []
    page.close()
