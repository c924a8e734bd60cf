"""A tiny random CLIPSeg, and what its own forward pass gives for one picture and one concept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from beholder.models.dense import from_folder
from beholder.models.load import LoadOptions

TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIDE = 32


def tokenizer() -> Any:
    """A CLIPTokenizer over single letters."""
    tokens = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)


def build(folder: Path) -> None:
    """The refined form (`use_complex_transposed_convolution`), whose published checkpoint is rd64-refined."""
    ends = {"bos_token_id": 52, "eos_token_id": 53, "pad_token_id": 53}
    text = {**TOWER, "vocab_size": 54, "max_position_embeddings": 77, **ends}
    config = transformers.CLIPSegConfig(
        text_config=text,
        vision_config={**TOWER, "image_size": SIDE, "patch_size": 16},
        projection_dim=24,
        extract_layers=[0, 1, 2],
        reduce_dim=16,
        decoder_intermediate_size=32,
        decoder_num_attention_heads=4,
        use_complex_transposed_convolution=True,
    )
    model = transformers.CLIPSegForImageSegmentation(config)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape) * 0.2)
    processor = transformers.ViTImageProcessorPil(size={"height": SIDE * 2, "width": SIDE * 2})
    for part in (model.eval(), processor, tokenizer()):
        part.save_pretrained(folder)


def plain_of(folder: Path) -> Any:
    """The library's processor and forward pass; the sigmoid is how its users read the logits."""
    model = transformers.CLIPSegForImageSegmentation.from_pretrained(folder, dtype=torch.float32).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    processor = transformers.CLIPSegProcessor(images, transformers.AutoTokenizer.from_pretrained(folder))

    def plain(picture: Any, prompt: str) -> list[float]:
        options = {"padding": True, "truncation": True, "return_tensors": "pt"}
        with torch.no_grad():
            logits = model(**processor(text=[prompt], images=[picture.convert("RGB")], **options)).logits
        pixels = torch.sigmoid(logits)
        return [float(pixels.max()), float(pixels.mean()), float((pixels > 0.5).float().mean())]

    return plain


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """CLIPSeg: how to load it, and its obvious channels of one picture and one concept."""
    folder = folder / "clipseg"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        build(folder)

    def load(options: LoadOptions) -> Any:
        return from_folder(folder, "clipseg", options)

    # The share of pixels above one half moves by whole pixels in half precision.
    return {"clipseg": {"load": load, "plain": plain_of(folder), "tolerance": 1e-5, "bf16_tolerance": 0.05}}
