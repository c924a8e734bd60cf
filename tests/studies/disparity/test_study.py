"""Disparity from the command line: every kind of model is asked in its own words, and options reach the measure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import MissingData, UnknownName, UsageError
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction

pytestmark = pytest.mark.usefixtures("undrawn")
CATEGORIES = [{"id": 1, "name": "tie"}, {"id": 2, "name": "dining table"}]
EACH = 20


class Stub:
    """Scores a picture by its brightness; remembers how it was asked."""

    batch_size = 8

    def __init__(self, *channels: str) -> None:
        self.channels = channels
        self.spec = ModelSpec("stub", "stub", "none", "1", settings={"channels": list(channels)})
        self.asked: list[str] = []

    def prepare(self, image: Image.Image) -> float:
        return float(np.asarray(image).mean())

    def score_prepared(self, prepared: Sequence[Any], prompts: Sequence[str]) -> np.ndarray:
        self.asked = list(prompts)
        cells = np.array(prepared, dtype=np.float32)[:, None, None] / 256
        shape = (len(prepared), len(prompts), len(self.channels))
        return np.broadcast_to(np.log(cells) if "log_p_yes" in self.channels else cells, shape).copy()


class Answering(Stub):
    """The same, told how to ask."""

    instruction: Instruction | None = None

    def instructed(self, instruction: Instruction) -> Answering:
        self.instruction = instruction
        return self


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small COCO: half of the pictures have a tie and are bright; captions name a man or a woman."""
    folder = tmp_path / "data" / "coco"
    (folder / "annotations").mkdir(parents=True)
    (folder / "val2017").mkdir()
    images, captions, boxes = [], [], []
    for n in range(2 * EACH):
        name, tie = f"{n:012}.jpg", n % 4 < 2
        Image.new("RGB", (16, 16), (200 + n if tie else 50 + n,) * 3).save(folder / "val2017" / name, quality=95)
        images.append({"id": n, "file_name": name, "width": 16, "height": 16})
        captions.append({"image_id": n, "caption": "a man" if n % 2 else "a woman"})
        boxes.append({"image_id": n, "category_id": 1 if tie else 2, "bbox": [0, 0, 4, 4]})
    for kind, rows in (("captions", captions), ("instances", boxes)):
        text = json.dumps({"images": images, "annotations": rows, "categories": CATEGORIES})
        (folder / "annotations" / f"{kind}_val2017.json").write_text(text)
    return tmp_path / "data"


def audit(data: Path, monkeypatch: pytest.MonkeyPatch, model: Stub, *options: object) -> pl.DataFrame:
    monkeypatch.setattr("beholder._steps.load_model", lambda name, load: model)
    folder = data.parent
    places = ["--data", data, "--out", folder / "run", "--store", folder / "store", "--draws", 100]
    words = ["audit", "stub", "-s", "disparity", *places, *options, "--quiet"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception:
        raise done.exception
    return pl.read_parquet(folder / "run" / "results.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (Stub("cosine"), ["a photo of a dining table", "a photo of a tie"]),
        (Stub("presence"), ["dining table", "tie"]),
        (Stub("presence", "mean_probability", "area"), ["dining table", "tie"]),
        (Answering("logit_true", "log_p_yes"), ["dining table", "tie"]),
    ],
    ids=["contrastive", "detector", "segmenter", "answering"],
)
def test_every_kind_of_model_is_asked_in_its_own_words(
    data: Path, monkeypatch: pytest.MonkeyPatch, model: Stub, texts: list[str]
):
    results = audit(data, monkeypatch, model)
    assert model.asked == texts
    ties = results.filter(metric="disparity.average_precision", concept="tie")
    assert ties["value"].to_list() == pytest.approx([1.0, 1.0])
    measured = results.filter(metric="disparity.ece", concept="tie")
    assert measured.height == (0 if model.channels == ("cosine",) else 2)
    if isinstance(model, Answering):
        assert model.instruction.ask("tie").startswith("Is there a tie in the image?")


@pytest.mark.slow
def test_own_templates_and_calibration_are_options(data: Path, monkeypatch: pytest.MonkeyPatch):
    file = data.parent / "templates.csv"
    file.write_text("template,text\na,a {}\nb,see the {}\n")
    model = Stub("cosine")
    results = audit(data, monkeypatch, model, "--templates", file, "--calibration", "isotonic")
    assert model.asked == ["a dining table", "see the dining table", "a tie", "see the tie"]
    assert results.filter(metric="disparity.ece", concept="tie")["value"].null_count() == 0


class Noisy(Stub):
    """Scores that mean nothing, so that no gap is exactly 0."""

    def prepare(self, image: Image.Image) -> float:
        return float(np.random.default_rng(np.asarray(image).ravel()[:9]).uniform(1, 255))


@pytest.mark.slow
def test_a_run_is_compared_with_another(data: Path, monkeypatch: pytest.MonkeyPatch):
    audit(data, monkeypatch, Noisy("presence"))
    other = (data.parent / "run").rename(data.parent / "first")
    table = pl.read_parquet(other / "results.parquet")
    table = table.with_columns(model=pl.lit("another"))
    table.write_parquet(other / "results.parquet")
    results = audit(data, monkeypatch, Noisy("presence"), "--beside", other)
    (row,) = results.filter(metric="disparity.model_agreement").to_dicts()
    assert (row["subset"], row["value"], row["n"]) == ("another", 1.0, 2)
    assert set(results["model"]) == {"stub"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--by", "gender", "--by", "age"], UsageError, "one attribute"),
        (["--by", "agee"], UnknownName, "no attribute 'agee'"),
        (["--calibration", "plat"], UnknownName, "Did you mean 'platt'"),
        (["--word-vectors", "nowhere.bin"], UsageError, "no word vectors at nowhere.bin"),
        (["--beside", "nowhere"], MissingData, "nowhere has no results"),
    ],
)
def test_wrong_options_are_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        audit(data, monkeypatch, Stub("cosine"), *options)


@pytest.mark.parametrize("words", [["audit", "null"], ["measure", "gras", "--scores", "x.csv"]])
def test_options_of_disparity_are_refused_elsewhere(words: list[str]):
    done = CliRunner().invoke(app, [*words, "--calibration", "platt"])
    assert isinstance(done.exception, UsageError)
    assert "disparity" in str(done.exception)
