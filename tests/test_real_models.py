"""Real models on real photographs, through the ordinary command line: known values come out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import polars as pl
import pytest
from PIL import Image, ImageOps
from remembered_tower import vectors
from tokenizers import Tokenizer

from beholder.core.results import PLAIN

pytestmark = [pytest.mark.real, pytest.mark.slow]
# Of five branches: two, since the real tower takes a sixth of a second for a photograph on one core.
CATEGORY = {"senate": 0.804, "actors": 0.925}
PERSON = {"senate": 0.988, "actors": 0.970}
LEFT_OUT = {name + end for name in ("house", "mayors", "athletes") for end in ("", ".txt")}
Results = Callable[..., list[dict[str, Any]]]
CLASSES = ("person", "dog", "giraffe", "potted plant", "tree", "bed", "chair")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def two_branches(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """APA as someone has it who fetched a part: two of five branches."""
    there, here = data / "apa", tmp_path_factory.mktemp("data") / "apa"
    shutil.copytree(there, here, symlinks=True, ignore=lambda folder, names: set(names) & LEFT_OUT)
    return here.parent


@pytest.fixture(scope="module")
def bridge_results(bridge: Path, two_branches: Path, store: Path, results_of: Results) -> pl.DataFrame:
    out = store / "run"
    places = ["--data", two_branches, "--out", out, "--store", store]
    results_of("audit", f"onnx:{bridge}", "--study", "apa", "--study", "pfi", *places)
    return pl.read_parquet(out / "results.parquet")


def value(results: pl.DataFrame, metric: str, **where: str) -> float:
    (found,) = results.filter(pl.col("metric") == metric, PLAIN, **where)["value"].to_list()
    return found


@pytest.mark.parametrize("branch", CATEGORY)
def test_the_bridge_knows_persons_as_well_as_it_should(bridge_results: pl.DataFrame, branch: str):
    found = value(bridge_results, "apa.association", subset=branch, concept="category")
    assert found == pytest.approx(CATEGORY[branch], abs=0.01)


def embed_by_hand(bridge: Path, files: list[Path], texts: list[str], kept: Path) -> np.ndarray:
    """Cosines with onnxruntime and nothing of ours: one picture and one text at a time.

    What onnxruntime gave for the very same pixels before is `kept`; other pixels are computed here.
    """
    config = json.loads((bridge / "config.json").read_text())["image"]
    tower, tokenizer = (
        onnxruntime.InferenceSession(bridge / "image.onnx"),
        Tokenizer.from_file(str(bridge / "tokenizer.json")),
    )
    text_tower = onnxruntime.InferenceSession(bridge / "text.onnx")
    images = []
    for file in files:
        picture = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
        scale = 224 / min(picture.size)
        size = [max(224, int(side * scale)) for side in picture.size]
        picture = picture.resize(size, Image.Resampling.BICUBIC)
        left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
        pixels = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / 255
        pixels = (pixels - np.float32(config["mean"])) / np.float32(config["std"])
        images.append(vectors(tower, {"pixel_values": pixels.transpose(2, 0, 1)[None]}, kept)[0])
    words = []
    for text in texts:
        tokens = tokenizer.encode(text)
        inputs = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask}
        words.append(text_tower.run(None, {k: np.array([v], np.int64) for k, v in inputs.items()})[0][0])
    images, words = (np.stack(v) / np.linalg.norm(v, axis=1, keepdims=True) for v in (images, words))
    return images @ words.T


def test_three_numbers_agree_with_a_computation_by_hand(
    bridge: Path, data: Path, bridge_results: pl.DataFrame, kept_vectors: Path
):
    folder = data / "apa" / "benchmark-data-v1"
    rows = [line.split("\t") for line in (folder / "senate.txt").read_text().splitlines()]
    people = [dict(zip((h.strip('"') for h in rows[0]), (c.strip('" ') for c in row), strict=True)) for row in rows[1:]]
    lines = (data / "apa" / "base-prompts-senate.csv").read_text().splitlines()[1:]
    texts = [line.split("|")[1] for line in lines] + [f"this is a photo of {p['names']}" for p in people]
    scale = json.loads((bridge / "config.json").read_text())["logit_scale"]
    logits = scale * embed_by_hand(bridge, [folder / "senate" / p["filename"] for p in people], texts, kept_vectors)

    def shares(cells: np.ndarray) -> np.ndarray:
        return np.exp(cells - cells.max(1, keepdims=True)) / np.exp(cells - cells.max(1, keepdims=True)).sum(
            1, keepdims=True
        )

    politician = shares(logits[:, 7:16])[:, 0].mean()
    senator = shares(logits[:, 16:23])[:, 1].mean()
    identity = np.diag(shares(logits[:, 23:])).mean()
    assert value(bridge_results, "apa.association", subset="senate", concept="occupation") == pytest.approx(
        politician, abs=2e-3
    )
    assert value(bridge_results, "apa.association", subset="senate", concept="specialty") == pytest.approx(
        senator, abs=2e-3
    )
    assert value(bridge_results, "apa.identity_given_image", subset="senate") == pytest.approx(identity, abs=2e-3)


def test_true_clip_with_a_closed_vocabulary_knows_persons(
    closed_vocabulary: Path, two_branches: Path, store: Path, tmp_path: Path, results_of: Results
):
    prompts = tmp_path / "prompts.csv"
    rows = [f"a photo of a {name},{name}" for name in CLASSES]
    prompts.write_text("text,concept\n" + "\n".join(rows) + "\n")
    places = ["--data", two_branches, "--out", tmp_path / "run", "--store", store]
    results = results_of(
        "audit", f"onnx:{closed_vocabulary}", "--prompts", prompts, "--dataset", "apa", "--by", "branch", *places
    )
    means = [r for r in results if r["metric"] == "custom.probability" and r["concept"] == "person"]
    found = {r["group"]: r["value"] for r in means if r["subset"] == "branch"}
    assert found == pytest.approx(PERSON, abs=0.01)
