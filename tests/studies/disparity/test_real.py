"""Disparity by the command line: real models on the 200 real photographs of COCO, and detections from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score

from beholder.datasets import load_dataset
from beholder.datasets.images import open_image
from beholder.models.load import load_model
from beholder.scores.fill import FillOptions, fill
from beholder.scores.store import Store
from beholder.studies.disparity.study import DISPARITY

pytestmark = [pytest.mark.real, pytest.mark.slow]
BOXES = "instances_val2017_from_yolo_boxes_3200.json"
Results = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def runs(
    closed_vocabulary: Path, bridge: Path, data: Path, results_of: Results, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """CLIP ViT-B/16 with its own text vectors, and the open-vocabulary bridge, in one run."""
    folder = tmp_path_factory.mktemp("disparity")
    vectors = next((data / "word2vec").glob("*.bin"))
    results_of(
        "audit",
        f"onnx:{closed_vocabulary}",
        f"onnx:{bridge}",
        "--study",
        "disparity",
        "--data",
        data,
        "--set",
        f"instances={BOXES}",
        "--word-vectors",
        vectors,
        "--calibration",
        "platt",
        "--draws",
        200,
        "--out",
        folder / "run",
        "--store",
        folder / "store",
    )
    return folder


@pytest.fixture(scope="module")
def results(runs: Path) -> pl.DataFrame:
    return pl.read_parquet(runs / "run" / "results.parquet")


def test_both_models_see_most_of_what_is_there(results: pl.DataFrame):
    """Known values: a scorer that knows nothing has the prevalence, about 6 % on average."""
    means = results.filter(pl.col("metric") == "disparity.mean_average_precision").sort("model", "group")
    assert means["n"].to_list() == [45] * 4
    assert sorted(means["value"]) == pytest.approx([0.557, 0.561, 0.618, 0.635], abs=0.01)


def test_a_number_agrees_with_scikit_learn_on_the_photographs(
    results: pl.DataFrame, runs: Path, closed_vocabulary: Path, data: Path
):
    """Chairs in images of women: kept scores are the model's own, and their average precision is scikit-learn's."""
    dataset = load_dataset("coco", data, {"instances": BOXES}).present()
    model = load_model(f"onnx:{closed_vocabulary}")
    (matrix,) = fill(DISPARITY.tasks_of(answers=False)(dataset), model, Store(runs / "store"), FillOptions()).matrices
    column = matrix.prompts["concept"].to_list().index("chair")
    scores = matrix.values[:, column, 0]
    for index in range(0, dataset.table.height, 20):
        image = model.prepare(open_image(dataset.table["uri"][index]))
        (own,) = model.score_prepared([image], ["a photo of a chair"])[:, 0, 0]
        assert scores[index] == pytest.approx(own, abs=1e-3)
    boxes = json.loads((data / "coco" / BOXES).read_text())
    chair = next(c["id"] for c in boxes["categories"] if c["name"] == "chair")
    there = {str(a["image_id"]) for a in boxes["annotations"] if a["category_id"] == chair}
    women = (matrix.images["gender"] == "woman").to_numpy()
    shows = matrix.images["image_id"].is_in(list(there)).to_numpy()
    values = results.filter(
        pl.col("model").str.contains(closed_vocabulary.name),
        metric="disparity.average_precision",
        group="woman",
        concept="chair",
    )["value"].to_list()
    assert values == [pytest.approx(average_precision_score(shows[women], scores[women]))]


def test_every_part_of_the_study_is_there_and_the_page_too(results: pl.DataFrame, runs: Path):
    parts = {name.removeprefix("disparity.") for name in results["metric"]}
    assert {
        "average_precision",
        "ap_gap",
        "ap_gap_matched",
        "gap_detectable",
        "gap_spread_expected",
        "ece",
        "ece_gap",
        "brier_gap",
        "reliability",
        "word_alignment",
        "area_gap",
        "instances_gap",
        "ap_gap_same_area",
        "outranked",
        "model_agreement",
    } <= parts
    page = (runs / "run" / "report.html").read_text()
    assert "Disparity: recognition by who is in the picture" in page


def test_detections_from_a_file_are_measured_and_set_beside_a_run(
    runs: Path, data: Path, results_of: Results, tmp_path: Path
):
    """Boxes that are right but for every other one of women's chairs and some of men's: that is the gap."""
    boxes = json.loads((data / "coco" / BOXES).read_text())
    gender = dict(load_dataset("coco", data, {"instances": BOXES}).table.select("image_id", "gender").iter_rows())
    chair = next(c["id"] for c in boxes["categories"] if c["name"] == "chair")
    rng, records = np.random.default_rng(1), []
    for box in boxes["annotations"]:
        image, category = str(box["image_id"]), box["category_id"]
        left_out = int(image) % 2 if gender.get(image) == "woman" else int(image) % 10 == 3
        missed = category == chair and left_out
        score = round(float(rng.uniform(0.3, 1.0)), 3)
        if image in gender and not missed:
            records.append({"image_id": box["image_id"], "category_id": category, "bbox": box["bbox"], "score": score})
    (tmp_path / "results.json").write_text(json.dumps(records))
    (tmp_path / "labels.json").write_text(json.dumps({"categories": boxes["categories"], "images": boxes["images"]}))
    rows = results_of(
        "measure",
        "disparity",
        "--scores",
        tmp_path / "results.json",
        "--data",
        data,
        "--set",
        f"instances={BOXES}",
        "--model",
        "boxes",
        "--draws",
        200,
        "--beside",
        runs / "run",
        "--out",
        tmp_path / "run",
    )
    by_metric = {(r["metric"], r["concept"]): r for r in rows if (r["group"], r["against"]) == ("man", "woman")}
    gap = by_metric["disparity.ap_gap_matched", "chair"]
    assert gap["low"] > 0.1
    assert gap["p_value"] < 0.05
    assert abs(by_metric["disparity.ap_gap_matched", "dog"]["value"]) < 0.01
    assert by_metric["disparity.ece_gap", "chair"]["value"] is not None  # boxes' scores are probabilities
    assert any(r["metric"] == "disparity.model_agreement" for r in rows)
