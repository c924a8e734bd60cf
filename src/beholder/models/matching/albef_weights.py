"""ALBEF's published checkpoints: read without running code, checked name by name, put into our model.

    visual_encoder.blocks.0.attn.qkv.weight          text_encoder.bert.encoder.layer.6.crossattention.self.key.bias
    visual_encoder.pos_embed                         text_encoder.encoder.layer.0.attention.self.query.weight
    vision_proj.weight, text_proj.bias               itm_head.weight, temp

The pre-trained file has `text_encoder.bert.`, the fine-tuned ones `text_encoder.`. Left aside, because no score is
made of them: the momentum copies (`*_m`), the queues, the head that predicts masked words, the position counter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import refuse_other_weights, torch
from beholder.models.checkpoint.files import CheckpointFiles
from beholder.models.matching.albef_model import AlbefConfig, AlbefModel
from beholder.models.torch_types import Tensor

Weights = Mapping[str, Tensor]

ASIDE = re.compile(
    r"^(visual_encoder|text_encoder|vision_proj|text_proj)_m\."
    r"|^(image|text|idx)_queue$|^queue_ptr$"
    r"|^text_encoder\.cls\.|(^|\.)position_ids$"
)
RENAMED = [
    (r"^text_encoder\.(bert\.)?embeddings\.", "embeddings."),
    (r"^text_encoder\.(bert\.)?encoder\.layer\.", "layer."),
    (r"^visual_encoder\.cls_token$", "visual_encoder.embeddings.class_embedding"),
    (r"^visual_encoder\.pos_embed$", "visual_encoder.embeddings.position_embedding"),
    (r"^visual_encoder\.patch_embed\.proj\.", "visual_encoder.embeddings.patch_embedding."),
    (r"^visual_encoder\.norm\.", "visual_encoder.post_layernorm."),
    (r"^visual_encoder\.blocks\.", "visual_encoder.encoder.layers."),
    (r"\.norm([12])\.", r".layer_norm\1."),
    (r"\.attn\.qkv\.", ".self_attn.qkv."),
    (r"\.attn\.proj\.", ".self_attn.projection."),
]
POSITIONS = "visual_encoder.embeddings.position_embedding"
WORDS, TOKEN_TYPES = "embeddings.word_embeddings.weight", "embeddings.token_type_embeddings.weight"


def read_weights(files: CheckpointFiles) -> Weights:
    """The tensors of the folder's one checkpoint, under their published names."""
    from safetensors.torch import load_file

    if len(files.weights) != 1:
        names = ", ".join(path.name for path in files.weights)
        raise ModelError(f"{files.folder} holds several checkpoints ({names}); leave the one to be audited.")
    return _unpickled(files.weights[0]) if files.pickled else load_file(files.weights[0])


def build(weights: Weights, config: AlbefConfig, *, folder: Path) -> AlbefModel:
    """The model with these weights; what is missing, left over or of another shape is an error."""
    ours = _with_token_types(renamed(weights), config, folder)
    size = config.image_size or _trained_size(ours, config, folder)
    if POSITIONS in ours:
        ours[POSITIONS] = resized_positions(ours[POSITIONS], side=size // config.patch_size)
    model = AlbefModel(config, image_size=size)
    _refuse_misfits(model.state_dict(), ours, folder)
    model.load_state_dict(ours)
    return model


def renamed(weights: Weights) -> dict[str, Tensor]:
    """The weights that make a score, under our names.

    >>> list(renamed({"text_encoder.bert.encoder.layer.6.output.dense.bias": 0, "queue_ptr": 0}))
    ['layer.6.output.dense.bias']
    """
    return {_our_name(name): value for name, value in weights.items() if not ASIDE.search(name)}


def resized_positions(table: Tensor, *, side: int) -> Tensor:
    """The picture's position table `[1, 1 + patches, width]` for `side` patches each way, bicubic as published."""
    old = math.isqrt(table.shape[1] - 1)
    if old == side:
        return table
    grid = table[:, 1:].float().reshape(1, old, old, -1).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)
    return torch.cat([table[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2).to(table.dtype)], dim=1)


def _unpickled(path: Path) -> Weights:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle, zip and torch each have their own
        raise ModelError(
            f"{path} cannot be read as weights alone: {' '.join(str(error).split())[:300]}\n"
            "Convert it to model.safetensors where you trust it; docs/matching.md says how."
        ) from error
    weights = loaded.get("model", loaded) if isinstance(loaded, dict) else loaded
    if not isinstance(weights, Mapping):
        raise ModelError(f"{path} holds a {type(weights).__name__}, not named weights.")
    return {name: value for name, value in weights.items() if isinstance(value, torch.Tensor)}


def _our_name(name: str) -> str:
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def _with_token_types(weights: dict[str, Tensor], config: AlbefConfig, folder: Path) -> dict[str, Tensor]:
    """ALBEF adds the vector of token type 0 to every word's; LAVIS has none, and passes over them in a file."""
    types = weights.pop(TOKEN_TYPES, None)
    if config.code == "lavis" or WORDS not in weights:
        return weights
    if types is None:
        raise ModelError(
            f"The weights in {folder} have no token_type_embeddings, which ALBEF's own code trains.\n"
            'A checkpoint of LAVIS is read as such with "code": "lavis" in config.json.'
        )
    return weights | {WORDS: weights[WORDS] + types[0]}


def _trained_size(weights: Weights, config: AlbefConfig, folder: Path) -> int:
    if POSITIONS not in weights:
        raise ModelError(f"The weights in {folder} have no visual_encoder.pos_embed: this is no ALBEF checkpoint.")
    return math.isqrt(weights[POSITIONS].shape[1] - 1) * config.patch_size


def _refuse_misfits(wanted: Weights, given: Weights, folder: Path) -> None:
    other = [(name,) for name in wanted.keys() & given.keys() if wanted[name].shape != given[name].shape]
    missing, unexpected = sorted(wanted.keys() - given.keys()), sorted(given.keys() - wanted.keys())
    info = {"missing_keys": missing, "unexpected_keys": unexpected, "mismatched_keys": other, "error_msgs": []}
    refuse_other_weights(folder, info)
