"""Draw every picture of the README and the docs: `python tools/pictures.py demo more`.

`demo` is a run of the demo, `more` one of a study that the demo leaves out, on the embedded world:
`beholder audit glasshouse/contrastive --study perception --out more`. It writes docs/examples/demo.html,
docs/images/portraits.png, docs/images/report.png, docs/images/charts/*.svg and docs/charts.md. Needs chromium and
playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import vl_convert
from PIL import Image
from playwright.sync_api import sync_playwright

from beholder._run import load_run
from beholder.chapter.charts import Figure
from beholder.datasets import load_dataset
from beholder.datasets.images import open_image
from beholder.report.page import write_page
from beholder.report.report import Report, slug

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1440, 900
PORTRAITS, SIDE = 10, 132


def portraits(path: Path) -> None:
    """A strip of drawn people."""
    strip = Image.new("RGB", (PORTRAITS * SIDE, SIDE), "white")
    for place, uri in enumerate(load_dataset("glasshouse").limit(PORTRAITS).table["uri"]):
        strip.paste(open_image(uri).resize((SIDE - 8, SIDE - 8)), (place * SIDE + 4, 4))
    strip.quantize(128).save(path, optimize=True)


def first_screen(run: Path, path: Path) -> None:
    """The first screen of the page."""
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((run / "report.html").resolve().as_uri())
        page.wait_for_timeout(2000)
        page.screenshot(path=path)
        browser.close()
    Image.open(path).quantize(128).save(path, optimize=True)


def heroes(reports: list[Report]) -> list[tuple[str, str, Figure]]:
    """The first chart of every topic: the study's title, the topic's title, the chart."""
    found = []
    for section in (section for report in reports for section in report.sections):
        seen = set()
        for figure in section.figures:
            if figure.topic not in seen:
                seen.add(figure.topic)
                found.append((section.study.title, section.chapter.topics.get(figure.topic, ""), figure))
    return found


def charts(reports: list[Report]) -> None:
    """The charts, and the page that shows them with how to read them."""
    folder = IMAGES / "charts"
    for old in folder.glob("*.svg"):
        old.unlink()
    folder.mkdir(exist_ok=True)
    lines = [
        "# Every chart, and how to read it",
        "",
        "Drawn people, and reference models with known associations. Made by `tools/pictures.py`. "
        "[Reading a report](report.md) has the rest.",
    ]
    study = ""
    for title, topic, figure in heroes(reports):
        name = slug(f"{title.split(':')[0]} {figure.name}")
        (folder / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(figure.paper(), allowed_base_urls=[]))
        if title != study:
            lines += ["", f"## {title}"]
            study = title
        lines += ["", f"### {topic}", "", figure.caption, "", f"![{figure.title}](images/charts/{name}.svg)"]
    (ROOT / "docs" / "charts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(folder: Path, *more: Path) -> None:
    """All pictures."""
    run = load_run(folder)
    write_page(run.report, folder)
    shutil.copyfile(folder / "report.html", ROOT / "docs" / "examples" / "demo.html")
    portraits(IMAGES / "portraits.png")
    first_screen(folder, IMAGES / "report.png")
    charts([run.report, *(load_run(each).report for each in more)])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
