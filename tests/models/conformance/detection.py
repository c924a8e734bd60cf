"""Tiny random detectors of the true architectures, and what their own forward pass and post-processing give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from beholder.models.dense import from_folder
from beholder.models.load import LoadOptions

TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SIDE = 32
SPREAD = 0.15
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SWIN = {
    "image_size": SIDE,
    "patch_size": 2,
    "embed_dim": 8,
    "depths": [1, 1, 1, 1],
    "num_heads": [1, 1, 2, 2],
    "window_size": 4,
    "drop_path_rate": 0.0,
}


def clip_tokenizer(**settings: Any) -> Any:
    """A CLIPTokenizer over single letters."""
    tokens = ["!", *LETTERS, *(f"{letter}</w>" for letter in LETTERS), ".</w>", ",</w>", "<|startoftext|>"]
    vocabulary = {token: number for number, token in enumerate([*tokens, "<|endoftext|>"])}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], **settings)


def bert_tokenizer() -> Any:
    """A BertTokenizer over single letters, with the marks where Grounding DINO looks for them."""
    places = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103, ".": 1012, "?": 1029}
    vocabulary = {f"[unused{number}]": number for number in range(1100) if number not in places.values()}
    names = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    for number, letter in enumerate(names, start=1030):
        del vocabulary[f"[unused{number}]"]
        places[letter] = number
    return transformers.BertTokenizer(vocab=vocabulary | places)


def text_of(tokenizer: Any, length: int) -> dict[str, Any]:
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": 0}
    return {**TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": length, **ends}


def build_owlvit(folder: Path, family: str) -> None:
    """OWL-ViT or OWLv2."""
    kind = {"owlvit": "OwlViT", "owlv2": "Owlv2"}[family]
    tokenizer = clip_tokenizer(model_max_length=16, pad_token="!")
    vision = {**TOWER, "image_size": SIDE, "patch_size": 8}
    config = getattr(transformers, f"{kind}Config")(
        text_config=text_of(tokenizer, 16), vision_config=vision, projection_dim=32
    )
    model = getattr(transformers, f"{kind}ForObjectDetection")(config)
    processor = getattr(transformers, f"{kind}ImageProcessorPil")(size={"height": SIDE, "width": SIDE})
    save(folder, model, processor, tokenizer)


def build_grounding_dino(folder: Path, family: str) -> None:
    """Grounding DINO or MM-Grounding-DINO on a small Swin."""
    kind = {"grounding-dino": "GroundingDino", "mm-grounding-dino": "MMGroundingDino"}[family]
    tokenizer = bert_tokenizer()
    config = getattr(transformers, f"{kind}Config")(
        backbone_config=transformers.SwinConfig(**SWIN, out_indices=[2, 3, 4]),
        text_config=transformers.BertConfig(
            **TOWER, vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=0
        ),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_queries=20,
        max_text_len=64,
        num_feature_levels=4,
    )
    model = getattr(transformers, f"{kind}ForObjectDetection")(config)
    if family == "grounding-dino":  # its logits are plain dot products: without this every score is 1
        model.model.decoder.layer_norm.weight.data.fill_(0.1)
    processor = transformers.GroundingDinoImageProcessorPil(size={"shortest_edge": 64, "longest_edge": 96})
    save(folder, model, processor, tokenizer)


def build_omdet(folder: Path, family: str) -> None:
    """OmDet-Turbo on a small Swin of transformers; the published one has timm's."""
    tokenizer = clip_tokenizer(model_max_length=77)
    text = transformers.CLIPTextConfig(**text_of(tokenizer, 77))
    swin = transformers.SwinConfig(**SWIN, out_indices=[2, 3, 4])
    config = transformers.OmDetTurboConfig(
        backbone_config=swin,
        text_config=text,
        image_size=SIDE,
        apply_layernorm_after_vision_backbone=False,
        encoder_in_channels=[16, 32, 64],
        encoder_hidden_dim=16,
        vision_features_channels=[16, 16, 16],
        encoder_attention_heads=4,
        encoder_dim_feedforward=32,
        decoder_hidden_dim=16,
        decoder_num_heads=4,
        decoder_num_layers=2,
        decoder_dim_feedforward=32,
        num_queries=20,
        class_embed_dim=32,
        text_projection_in_dim=32,
        text_projection_out_dim=32,
        task_encoder_hidden_dim=32,
    )
    model = transformers.OmDetTurboForObjectDetection(config)
    processor = transformers.DetrImageProcessorPil(size={"height": SIDE, "width": SIDE}, do_pad=False)
    save(folder, model, processor, tokenizer)


