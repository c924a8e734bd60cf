"""The sweep over models with an image tower and a text tower: those of the zero-shot pipeline, and their kin beside it.

The model's own forward pass is asked for every pair by itself: `logits_per_image`, or what stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from family_sweep import PROMPTS, SMALL, Case, Comparison, NotBuiltError, pictures

PIPELINE, BESIDE = "zero-shot-image-classification", "two towers beside that pipeline"
KIN = {
    "aimv2": "Aimv2Model",
    "flava": "FlavaForPreTraining",
    "groupvit": "GroupViTModel",
    "vision-text-dual-encoder": "VisionTextDualEncoderModel",
    "xclip": "XCLIPModel",
}
EXTRAS = {"tipsv2": "vision"}
SIDE = 32
WORDS = " ".join(PROMPTS).lower().replace(",", " ").replace("?", " ").split()
SMALLER: Mapping[str, object] = {
    **SMALL,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "projection_dim": 24,
    "projection_size": 32,
    "project_dim": 24,
    "max_position_embeddings": 64,
    "encoder_hidden_size": 32,
    "mm_hidden_size": 32,
    "intermediate_dim": 48,
    "output_dim": 24,
    "pooler_output_size": 32,
    "vocab_size": 64,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
OWN: Mapping[str, Mapping[str, object]] = {
    "align": {
        "hidden_dim": 64,
        "width_coefficient": 0.25,
        "depth_coefficient": 0.1,
        "kernel_sizes": [3, 3],
        "in_channels": [8, 8],
        "out_channels": [8, 16],
        "strides": [1, 2],
        "num_block_repeats": [1, 1],
        "expand_ratios": [1, 2],
        "depthwise_padding": [],
        "projection_dim": 8,
    },
    "groupvit": {"depths": [1, 1, 1], "num_group_tokens": [4, 2, 0], "num_output_groups": [4, 2, 0]},
    "siglip2": {"num_patches": 16},
    "tipsv2": {"_out_features": ["stage2"], "_out_indices": [2], "stage_names": ["stem", "stage1", "stage2"]},
    "blip-2": {"use_qformer_text_input": True, "image_text_hidden_size": 24, "num_query_tokens": 4},
    "flava": {"hidden_size": 32, "num_blocks_per_group": 1, "projection_dim": 24},
}
"""What one family needs beside the rest."""


def cases() -> list[Case]:
    """Every two-tower architecture of the installed transformers."""
    from transformers.models.auto import modeling_auto

    named = dict(modeling_auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES)
    listed = {PIPELINE: named, BESIDE: {name: kind for name, kind in KIN.items() if name not in named}}
    return [
        Case(task, name, kind, partial(write, name, kind), partial(compare, name, kind), EXTRAS.get(name, ""))
        for task, kinds in listed.items()
        for name, kind in kinds.items()
    ]


def write(model_type: str, architecture: str, folder: Path) -> None:
    """A tiny checkpoint with random weights."""
    import transformers

    from beholder.models.catalog import UNREAD

    if model_type in UNREAD:
        write_config(model_type, folder)
        return
    kind = getattr(transformers, architecture)
    processor = image_processor(model_type)
    tokenizer = word_tokenizer(masked=model_type not in ("siglip", "siglip2"))
    model = spread(kind(tiny_config(model_type)))
    for part in (model, processor, tokenizer):
        part.save_pretrained(folder)


def write_config(model_type: str, folder: Path) -> None:
    """The configuration alone: Beholder refuses these families by their name."""
    config = {"model_type": model_type, "architectures": []}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))


def tiny_config(model_type: str, own: Mapping[str, object] | None = None) -> Any:
    """The default configuration, shrunk wherever it has a size that we know."""
    import transformers

    if model_type == "vision-text-dual-encoder":
        vision, text = (shrunk(kind(), SMALLER) for kind in (transformers.ViTConfig, transformers.BertConfig))
        return transformers.VisionTextDualEncoderConfig.from_vision_text_configs(vision, text, projection_dim=24)
    chosen = {**SMALLER, **OWN.get(model_type, {}), **(own or {})}
    return shrunk(transformers.CONFIG_MAPPING[model_type](), chosen)


def shrunk(config: Any, sizes: Mapping[str, object]) -> Any:
    """The configuration with these values wherever it, or a part of it, has such a setting."""
    from transformers import PreTrainedConfig

    for name, value in vars(config).copy().items():
        if isinstance(value, PreTrainedConfig):
            shrunk(value, sizes)
        elif name in sizes and value is not None and type(value) in (type(sizes[name]), tuple):
            setattr(config, name, sizes[name])
    return config


def image_processor(model_type: str) -> Any:
    """The family's own image processor by Pillow, at our size."""
    import transformers

    known = transformers.IMAGE_PROCESSOR_MAPPING.get(transformers.CONFIG_MAPPING[model_type], None)
    kind = known.get("pil") if known else transformers.ViTImageProcessorPil
    if kind is None and known and find_spec("torchvision"):
        kind = known["torchvision"]
    if kind is None:
        raise NotBuiltError("its image processor exists only with torchvision, which is not installed here")
    if model_type == "siglip2":
        return kind(patch_size=8, max_num_patches=16)
    square = {"height": SIDE, "width": SIDE}
    edge = {"shortest_edge": SIDE} if "shortest_edge" in (getattr(kind, "size", None) or {}) else square
    sizes = {"size": edge, "crop_size": square, "codebook_size": square, "codebook_crop_size": square}
    return kind(**{name: value for name, value in sizes.items() if hasattr(kind, name)})


