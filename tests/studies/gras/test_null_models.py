"""A noise model, a gender-only model and a label-only model: no finding says more than they know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from beholder.chapter.finding import Finding
from beholder.core.results import results_table
from beholder.datasets import load_dataset
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.findings import gras_findings
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

TRAITS = pl.DataFrame({"trait": [f"trait {k}" for k in range(8)], "valence": ["positive", "negative"] * 4})
WORDINGS = {"T1": "Is the person {}?", "T2": "Does the person look {}?"}


def findings(images: pl.DataFrame, model: str) -> list[Finding]:
    """What is said about a model that knows nothing, gender only, or one label without any noise."""
    rng = np.random.default_rng(3)
    prompts = gras_prompts(TRAITS, WORDINGS).table
    effect = rng.normal(0, 0.7, TRAITS.height).repeat(len(WORDINGS))  # a trait's wordings agree
    by = {"noise": None, "gender only": "gender", "label only": "age"}[model]
    first = (
        np.zeros(images.height)
        if by is None
        else (images[by] == images[by].drop_nulls()[0]).fill_null(False).to_numpy()
    )
    noise = 0.0 if model == "label only" else 1.0
    image, cell = rng.normal(0, noise, (images.height, 1)), rng.normal(0, noise, (images.height, prompts.height))
    values = ndtr(-0.3 + first[:, None] * effect + image + cell)
    matrix = ScoreMatrix("gras", images, prompts, ("score",), values[:, :, None])
    rows = GRAS.measures.functions[0]({"gras": matrix}, MeasureOptions(permutations=99, shuffles=499))
    return gras_findings(results_table(rows, study="gras", model=model, dataset="photos"))


def shown(found: list[Finding]) -> dict[str, list[Finding]]:
    by_kind: dict[str, list[Finding]] = {}
    for finding in found:
        if finding.shown:
            by_kind.setdefault(finding.kind, []).append(finding)
    return by_kind


def check(images: pl.DataFrame) -> None:
    assert shown(findings(images, "noise")) == {}
    for model, attribute in (("gender only", "gender"), ("label only", "age")):
        found = findings(images, model)
        by_kind = shown(found)
        assert set(by_kind) <= {"score", "gap", "valence", "intersection"}
        assert [finding.rows[0]["subset"] for finding in by_kind["gap"]] == [attribute]
        assert {row["subset"] for finding in by_kind.get("valence", []) for row in finding.rows} <= {attribute}
        for finding in found:
            if finding.kind == "intersection":
                assert "no difference between intersections was found" in finding.sentence


@pytest.mark.slow
def test_on_drawn_faces() -> None:
    check(load_dataset("glasshouse-faces").table)


@pytest.mark.slow
@pytest.mark.real
def test_on_the_photographs_at_hand(data: Path) -> None:
    """The 1,674 photographs are not balanced as the study's selection is; skin tones have people and sources."""
    whole = load_dataset("gras", data)
    here = set(whole.present().table["image_id"])
    table = whole.table.filter(pl.col("image_id").is_in(here) | (pl.col("part") == "aiface"))
    assert table.height == 1674 + 1440
    check(table)
