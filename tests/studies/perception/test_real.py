"""Perception with a real model on real faces, through the ordinary command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import polars as pl
import pytest
from PIL import Image
from tokenizers import Tokenizer

from beholder.datasets import load_dataset
from beholder.studies import STUDIES
from beholder.studies.perception.prompts import DIMENSIONS, TEMPLATES

pytestmark = [pytest.mark.real, pytest.mark.slow]
LIMIT = 8


@pytest.fixture(scope="module")
def run(
    bridge: Path, data: Path, results_of: Callable[..., list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One command, both face sets: eight faces of each race."""
    folder = tmp_path_factory.mktemp("perception")
    options = ["--data", data, "--out", folder / "out", "--store", folder / "store", "--limit", LIMIT, "--draws", 200]
    results_of("audit", f"onnx:{bridge}", "-s", "perception", *options)
    return folder / "out"


@pytest.fixture(scope="module")
def results(run: Path) -> pl.DataFrame:
    return pl.read_parquet(run / "results.parquet")


def test_one_command_measures_both_sets_and_makes_the_page(run: Path, results: pl.DataFrame):
    assert set(results["dataset"]) == {"fairface-adults", "utkface-adults"}
    assert "Compared with the published values of CLIP ViT-B/32" in (run / "report.html").read_text()
    record = json.loads((run / "run.json").read_text())
    notes = [note for dataset in record["datasets"] for note in dataset["notes"]]
    assert any(note.startswith("8 names do not parse") for note in notes)


@pytest.mark.parametrize("group", ["Male", "Female"])
def test_fairfaces_markedness_is_a_number_from_real_rows(results: pl.DataFrame, group: str):
    where = {"metric": "perception.markedness", "dataset": "fairface-adults", "group": group}
    (row,) = results.filter(**where).to_dicts()
    assert row["n"] > 0
    assert 0 < row["value"] < 100
    assert row["low"] < row["value"] < row["high"]


def test_a_groups_warmth_agrees_with_a_computation_by_hand(bridge: Path, data: Path, results: pl.DataFrame):
    """The Black adults that were taken, with onnxruntime and nothing else of ours."""
    dataset = load_dataset("fairface-adults", data).present()
    chosen = dataset.table[STUDIES["perception"].select(dataset, LIMIT).rows]
    taken = chosen.filter(race="Black")
    files = [Path(uri) for uri in taken["uri"]]
    assert len(files) == LIMIT
    words = DIMENSIONS[0].words
    texts = [t.replace("{} ", "") for t in TEMPLATES.values()] + [
        t.replace("{}", w) for w in words for t in TEMPLATES.values()
    ]
    cosines = _cosines(bridge, files, texts)
    neutral, own = cosines[:, :4], cosines[:, 4:].reshape(len(files), len(words), 4)
    expected = float((own - neutral[:, None, :]).mean())
    where = {"metric": "perception.delta_cosine", "dataset": "fairface-adults", "group": "Black", "concept": "warmth"}
    (found,) = results.filter(**where)["value"].to_list()
    assert found == pytest.approx(expected, abs=1e-5)


def _cosines(bridge: Path, files: list[Path], texts: list[str]) -> np.ndarray:
    config = json.loads((bridge / "config.json").read_text())["image"]
    tower, text_tower = (onnxruntime.InferenceSession(bridge / f"{name}.onnx") for name in ("image", "text"))
    tokenizer = Tokenizer.from_file(str(bridge / "tokenizer.json"))
    images, vectors = [], []
    for file in files:
        pixels = np.asarray(Image.open(file).convert("RGB"), np.float32) / 255
        assert pixels.shape == (224, 224, 3)
        pixels = (pixels - np.float32(config["mean"])) / np.float32(config["std"])
        images.append(tower.run(None, {"pixel_values": pixels.transpose(2, 0, 1)[None]})[0][0])
    for text in texts:
        tokens = tokenizer.encode(text)
        inputs = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask}
        vectors.append(text_tower.run(None, {k: np.array([v], np.int64) for k, v in inputs.items()})[0][0])
    images, vectors = (np.stack(v) / np.linalg.norm(v, axis=1, keepdims=True) for v in (images, vectors))
    return images @ vectors.T
