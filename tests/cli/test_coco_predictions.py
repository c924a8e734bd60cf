"""Predictions for COCO through the command line: what is wrong is told with its byte, and nothing is guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import BadScores, UnknownName

CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 67, "name": "dining table"}]
EACH = 12
"""Images of women, of men, and of nobody."""
CAPTIONS = ("a woman", "a man", "a table")


def size(image: int) -> dict[str, Any]:
    return {"id": image, "file_name": f"{image:012}.jpg", "width": 100, "height": 100}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a small COCO: every second image shows a dog, all show a person."""
    place = tmp_path / "data" / "coco" / "annotations"
    place.mkdir(parents=True)
    images = [size(n) for n in range(3 * EACH)]
    captions = [{"image_id": n, "caption": CAPTIONS[n % 3]} for n in range(3 * EACH)]
    boxes = [{"image_id": n, "category_id": 1, "bbox": [0, 0, 9, 9]} for n in range(3 * EACH)]
    boxes += [{"image_id": n, "category_id": 18, "bbox": [0, 0, 50, 50]} for n in range(0, 3 * EACH, 2)]
    captions_file = {"images": images, "annotations": captions}
    (place / "captions_val2017.json").write_text(json.dumps(captions_file))
    instances = {"images": images, "annotations": boxes, "categories": CATEGORIES}
    (place / "instances_val2017.json").write_text(json.dumps(instances))
    return tmp_path / "data"


def record(image: int = 4, category: int = 18, score: float = 0.5) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": [0, 0, 5, 5], "score": score}


GOOD = [record(n, score=0.9 if n % 2 == 0 else 0.2) for n in range(3 * EACH)]


def measure(data: Path, results: str) -> Any:
    folder = data.parent
    (folder / "results.json").write_text(results)
    (folder / "labels.json").write_text(json.dumps({"categories": CATEGORIES}))
    options = ["--scores", folder / "results.json", "--data", data, "--out", folder / "run", "--draws", 100, "--json"]
    words = ["measure", "disparity", *map(str, options)]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.slow
def test_predictions_over_all_of_coco_are_measured_on_the_images_that_count(data: Path) -> None:
    result = measure(data, json.dumps(GOOD))
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    found = {
        row["group"]: row["value"]
        for row in rows
        if (row["metric"], row["concept"]) == ("disparity.average_precision", "dog")
    }
    assert found == {"woman": 1.0, "man": 1.0}


@pytest.mark.slow
def test_several_models_share_a_page_and_probability_maps_are_calibrated(data: Path) -> None:
    """Detic by its boxes, LSeg by its probability maps."""
    boxes, maps, run = data.parent / "boxes", data.parent / "maps", data.parent / "run"
    boxes.mkdir()
    (boxes / "results.json").write_text(json.dumps(GOOD))
    (boxes / "labels.json").write_text(json.dumps({"categories": CATEGORIES}))
    maps.mkdir()
    (maps / "labels.json").write_text(json.dumps(["other", "dog"]))
    for image in range(3 * EACH):
        likely = 0.875 if image % 2 == 0 else 0.125
        np.savez_compressed(maps / f"{image}.npz", np.array([[[1 - likely]], [[likely]]], np.float16))
    words = ["measure", "disparity", "--scores", f"Detic={boxes}", "--scores", f"LSeg={maps}", "--data", str(data)]
    result = CliRunner().invoke(app, [*words, "--out", str(run), "--draws", "100", "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    assert {row["model"] for row in rows} == {"Detic", "LSeg"}
    wanted = ("LSeg", "disparity.ece", "dog")
    errors = [row["value"] for row in rows if (row["model"], row["metric"], row["concept"]) == wanted]
    assert errors == pytest.approx([0.125, 0.125]), "of women and of men"
    assert "Detic" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (record(image=99), "record 37 is about image 99, which the data set does not have"),
        (record(score=1.5), "record 37 has score 1.5, not a number from 0 to 1"),
        (record(score=-0.1), "record 37 has score -0.1, not a number from 0 to 1"),
        (record(category=5), "record 37 has category_id 5, which .* does not name"),
    ],
)
def test_a_bad_record_is_refused_with_its_byte(bad: dict[str, Any], message: str, data: Path) -> None:
    text = json.dumps([*GOOD, bad])
    byte = text.rindex("{")
    with pytest.raises(BadScores, match=rf"results.json, byte {byte}: {message}"):
        measure(data, text)


def test_a_truncated_file_is_refused_with_its_end(data: Path) -> None:
    text = json.dumps(GOOD)[:-30]
    with pytest.raises(BadScores, match=rf"cut off: it ends at byte {len(text)}, in or after record 36"):
        measure(data, text)


def test_a_setting_that_coco_does_not_have_is_refused(data: Path) -> None:
    words = ["measure", "disparity", "--scores", "x.json", "--data", str(data), "--set", "slit=val2017"]
    with pytest.raises(UnknownName, match="Did you mean 'split'"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_verify_prints_every_step(data: Path) -> None:
    words = ["data", "verify", "coco", "--data", str(data), "--set", "without=table", "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    notes = json.loads(result.stdout)["notes"]
    assert notes[0] == "step 1, with captions: 36 images"
    assert "step 3, captions do not say table: 24 images" in notes


PEAK = """
import sys
from beholder.cli import app
from beholder.core.errors import BadScores
try:
    app(sys.argv[1:], standalone_mode=False)
except BadScores as error:
    print(error)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # of this program, not of what started it
"""


def run(data: Path, results: Path) -> tuple[str, int]:
    options = ["--scores", str(results), "--data", str(data), "--out", str(data.parent / "run")]
    words = [sys.executable, "-c", PEAK, "measure", "disparity", *options]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    said, _, peak = done.stdout.strip().rpartition("\n")
    return said, int(peak)


@pytest.mark.slow
def test_forty_megabytes_that_are_cut_off_cost_no_more_than_a_few_kilobytes(data: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(json.dumps({"categories": CATEGORIES}))
    block = json.dumps(GOOD)[1:-1]
    peaks = []
    for times in (2, 40_000_000 // len(block)):
        path = tmp_path / f"cut{times}.json"
        with path.open("w") as file:
            file.write("[" + block)
            file.writelines(", " + block for _ in range(times))
        said, peak = run(data, path)
        assert f"cut off: it ends at byte {path.stat().st_size}, in or after record {36 * (times + 1)}" in said
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 30_000  # KiB
