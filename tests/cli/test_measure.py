"""`beholder measure`: scores made elsewhere, in the studies' measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest


@pytest.mark.real
def test_scores_made_elsewhere_are_measured(invoke: Callable[..., str], data: Path, golden: Path, tmp_path: Path):
    arguments = ["measure", "apa", "--scores", golden / "logits_mayors.npy", "--scores", golden / "logits_actors.npy"]
    answer = json.loads(invoke(*arguments, "--data", data, "--out", tmp_path, "--draws", 100, "--compat", "--json"))
    values = {(r["metric"], r["subset"], r["concept"]): r["value"] for r in answer["results"]}
    assert values["apa.association", "mayors", "occupation"] == 0.29296875
    assert values["apa.association", "actors", "category"] == 0.70947265625
    assert any("senate/association" in line for line in answer["left_out"])
    assert pl.read_parquet(tmp_path / "results.parquet").height == len(answer["results"])


@pytest.mark.real
def test_own_traits_and_wordings_are_previewed_and_measured(invoke: Callable[..., str], data: Path, tmp_path: Path):
    (tmp_path / "traits.csv").write_text("trait,valence\nkind,positive\ncold,negative\n")
    (tmp_path / "words.csv").write_text("template,text\nplain,Is this person {}?\n")
    own = ["--traits", tmp_path / "traits.csv", "--templates", tmp_path / "words.csv", "--data", data]
    rows = json.loads(invoke("list", "prompts", "-s", "gras", *own, "--json"))
    assert [row["text"] for row in rows] == ["Is this person kind?", "Is this person cold?"]
    images = pl.read_csv(data / "gras" / "selected_images_fairface.csv")["file"][:200]
    scores = pl.DataFrame({"file": images, "kind|plain": pl.Series(range(200)) / 200, "cold|plain": 0.5})
    scores.write_csv(tmp_path / "scores.csv")
    answer = json.loads(
        invoke("measure", "gras", "--scores", tmp_path / "scores.csv", *own, "--out", tmp_path / "run", "--json")
    )
    assert {row["concept"] for row in answer["results"] if row["metric"] == "gras.welch"} == {"kind", "cold"}
