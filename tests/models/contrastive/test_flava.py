"""FLAVA is scored by its contrastive head; models whose scores depend on the batch are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")

import family_sweep_towers as towers
from family_sweep import PROMPTS, pictures

from beholder.core.errors import ModelError
from beholder.models.contrastive import two_towers
from beholder.models.load import load_model


def test_flava_is_compared_by_the_first_tokens(tmp_path: Path) -> None:
    towers.write("flava", "FlavaForPreTraining", tmp_path)
    scorer = load_model(str(tmp_path))
    prepared = [scorer.prepare(picture) for picture in pictures()]
    ours = scorer.score_prepared(prepared, PROMPTS)[..., 0] * scorer.spec.settings["logit_scale"]
    assert np.allclose(ours, towers.own_logits("flava", "FlavaForPreTraining", tmp_path), atol=1e-4)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["FlavaModel"]}))
    with pytest.raises(ModelError, match="FlavaForPreTraining, which has the contrastive head"):
        load_model(str(tmp_path))


def test_a_text_tower_that_forgets_its_mask_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AIMv2 by sdpa: a text alone is read without its causal mask, one beside longer texts with it."""
    towers.write("aimv2", "Aimv2Model", tmp_path)
    assert load_model(str(tmp_path)).spec.settings["attention"] == "eager"
    monkeypatch.delitem(two_towers.TYPES, "aimv2")
    with pytest.raises(ModelError, match="scored wrongly by Beholder"):
        load_model(str(tmp_path))


@pytest.mark.parametrize(("model_type", "reason"), [("videoprism", "reads videos"), ("vilt", "no adapter")])
def test_families_without_an_adapter_are_refused_for_a_reason(tmp_path: Path, model_type: str, reason: str) -> None:
    towers.write_config(model_type, tmp_path / "model")
    with pytest.raises(ModelError, match=reason):
        load_model(str(tmp_path / "model"))
