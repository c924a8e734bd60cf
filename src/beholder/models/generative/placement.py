"""Where a generative model's weights lie and in which precision: on one device, over several, or quantised.

These models are large, so `auto` is bfloat16 on a GPU (float32 on the CPU), the only family where it is; whatever
it is, it is in the spec.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

from beholder.core.errors import MissingExtra, ModelError
from beholder.models.checkpoint.checkpoint import Checkpoint, load_checkpoint, resolve_device, torch, transformers
from beholder.models.checkpoint.files import CheckpointFiles, ConfigFile, read_config
from beholder.models.generative.processor import processor_class
from beholder.models.spec import QUANTISED, LoadOptions
from beholder.models.torch_types import Config

ANSWERING_BLIP = "BlipForQuestionAnswering"
NOT_ASKED = {
    "diffusion_gemma": "it fills in whole blocks of words by diffusion, so an answer has no first token to read off",
    "evolla": "it reads proteins, not pictures",
    "florence2": "it is told a task by one of its own tokens (<CAPTION>, <OD> …), and none of them is a question",
    "idefics": "its image processor works unlike all others; Idefics 2, Idefics 3 and SmolVLM can be audited",
    "instructblipvideo": "it watches videos; InstructBLIP reads pictures",
    "pi0": "it answers with the movements of a robot, not with words",
    "pix2struct": "it reads its question as letters drawn above the picture, so every question is another picture",
    "pp_formulanet": "it writes down formulas and is given no text",
    "udop": "it reads documents and wants their words with the place of each",
    "vision-encoder-decoder": "it writes captions and is given no text",
}
"""Model types that no question can be put to, and why."""
SHARD = "shard"
ROOM = 0.8
"""The share of a GPU's memory that weights may take; the rest is for the work."""


def precision_of(options: LoadOptions) -> str:
    """The precision's full name; `auto` is bfloat16 wherever a GPU does the work."""
    if options.precision in QUANTISED:
        return options.precision
    if options.precision == "auto" and _on_gpu(options.device):
        return "bfloat16"
    return options.resolved_precision


def load_placed(files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
    """The checkpoint, on the requested device or devices."""
    require_vision(files.folder, options)
    precision = precision_of(options)
    quantised = precision in QUANTISED
    sharded = options.device == SHARD or (options.device == "auto" and _outgrows_one(files, precision))
    device = "auto" if options.device == SHARD else options.device
    placement: dict[str, object] = {}
    if sharded or quantised:
        _require("accelerate", "A model spread over several devices" if sharded else "A quantised model")
        placement["device_map"] = "auto" if sharded else {"": resolve_device(device)}
    if quantised:
        _require("bitsandbytes", f"Precision {precision}")
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it would tell of every product that it rounds
        placement["quantization_config"] = _quantisation(precision)
    return load_checkpoint(
        files,
        device=resolve_device(device),
        precision="bfloat16" if quantised else precision,
        trust_remote_code=options.trust_remote_code,
        auto=_auto_class(files),
        placement=placement,
    )


def require_vision(folder: Path, options: LoadOptions) -> None:
    """Raise, before any weights are read, if the pictures of this model can only be read by torchvision."""
    if find_spec("torchvision"):
        return
    try:
        transformers.AutoImageProcessor.from_pretrained(
            folder, backend="pil", local_files_only=True, trust_remote_code=options.trust_remote_code
        )
        missing = "torchvision" in getattr(processor_class(folder), "_backends", ())  # a placeholder has this (Pixtral)
    except Exception as error:  # whatever else is wrong is told when the model is loaded
        missing = "torchvision" in str(error)
    if missing:
        model_type = read_config(folder).get("model_type")
        raise MissingExtra(f"A model of type '{model_type}', whose pictures are read by torchvision only,", "vision")


def _auto_class(files: CheckpointFiles) -> str:
    """The class that config.json names where there are several; else that of the model type.

    Some models that also listen (Phi-4-multimodal) are known to transformers by another name only.
    """
    config = read_config(files.folder)
    if ANSWERING_BLIP in (config.get("architectures") or ()):
        return ANSWERING_BLIP
    model_type = config.get("model_type")
    names = transformers.models.auto.modeling_auto
    if model_type in names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        return "AutoModelForImageTextToText"
    others = getattr(names, "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES", {})
    return "AutoModelForMultimodalLM" if model_type in others else "AutoModelForImageTextToText"


def _on_gpu(device: str) -> bool:
    wanted = "auto" if device == SHARD else device
    return resolve_device(wanted).startswith("cuda")


def _outgrows_one(files: CheckpointFiles, precision: str) -> bool:
    """Whether there are several GPUs and one of them is too small for the weights."""
    if torch.cuda.device_count() < 2:
        return False
    size = sum(path.stat().st_size for path in files.weights)
    if precision in QUANTISED:
        size //= 2
    return bool(size > ROOM * torch.cuda.get_device_properties(0).total_memory)


def _quantisation(precision: str) -> Config:
    if precision == "int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )


def _require(library: str, what: str) -> None:
    if find_spec(library) is None:
        raise MissingExtra(f"{what} ({library})", "large")


def refuse_unserved(config: ConfigFile, folder: Path) -> None:
    """Raise for a model that transformers does not have, or that cannot be asked."""
    model_type = config.get("model_type")
    if model_type == "blip" and ANSWERING_BLIP not in (config.get("architectures") or ()):
        raise ModelError(
            f"{folder} is a BLIP for captions, which goes on with a caption and was never taught to answer.\n"
            f"BLIP for questions ({ANSWERING_BLIP}), BLIP with a matching head (BlipForImageTextRetrieval) and BLIP-2 "
            "can be audited."
        )
    if reason := NOT_ASKED.get(str(model_type)):
        raise ModelError(f"{folder} (model type '{model_type}') cannot be audited: {reason}.")
    if model_type == "deepseek_vl_v2":
        raise ModelError(
            f"{folder} is a DeepSeek-VL2, which transformers {transformers.__version__} does not have.\n"
            "Serve it (with vLLM or SGLang, for one) and audit it there: beholder audit openai:MODEL@URL."
        )
    if model_type == "phi4_multimodal" and _unmerged(Path(folder)):
        raise ModelError(
            f"{folder} is a Phi-4-multimodal whose low-rank weights for pictures lie apart (vision-lora): without "
            "them it would answer as if it had hardly learned to see.\nMerge them (with peft) and name the folder "
            "of the merged model, or serve it: beholder audit openai:MODEL@URL."
        )


def _unmerged(folder: Path) -> bool:
    """Whether the weights are as published: in a snapshot of the hub, or with the low-rank weights beside them."""
    return (folder / "vision-lora").is_dir() or "snapshots" in folder.parts
