"""The sweep over open-vocabulary detectors and segmenters."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from family_sweep import Case, Comparison, NotBuiltError, pictures
from family_sweep_towers import write_config

sys.path.append(str(Path(__file__).parents[1] / "tests" / "models"))

DETECTION, SEGMENTATION = "zero-shot-object-detection", "segmentation by text"
SEGMENTERS = {"clipseg": "CLIPSegForImageSegmentation", "sam3": "Sam3Model", "sam3_lite_text": "Sam3LiteTextModel"}
CONCEPTS = ["dog", "a very small tree"]
EXTRAS = {"omdet-turbo": "timm"}
"""Its published checkpoints have a backbone of timm's."""
ONE_PASS = {"owlvit", "owlv2"}


def cases() -> list[Case]:
    """Those of the pipeline, and the segmenters that take a text."""
    from transformers.models.auto import modeling_auto

    detectors = dict(modeling_auto.MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES)
    return [
        Case(task, name, kind, partial(write, name), partial(compare, name), EXTRAS.get(name, ""))
        for task, kinds in ((DETECTION, detectors), (SEGMENTATION, SEGMENTERS))
        for name, kind in kinds.items()
    ]


def write(model_type: str, folder: Path) -> None:
    """A tiny checkpoint with random weights, as the adapters' own tests build it."""
    from conformance import detection, segmentation

    if model_type == "clipseg":
        segmentation.build(folder)
    elif model_type.startswith("sam3"):
        write_config(model_type, folder)
    elif model_type in detection.FAMILIES:
        detection.FAMILIES[model_type][0](folder, model_type)
    else:
        raise NotBuiltError("a detector that this sweep does not know yet")


def compare(model_type: str, folder: Path) -> Comparison:
    """The presence of each concept in each picture beside the model's own post-processing."""
    import numpy as np
    from conformance import detection, segmentation

    from beholder.models.load import load_model

    scorer = load_model(str(folder))
    plain: Any = (segmentation.plain_of if model_type == "clipseg" else detection.FAMILIES[model_type][1])(folder)
    ours = scorer.score_prepared([scorer.prepare(picture) for picture in pictures()], CONCEPTS)[..., 0]
    theirs = np.array([[plain(picture, concept)[0] for concept in CONCEPTS] for picture in pictures()])
    shared = model_type in ONE_PASS or model_type == "clipseg"
    way = "the picture, for all concepts" if shared else "the picture's backbone, for all concepts"
    return Comparison(float(np.abs(ours - theirs).max()), way)
