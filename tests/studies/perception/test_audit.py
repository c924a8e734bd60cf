"""Tiny random models go through the whole of Perception: scores, all analyses, page."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder._audit import audit_models
from beholder._options import AuditOptions


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    """Six seeds in eighteen variants each: noise with labels."""
    folder = tmp_path / "faces"
    folder.mkdir()
    rng, lines = np.random.default_rng(1), ["image,race,gender,seed,smiling"]
    for place, labels in enumerate(product(("White", "Black", "Asian"), ("Male", "Female"), range(6), (0, 1, 2))):
        Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(folder / f"{place}.png")
        lines.append(f"{place}.png,{','.join(map(str, labels))}")
    (folder / "faces.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
def test_a_tiny_clip_is_audited_from_pictures_to_page(
    tiny_model: Callable[[str], Path], faces: Path, tmp_path: Path, undrawn: list[Any]
):
    options = AuditOptions(
        out=tmp_path / "out", store=tmp_path / "store", dataset=f"folder:{faces}", draws=100, permutations=10
    )
    run = audit_models([str(tiny_model("clip"))], ["perception"], options)
    measured = set(run.results["metric"])
    assert {"perception.delta_cosine", "perception.causal_effect", "perception.sc_weat", "perception.ndkl"} <= measured
    assert not run.results.filter(pl.col("value").is_null() & pl.col("note").is_null()).height
    assert "smiling" in set(run.results.filter(pl.col("metric") == "perception.causal_effect")["subset"])
    assert undrawn
    assert "Perception: social judgement of faces" in (tmp_path / "out" / "report.html").read_text()