def save(folder: Path, model: Any, image_processor: Any, tokenizer: Any) -> None:
    """Random weights, spread enough that scores differ, saved as the library saves any model."""
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape) * SPREAD)
    for part in (model.eval(), image_processor, tokenizer):
        part.save_pretrained(folder)


def parts_of(folder: Path) -> tuple[Any, Any, Any]:
    """Model, PIL image processor and tokenizer, loaded the plain way."""
    model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(folder, dtype=torch.float32).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return model, images, transformers.AutoTokenizer.from_pretrained(folder)


def plain_owl(folder: Path) -> Callable[[Any, str], list[float]]:
    """The library's processor, forward pass and post-processing."""
    model, images, tokenizer = parts_of(folder)
    kind = transformers.OwlViTProcessor if model.config.model_type == "owlvit" else transformers.Owlv2Processor
    processor = kind(images, tokenizer)

    def plain(picture: Any, prompt: str) -> list[float]:
        inputs = processor(text=[[prompt]], images=picture.convert("RGB"), return_tensors="pt", truncation=True)
        with torch.no_grad():
            outputs = model(**inputs)
        return [float(processor.post_process_grounded_object_detection(outputs, threshold=0)[0]["scores"].max())]

    return plain


def plain_grounding_dino(folder: Path) -> Callable[[Any, str], list[float]]:
    """The library's processor, forward pass and post-processing."""
    model, images, tokenizer = parts_of(folder)
    processor = transformers.GroundingDinoProcessor(images, tokenizer)

    def plain(picture: Any, prompt: str) -> list[float]:
        inputs = processor(text=[[prompt]], images=picture.convert("RGB"), return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs)
        found = processor.post_process_grounded_object_detection(outputs, inputs.input_ids, threshold=0)
        return [float(found[0]["scores"].max())]

    return plain


def plain_omdet(folder: Path) -> Callable[[Any, str], list[float]]:
    """The library's forward pass on what its processor would make (the processor itself wants torchvision)."""
    model, images, tokenizer = parts_of(folder)

    def tokens(text: str) -> Any:
        return tokenizer([text], padding="max_length", truncation=True, max_length=77, return_tensors="pt")

    def plain(picture: Any, prompt: str) -> list[float]:
        concept, task = tokens(prompt), tokens(f"Detect {prompt}.")
        with torch.no_grad():
            outputs = model(
                pixel_values=images(picture.convert("RGB"), return_tensors="pt").pixel_values,
                classes_input_ids=concept.input_ids,
                classes_attention_mask=concept.attention_mask,
                tasks_input_ids=task.input_ids,
                tasks_attention_mask=task.attention_mask,
                classes_structure=torch.tensor([1]),
            )
        return [float(torch.sigmoid(outputs.decoder_class_logits).max())]

    return plain


FAMILIES: dict[str, tuple[Callable[[Path, str], None], Callable[[Path], Any]]] = {
    "owlvit": (build_owlvit, plain_owl),
    "owlv2": (build_owlvit, plain_owl),
    "grounding-dino": (build_grounding_dino, plain_grounding_dino),
    "mm-grounding-dino": (build_grounding_dino, plain_grounding_dino),
    "omdet-turbo": (build_omdet, plain_omdet),
}


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """Every detector family: how to load it, and its obvious score of one picture and one concept."""
    return {family: case(folder / family, family) for family in FAMILIES}


def case(folder: Path, family: str) -> dict[str, Any]:
    build, plain = FAMILIES[family]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        build(folder, family)

    def load(options: LoadOptions) -> Any:
        return from_folder(folder, family, options)

    # In half precision other proposals come to be the best ones: of random weights that moves a score much.
    half = 0.02 if family in ("owlvit", "owlv2") else 0.2
    return {"load": load, "plain": plain(folder), "tolerance": 1e-5, "bf16_tolerance": half}
