"""The scripts that run Detic and LSeg elsewhere, with stand-ins for those models: Beholder reads what they write."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    """A module of that name, and empty ones above it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        if path not in sys.modules:
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
    vars(sys.modules[name]).update(contents)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("139", "285"):
        Image.new("RGB", (24, 16), "red").save(folder / f"{name}.jpg")
    (tmp_path / "concepts.txt").write_text("other\ndog")
    return folder


def test_detics_boxes_are_read(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import detic_predictions

    from beholder.models.predictions import import_predictions

    def parser() -> ArgumentParser:
        made = ArgumentParser()
        for name in ("config-file", "vocabulary", "custom_vocabulary", "confidence-threshold"):
            made.add_argument(f"--{name}")
        made.add_argument("--pred_all_class", action="store_true")
        made.add_argument("--opts", nargs="*")
        return made

    class Instances(SimpleNamespace):
        def to(self, device: str) -> Instances:
            return self

    found = Instances(
        pred_boxes=SimpleNamespace(tensor=torch.tensor([[1.0, 2.0, 5.0, 9.0]])),
        scores=torch.tensor([0.75]),
        pred_classes=torch.tensor([1]),
    )
    demo = SimpleNamespace(predictor=lambda image: {"instances": found})
    stand_in(monkeypatch, "demo", get_parser=parser, setup_cfg=lambda args: args)
    stand_in(monkeypatch, "detectron2.data.detection_utils", read_image=lambda path, format: path)
    stand_in(monkeypatch, "detic.predictor", VisualizationDemo=lambda config, args: demo)
    detic_predictions.main(str(tmp_path / "concepts.txt"), str(pictures), str(tmp_path / "out"))
    read = import_predictions(tmp_path / "out", ["139", "285"], ["dog"])
    assert read.cells.tolist() == [[0.75], [0.75]]


def test_lsegs_probabilities_are_read(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lseg_predictions

    from beholder.models.predictions import import_predictions

    scores = torch.randn(1, 2, 20, 30, generator=torch.Generator().manual_seed(1))
    segmenter = SimpleNamespace(parallel_forward=lambda pixels, concepts: [scores])
    prepare = lambda array: torch.from_numpy(array)  # noqa: E731
    monkeypatch.setattr(lseg_predictions, "_segmenter", lambda: (segmenter, prepare))
    lseg_predictions.main(str(tmp_path / "concepts.txt"), str(pictures), str(tmp_path / "out"))
    read = import_predictions(tmp_path / "out", ["139", "285"], ["dog"])
    odds = np.exp(scores.numpy()[0])
    assert read.cells[:, 0] == pytest.approx((odds[1] / odds.sum(axis=0)).max(), abs=1e-6)
    assert read.channel == "presence"
