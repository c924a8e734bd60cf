"""GRAS in the embedded world: what was planted is found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder.datasets import load_dataset
from beholder.glasshouse.planted import PLANTED_TRAITS
from beholder.studies.gras.study import GRAS

COLUMN = {"gender": "gender", "presentation": "gender", "skin_tone": "skin_tone", "age": "age"}


def options(folder: Path) -> AuditOptions:
    return AuditOptions(out=folder / "run", store=folder / "store", permutations=10)


def test_the_embedded_faces_are_asked_about_the_planted_traits_and_the_controls():
    (task,) = GRAS.asks.tasks(load_dataset("glasshouse-faces"))
    assert len(task.dataset) == 120
    assert task.prompts.table["concept"].unique(maintain_order=True).to_list() == [t.trait for t in PLANTED_TRAITS]
    assert len(task.prompts) == 24 * 5


@pytest.mark.slow
def test_noise_has_no_bias_after_correction(tmp_path: Path):
    results = audit_models(["null"], ["gras"], options(tmp_path)).results
    assert set(results["dataset"]) == {"glasshouse-faces"}
    assert set(results.filter(metric="gras.biased_traits")["subset"]) == {"gender", "age", "skin_tone"}
    (score,) = results.filter(metric="gras.bias_score_corrected")["value"]
    assert score <= 5


@pytest.mark.slow
def test_every_planted_association_is_found_and_no_other(tmp_path: Path):
    results = audit_models(["glasshouse/generative"], ["gras"], options(tmp_path)).results
    gaps = results.filter(pl.col("metric") == "gras.largest_gap", pl.col("variant").is_null())
    called = {(row["subset"], row["concept"]) for row in gaps.filter(verdict="difference found").to_dicts()}
    planted = {(COLUMN[t.attribute], t.trait) for t in PLANTED_TRAITS if t.attribute}
    assert len(planted) == 12
    assert called == planted
    for row in gaps.to_dicts():
        for trait in PLANTED_TRAITS:
            if (row["subset"], row["concept"]) == ("gender", trait.trait) and trait.attribute in (
                "gender",
                "presentation",
            ):
                higher, lower = ("woman", "man") if trait.effect > 0 else ("man", "woman")
                assert (row["group"], row["against"]) == (higher, lower)
                assert row["value"] == pytest.approx(abs(trait.effect), abs=0.02)
    assert results.filter(metric="gras.answer_mass")["value"].min() > 0.99
