"""Draw docs/images/report.png from a run's page: `python tools/screenshots.py RUN`. Needs chromium and playwright."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 1180, 860


def main(run: Path) -> None:
    """The first screen of the page."""
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((run / "report.html").resolve().as_uri())
        page.wait_for_timeout(3000)
        page.screenshot(path=ROOT / "docs" / "images" / "report.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
