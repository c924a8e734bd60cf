"""The list of families: each model finds its family, each family its adapter, and a plug-in can add one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beholder.core.errors import UsageError
from beholder.models import catalog
from beholder.models.catalog import FAMILIES, KINDS, Family, family_of, name_forms
from beholder.models.load import load_model
from beholder.models.scorer import NullScorer


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"architectures": ["Qwen2_5_VLForConditionalGeneration"]}, "generative"),
        ({"architectures": ["Phi4MultimodalForCausalLM"]}, "generative"),
        ({"model_type": "deepseek_vl_v2"}, "generative"),
        ({"model_type": "blip", "architectures": ["BlipForImageTextRetrieval"]}, "matching"),
        ({"model_type": "blip-2", "architectures": ["Blip2ForImageTextRetrieval"]}, "matching"),
        ({"model_type": "albef"}, "albef"),
        ({"model_type": "owlv2", "architectures": ["Owlv2ForObjectDetection"]}, "detection"),
        ({"model_type": "mm-grounding-dino"}, "detection"),
        ({"model_type": "clipseg", "architectures": ["CLIPSegForImageSegmentation"]}, "segmentation"),
        ({"model_type": "blip", "architectures": ["BlipModel"]}, "contrastive"),
        ({"architectures": ["CLIPModel"]}, "contrastive"),
        ({}, "contrastive"),
    ],
)
def test_the_config_decides_the_family(config: dict[str, Any], family: str) -> None:
    assert family_of(config).name == family


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_every_family_has_a_function_that_opens_it(family: Family) -> None:
    if family.name in ("onnx", "openclip"):
        pytest.importorskip({"onnx": "onnxruntime", "openclip": "open_clip"}[family.name])
    assert callable(family.open)
    assert bool(family.form) != bool(family.config_names) or family.name == "contrastive"


def test_kinds_are_those_that_list_models_offers() -> None:
    assert set(KINDS) == {family.kind for family in FAMILIES.values() if not family.form}


def test_every_folder_of_models_says_what_it_holds() -> None:
    models = Path(catalog.__file__).parent
    for init in models.glob("**/__init__.py"):
        assert init.read_text(encoding="utf-8").startswith('"""'), init


def test_a_plug_in_adds_a_family_and_cannot_replace_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAMILIES, "_things", dict(FAMILIES._things))
    monkeypatch.setattr(FAMILIES, "_added", set())
    own = Family("own", "baseline", "a test", lambda rest, options: NullScorer(int(rest)), form="own:SEED")
    FAMILIES.add("own", own)
    assert load_model("own:7").spec.revision == "7"
    assert "own:SEED" in name_forms()
    with pytest.raises(UsageError, match="comes with Beholder"):
        FAMILIES.add("onnx", own)
