"""Which adapter reads a transformers folder: decided by its config.json, before any weights are read.

Every adapter offers `from_folder(folder, name, options, *, origin=None) -> Scorer`. A new family is a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from beholder.models.checkpoint.folder import read_config
from beholder.models.scorer import Scorer

ADAPTERS = {
    "contrastive": "beholder.models.contrastive.two_towers:TransformersContrastive.from_folder",
    "matching": "beholder.models.matching.blip:from_folder",
    "albef": "beholder.models.matching.albef:from_folder",
    "generative": "beholder.models.generative.scorer:GenerativeScorer.from_folder",
    "detection": "beholder.models.dense.detection:Detector.from_folder",
    "segmentation": "beholder.models.dense.segmentation:Segmenter.from_folder",
}
"""Where each family's adapter lives; imported only when it is asked for."""

ANSWERING = ("ForConditionalGeneration", "ForCausalLM", "ForVisionText2Text", "deepseek_vl_v2")
"""How the name of an architecture ends that answers in words, as transformers has it."""

DENSE = {"clipseg": "segmentation", "owlvit": "detection", "owlv2": "detection", "omdet-turbo": "detection"}
DENSE |= {"grounding-dino": "detection", "mm-grounding-dino": "detection"}


def family_of(config: Mapping[str, Any]) -> str:
    """The family of a checkpoint, from its model type and architecture; two towers unless they say otherwise."""
    if config.get("model_type") == "albef":
        return "albef"
    if {"BlipForImageTextRetrieval", "Blip2ForImageTextRetrieval"} & set(config.get("architectures") or ()):
        return "matching"
    named = [*(config.get("architectures") or ()), str(config.get("model_type"))]
    if any(name.endswith(ANSWERING) for name in named):
        return "generative"
    return DENSE.get(str(config.get("model_type")), "contrastive")


def adapter_of(folder: Path) -> Callable[..., Scorer]:
    """The `from_folder` of the adapter that reads this folder."""
    module, _, path = ADAPTERS[family_of(read_config(folder))].partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]