def word_tokenizer(*, masked: bool = True) -> Any:
    """Whole words, lower case, between <s> and </s>."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", *dict.fromkeys(WORDS)]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    ends = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    inputs = ["input_ids", "attention_mask"] if masked else ["input_ids"]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, model_max_length=16, **ends)


def spread(model: Any) -> Any:
    """Weights spread enough that scores differ."""
    import torch

    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape, generator=generator) * 0.15)
            elif "logit_bias" in name or "logit_scale" in name:
                weights.fill_(-3.0 if "bias" in name else 2.5)
    return model.eval()


def compare(model_type: str, architecture: str, folder: Path) -> Comparison:
    """Our logits of every pair beside those of the forward pass."""
    import numpy as np

    from beholder.models.load import load_model

    scorer = load_model(str(folder))
    prepared = [scorer.prepare(picture) for picture in pictures()]
    scores = scorer.score_prepared(prepared, PROMPTS)
    settings = scorer.spec.settings
    if "itc_cosine" in scorer.channels:  # BLIP-2: the pipeline takes its contrastive head
        scores = scores[..., [scorer.channels.index("itc_cosine")]]
    if "logit_scale" in settings:
        scores = settings["logit_scale"] * scores[..., :1] + settings["logit_bias"]
    theirs = own_logits(model_type, architecture, folder)
    return Comparison(float(np.abs(scores[..., 0] - theirs).max()), "vectors, once per picture and text")


def own_logits(model_type: str, architecture: str, folder: Path) -> Any:
    """`[pictures, prompts]`, each pair by itself through the library alone."""
    import numpy as np
    import torch
    import transformers

    # Not by sdpa: AIMv2's text tower leaves its causal mask away there when nothing is padded.
    kind = getattr(transformers, architecture)
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    others = {"return_loss": False} if model_type == "flava" else {}
    padding: Mapping[str, object] = {"padding": "max_length"} if model_type in ("siglip", "siglip2", "align") else {}

    def logit(picture: Any, prompt: str) -> float:
        pixels = images(images=picture, return_tensors="pt")
        with torch.no_grad():
            output = model(**pixels, **tokenizer(prompt, return_tensors="pt", **padding), **others)
        return float(_of_the_pair(output))

    return np.array([[logit(picture, prompt) for prompt in PROMPTS] for picture in pictures()])


def _of_the_pair(output: Any) -> Any:
    names = ("logits_per_image", "contrastive_logits_per_image")
    return next(value for name in names if (value := getattr(output, name, None)) is not None).flatten()[0]
