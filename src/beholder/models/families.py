"""The families of models: the one list that says how a model is recognised and which function opens it.

A model is named by a scheme (`onnx:DIR`), or it is a transformers folder whose config.json names its architecture.
A new family is one folder beside this file and one entry here. Nothing is imported until a model is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path

from beholder.core.catalog import Catalog
from beholder.core.errors import ModelError
from beholder.models.checkpoint.files import ConfigFile, Origin, read_config
from beholder.models.scorer import Scorer
from beholder.models.spec import LoadOptions

Opener = Callable[..., Scorer]


@dataclass(frozen=True)
class Family:
    """One family of models, opened by one adapter."""

    name: str
    """The scheme too, if models are named by one."""
    kind: str
    """The kind of model: contrastive, matching, generative, detection, segmentation or baseline."""
    what: str
    opens: str | Opener
    """The function that opens a model, or where it is: `module:function`.

    With a scheme it is called as `open(rest_of_name, options)`, else as `open(folder, name, options, origin=…)`.
    """
    form: str = ""
    """How a model with a scheme is named; empty for families that are read from a transformers folder."""
    config_names: tuple[str, ...] = ()
    """Endings of the `architectures` or the `model_type` in config.json that belong to this family."""
    extra: str = ""
    """The optional part of Beholder that it needs, as in `pip install 'beholder[torch]'`."""

    @property
    def open(self) -> Opener:
        """The function that opens a model of this family; its libraries are imported now."""
        if callable(self.opens):
            return self.opens
        module, _, path = self.opens.partition(":")
        function: Opener = attrgetter(path)(import_module(module))
        return function


_BUILT_IN = (
    Family(
        "null",
        "baseline",
        "random noise: what a measure reports when there is nothing to find",
        "beholder.models.scorer:open_null",
        form="null, null:SEED",
    ),
    Family(
        "albef",
        "matching",
        "ALBEF, from its published checkpoint",
        "beholder.models.albef:from_folder",
        config_names=("albef",),
        extra="torch",
    ),
    Family(
        "matching",
        "matching",
        "BLIP and BLIP-2 with a matching head",
        "beholder.models.matching:from_folder",
        config_names=("BlipForImageTextRetrieval", "Blip2ForImageTextRetrieval"),
        extra="torch",
    ),
    Family(
        "generative",
        "generative",
        "models that answer in words",
        "beholder.models.generative.scorer:GenerativeScorer.from_folder",
        config_names=(
            "ForConditionalGeneration",
            "ForCausalLM",
            "ForVisionText2Text",
            "BlipForQuestionAnswering",
            "deepseek_vl_v2",
        ),
        extra="torch",
    ),
    Family(
        "detection",
        "detection",
        "open-vocabulary detectors",
        "beholder.models.dense:from_folder",
        config_names=("owlvit", "owlv2", "omdet-turbo", "grounding-dino", "mm-grounding-dino"),
        extra="torch",
    ),
    Family(
        "segmentation",
        "segmentation",
        "CLIPSeg",
        "beholder.models.dense:from_folder",
        config_names=("clipseg",),
        extra="torch",
    ),
    Family(
        "flava",
        "contrastive",
        "FLAVA, by its contrastive head",
        "beholder.models.contrastive.two_towers:from_folder",
        config_names=("flava",),
        extra="torch",
    ),
    Family(
        "evaclip",
        "contrastive",
        "EVA-CLIP as published for transformers, without its own code",
        "beholder.models.contrastive.evaclip:from_folder",
        config_names=("EvaCLIPModel",),
        extra="torch",
    ),
    Family(
        "contrastive",
        "contrastive",
        "an image tower and a text tower: CLIP, SigLIP and every other folder",
        "beholder.models.contrastive.two_towers:TransformersContrastive.from_folder",
        extra="torch",
    ),
    Family(
        "openclip",
        "contrastive",
        "a model from open_clip's list; openclip:ARCH/FILE for a local weights file",
        "beholder.models.contrastive.openclip:OpenClipContrastive.from_name",
        form="openclip:ARCH/TAG",
        extra="openclip",
    ),
    Family(
        "onnx",
        "contrastive",
        "an ONNX image tower with a text tower or a table of text embeddings",
        "beholder.models.contrastive.onnx:open_onnx",
        form="onnx:DIR",
        extra="onnx",
    ),
    Family(
        "openai",
        "generative",
        "a model behind an OpenAI-compatible server",
        "beholder.models.served.open:open_served",
        form="openai:MODEL@URL",
    ),
    Family(
        "predictions",
        "detection",
        "result files of a detector or segmenter that ran elsewhere: `beholder measure`",
        "beholder.models.predictions:refuse_to_open",
        form="predictions:PATH",
    ),
)
FAMILIES = Catalog("family of models", {family.name: family for family in _BUILT_IN}, installed="beholder.models")
"""A plug-in adds its own: `FAMILIES.add("colour", Family("colour", …))`."""
KINDS = tuple(dict.fromkeys(family.kind for family in _BUILT_IN if not family.form))
"""The kinds of models that can be read from a transformers folder."""
_TOGETHER = "It reads picture and text together, in a way that Beholder has no adapter for."
_LATE = "It compares every word with every patch to find documents; Beholder has no adapter for that."
_VIDEO = "It reads videos, not pictures."
_SAM3 = "Beholder has no adapter for it: run it elsewhere and import its masks (docs/detectors.md)."
UNREAD: dict[str, str] = {
    "vilt": _TOGETHER,
    "bridgetower": _TOGETHER,
    "colpali": _LATE,
    "colqwen2": _LATE,
    "colmodernvbert": _LATE,
    "xclip": _VIDEO,
    "videoprism": _VIDEO,
    "sam3": _SAM3,
    "sam3_lite_text": _SAM3,
}
"""Model types that stand beside those that Beholder reads, and why it does not read them."""
FOLDER_FORMS = {
    "OWNER/NAME[@REVISION]": f"a model from the hub ({', '.join(KINDS)})",
    "DIR": "the same from a local transformers folder",
}


def family_of(config: ConfigFile) -> Family:
    """The family of a checkpoint, from its architectures and model type; contrastive unless another matches."""
    architectures = config.get("architectures")
    names = [*map(str, architectures if isinstance(architectures, list) else ()), str(config.get("model_type"))]
    for family in FAMILIES.values():
        if any(name.endswith(family.config_names) for name in names):
            return family
    return FAMILIES["contrastive"]


def open_folder(folder: Path, name: str, options: LoadOptions, **origin: Origin | None) -> Scorer:
    """The model in a transformers folder; its config.json decides the family before any weights are read."""
    config = read_config(folder)
    if reason := UNREAD.get(str(config.get("model_type"))):
        raise ModelError(f"{folder} is a model of type '{config['model_type']}'. {reason}")
    return family_of(config).open(folder, name, options, **origin)


def name_forms() -> list[str]:
    """Every form that the name of a model can take."""
    schemes = [form for family in FAMILIES.values() if family.form for form in family.form.split(", ")]
    return [*schemes, *FOLDER_FORMS]
