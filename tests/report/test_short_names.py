from __future__ import annotations

import polars as pl
import pytest

from beholder._run import Run
from beholder.report.page import render
from beholder.report.report import short_names


@pytest.mark.parametrize(
    ("models", "short"),
    [
        (["onnx:/home/me/.cache/bridge"], {"onnx:/home/me/.cache/bridge": "bridge"}),
        (["./runs/vlm/", "null"], {"./runs/vlm/": "vlm"}),
        (["/a/clip", "/b/clip"], {}),
        (["/a/clip", "clip"], {}),
        (["openai/clip-vit-base-patch32", "openclip:ViT-B-32/openai", "/"], {}),
    ],
)
def test_a_folder_is_called_by_its_last_name_where_that_tells_it_apart(models: list[str], short: dict[str, str]):
    assert short_names(models) == short


@pytest.mark.slow
def test_the_page_says_the_short_name_and_keeps_the_long_one(apa_run: Run):
    long = "onnx:/home/somebody/models/bridge"
    run = Run(apa_run.results.with_columns(model=pl.lit(long)), apa_run.record)
    run.record.models[0]["name"] = long
    page = render(run.report)
    first_screen = page[page.index("<header") : page.index("</header>")]
    assert "bridge" in first_screen
    assert long not in first_screen
    assert f"<h3>{long}</h3>" in page
    assert run.report.results["model"].unique().to_list() == ["bridge"]
    assert run.results["model"].unique().to_list() == [long]
