"""Tiny random two-tower models of the true architectures, saved as ordinary folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = ["a", "photo", "of", "person", "dog", "the", "doctor", "woman", "man", "smiling", "nurse", "tree"]
SIDE = 32
ONNX_IMAGE = {
    "input": "pixel_values",
    "output": "image_embeds",
    "size": 224,
    "resize": "shortest edge, bicubic",
    "crop": "center",
    "mean": [0.48145466, 0.4578275, 0.40821073],
    "std": [0.26862954, 0.26130258, 0.27577711],
    "max_batch": 1,
}
"""The part of an ONNX folder's config.json about pictures."""


def word_tokenizer(**settings: Any) -> Any:
    """Whole words, lower case, closed by </s>: what the models other than CLIP are given."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", **settings
    )


def clip_tokenizer() -> Any:
    """A CLIPTokenizer over single letters."""
    from transformers import CLIPTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])


TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
VISION = {**TOWER, "image_size": SIDE, "patch_size": 8}
TOKENS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def _clip(folder: Path) -> None:
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    tokenizer = clip_tokenizer()
    ends = {"bos_token_id": 52, "eos_token_id": 53, "pad_token_id": 53}
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 40, **ends}
    config = CLIPConfig(text_config=text, vision_config=VISION, projection_dim=24)
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    save(folder, CLIPModel(config), CLIPImageProcessorPil(**size), tokenizer)


def _siglip(folder: Path) -> None:
    from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipModel

    tokenizer = word_tokenizer(model_input_names=["input_ids"])
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 12, "projection_size": 32, **TOKENS}
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=VISION))
    save(folder, model, SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}), tokenizer)


def _naflex(folder: Path) -> None:
    from transformers import Siglip2Config, Siglip2ImageProcessorPil, Siglip2Model, Siglip2Tokenizer

    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    tokenizer = Siglip2Tokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])
    tokenizer.padding_side = "right"
    tokenizer.model_input_names = ["input_ids"]
    vision = {**TOWER, "patch_size": 8, "num_patches": 16}
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "projection_size": 32}
    model = Siglip2Model(Siglip2Config(text_config=text, vision_config=vision))
    save(folder, model, Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16), tokenizer)


def _align(folder: Path) -> None:
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessorPil

    tokenizer = word_tokenizer()
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "pad_token_id": 1}
    vision = {
        "image_size": SIDE,
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
    }
    model = AlignModel(AlignConfig(text_config=text, vision_config=vision, projection_dim=8))
    save(folder, model, EfficientNetImageProcessorPil(size={"height": SIDE, "width": SIDE}), tokenizer)


def _altclip(folder: Path) -> None:
    from transformers import AltCLIPConfig, AltCLIPModel, CLIPImageProcessorPil

    tokenizer = word_tokenizer()
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 24, "project_dim": 24, **TOKENS}
    model = AltCLIPModel(AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=24))
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    save(folder, model, CLIPImageProcessorPil(**size), tokenizer)


def _chinese_clip(folder: Path) -> None:
    from transformers import ChineseCLIPConfig, ChineseCLIPImageProcessorPil, ChineseCLIPModel

    tokenizer = word_tokenizer()
    text = {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 24, "pad_token_id": 1}
    model = ChineseCLIPModel(ChineseCLIPConfig(text_config=text, vision_config=VISION, projection_dim=24))
    size = {"size": {"height": SIDE, "width": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    save(folder, model, ChineseCLIPImageProcessorPil(**size), tokenizer)


BUILDERS: dict[str, Callable[[Path], None]] = {
    "clip": _clip,
    "siglip": _siglip,
    "siglip2": _naflex,
    "align": _align,
    "altclip": _altclip,
    "chinese_clip": _chinese_clip,
}


def save(folder: Path, model: Any, image_processor: Any, tokenizer: Any) -> None:
    """Random weights, saved as the library saves any model."""
    spread(model)
    for part in (model.eval(), image_processor, tokenizer):
        part.save_pretrained(folder)


def spread(model: Any) -> None:
    """Random weights, spread enough that scores differ."""
    import torch

    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape, generator=generator) * 0.15)
            elif "logit_bias" in name:
                weights.fill_(-3.0)
            elif "logit_scale" in name:
                weights.fill_(2.5)
