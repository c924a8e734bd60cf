"""The sweep over models that read a picture and a text together and say whether they match."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from family_sweep import PROMPTS, Case, Comparison, pictures
from family_sweep_towers import image_processor, spread, tiny_config, word_tokenizer, write_config

TASK = "image-text matching"
KINDS = {
    "blip": "BlipForImageTextRetrieval",
    "blip-2": "Blip2ForImageTextRetrieval",
    "vilt": "ViltForImageAndTextRetrieval",
    "bridgetower": "BridgeTowerForImageAndTextRetrieval",
    "colpali": "ColPaliForRetrieval",
    "colmodernvbert": "ColModernVBertForRetrieval",
}
SMALL = {"image_text_hidden_size": 24}


def cases() -> list[Case]:
    """Every such architecture of the installed transformers; no pipeline lists them."""
    return [Case(TASK, name, kind, partial(write, name, kind), partial(compare, kind)) for name, kind in KINDS.items()]


def write(model_type: str, architecture: str, folder: Path) -> None:
    """A tiny checkpoint with random weights."""
    import transformers

    from beholder.models.catalog import UNREAD

    if model_type in UNREAD:
        write_config(model_type, folder)
        return
    model = spread(getattr(transformers, architecture)(tiny_config(model_type, SMALL)))
    for part in (model, image_processor(model_type), word_tokenizer()):
        part.save_pretrained(folder)


def compare(architecture: str, folder: Path) -> Comparison:
    """The matching logit of every pair beside that of the forward pass."""
    import numpy as np

    from beholder.models.load import load_model

    scorer = load_model(str(folder))
    ours = scorer.score_prepared([scorer.prepare(picture) for picture in pictures()], PROMPTS)
    channel = scorer.channels.index("match_logit")
    theirs = np.array([[_own(architecture, folder, picture, prompt) for prompt in PROMPTS] for picture in pictures()])
    return Comparison(float(np.abs(ours[..., channel] - theirs).max()), "towers, once per picture and text")


def _own(architecture: str, folder: Path, picture: Any, prompt: str) -> float:
    import torch
    import transformers

    model = getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = {**images(images=picture, return_tensors="pt"), **tokenizer(prompt, return_tensors="pt")}
    own = {"use_image_text_matching_head": True} if architecture.startswith("Blip2") else {}
    with torch.no_grad():
        output = model(**inputs, **own)
    names = ("itm_score", "logits_per_image", "logits")
    return float(next(value for name in names if (value := getattr(output, name, None)) is not None)[0, -1])
