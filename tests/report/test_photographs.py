"""Photographs are in a page only where they were asked for and their data set declares that they may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import beholder
from beholder.cli import app
from beholder.core.errors import UsageError
from beholder.core.record import Record
from beholder.report import page as page_module
from beholder.report.pictures import with_photographs
from beholder.report.report import build_report

RELEASED = {"photographs": "yes: signed releases"}


def brightness(images: list[Image.Image], prompts: list[str]) -> list[list[float]]:
    return [
        [float(image.convert("L").resize((1, 1)).getpixel((0, 0))) / 40 * at for at in range(len(prompts))]
        for image in images
    ]  # type: ignore[arg-type]


def audited(folder: Path, **settings: str) -> Path:
    """A run about 20 pictures of a folder: those of women are brighter."""
    rng, lines = np.random.default_rng(0), ["image,gender"]
    for number in range(20):
        gender = ("woman", "man")[number % 2]
        level = rng.integers(140, 200) if gender == "woman" else rng.integers(20, 80)
        Image.new("RGB", (40, 60), (level, level, level)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{gender}")
    (folder / "people.csv").write_text("\n".join(lines))
    options: dict[str, Any] = {"dataset": f"folder:{folder}", "by": "gender", "settings": settings, "draws": 100}
    prompts = ["a dark picture", "a bright picture"]
    beholder.audit(
        brightness, prompts=prompts, name="b", revision="1", store=folder / "store", out=folder / "run", **options
    )
    return folder / "run"


def report(run: Path, *options: str) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["report", str(run), "--store", str(run.parent / "store"), "-q", *options])
    return (run / "report.html").read_text(), done.output + str(done.exception or "")


def test_a_photograph_is_shown_only_where_it_was_asked_for_and_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, drawn = audited(tmp_path, **RELEASED), list[str]()
    picture = page_module.png
    monkeypatch.setattr(page_module, "png", lambda spec: drawn.append(str(spec)) or picture(spec))
    assert "data:image/webp" not in report(run)[0]
    page, _ = report(run, "--with-photographs")
    assert page.count("data:image/webp") > 10
    assert "shows photographs of folder:" in page
    assert (run / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "image/webp" not in drawn.pop()
    page, _ = report(run, "--with-photographs", "--url", "https://lab.example/run/")
    assert 'property="og:image" content="https://lab.example/run/report.png"' in page
    assert "a photograph" in page
    entry = json.loads((run / "run.json").read_text())["datasets"][0]
    assert (entry["photographs"], entry["photographs_on_page"]) == ("yes: signed releases", True)
    assert "data:image/webp" not in report(run)[0]
    assert "photographs_on_page" not in (run / "run.json").read_text()


def test_data_that_declares_nothing_is_refused_and_its_page_stays(tmp_path: Path) -> None:
    run = audited(tmp_path)
    before = (run / "report.html").read_bytes()
    _, said = report(run, "--with-photographs")
    assert "nobody declared that it may be" in said
    assert "--set photographs='yes: signed releases" in said
    assert (run / "report.html").read_bytes() == before


def test_a_run_folder_cannot_say_yes_for_data_that_beholder_knows() -> None:
    record = Record(datasets=[{"name": "apa", "photographs": "yes: me"}])
    empty = beholder.Run()
    with pytest.raises(UsageError, match=r"apa \(no: public figures, who were not asked\)"):
        with_photographs(build_report(empty.results, record, empty.prompts))


def test_a_declaration_names_who_allows_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write 'yes: ' and who allows"):
        audited(tmp_path, photographs="yes:")
