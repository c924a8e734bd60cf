"""ALBEF's architecture on BLIP's parts: a vision transformer, BERT layers for the text, BERT layers that fuse.

BLIP grew out of ALBEF, and transformers has BLIP: its vision tower and its text layers take ALBEF's weights as they
are. What differs is here: only the later text layers attend to the picture, so a text passes the earlier ones once.
"""

from __future__ import annotations

from dataclasses import dataclass

from beholder.models.checkpoint.checkpoint import torch, transformers
from beholder.models.torch_types import Config, Module, Tensor


@dataclass(frozen=True)
class AlbefConfig:
    """The published sizes; a `config.json` says what is otherwise."""

    image_size: int | None = None
    """Side of the square picture in pixels; none: that of the checkpoint's own position table."""
    code: str = "albef"
    """Whose code trained the checkpoint, `albef` or `lavis`: they read texts differently."""
    max_text_length: int = 30
    patch_size: int = 16
    vision_width: int = 768
    vision_layers: int = 12
    vision_heads: int = 12
    text_width: int = 768
    text_layers: int = 12
    fusion_layer: int = 6
    """The first text layer that attends to the picture."""
    text_heads: int = 12
    text_positions: int = 512
    vocab_size: int = 30522
    embed_dim: int = 256


class AlbefModel(torch.nn.Module):  # type: ignore[misc]
    """Two towers, their contrastive projections, and the fusion layers with the matching head."""

    def __init__(self, config: AlbefConfig, *, image_size: int) -> None:
        super().__init__()
        nn, blip = torch.nn, transformers.models.blip.modeling_blip_text
        self.visual_encoder = transformers.BlipVisionModel(_vision_config(config, image_size))
        self.embeddings = blip.BlipTextEmbeddings(_text_config(config))
        alone, fusing = _text_config(config), _text_config(config, is_decoder=True)
        self.layer = nn.ModuleList(
            blip.BlipTextLayer(fusing if number >= config.fusion_layer else alone, number)
            for number in range(config.text_layers)
        )
        self.vision_proj = nn.Linear(config.vision_width, config.embed_dim)
        self.text_proj = nn.Linear(config.text_width, config.embed_dim)
        self.itm_head = nn.Linear(config.text_width, 2)
        self.temp = nn.Parameter(torch.ones([]))
        self._fusion_layer = config.fusion_layer

    def picture_states(self, pixels: Tensor) -> Tensor:
        """`[n, 1 + patches, width]`."""
        return self.visual_encoder(pixel_values=pixels).last_hidden_state

    def text_states(self, ids: Tensor) -> Tensor:
        """`[n, tokens, width]` of texts of one length, before any picture is seen."""
        states = self.embeddings(input_ids=ids)
        for layer in self.layer[: self._fusion_layer]:
            states = layer(states)
        return states

    @property
    def fusing_layers(self) -> Module:
        """The later text layers, which attend to the picture."""
        return self.layer[self._fusion_layer :]


def _vision_config(config: AlbefConfig, image_size: int) -> Config:
    return transformers.BlipVisionConfig(
        hidden_size=config.vision_width,
        intermediate_size=4 * config.vision_width,
        num_hidden_layers=config.vision_layers,
        num_attention_heads=config.vision_heads,
        image_size=image_size,
        patch_size=config.patch_size,
        hidden_act="gelu",
        layer_norm_eps=1e-6,
        attention_dropout=0.0,
    )


def _text_config(config: AlbefConfig, *, is_decoder: bool = False) -> Config:
    return transformers.BlipTextConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.text_width,
        encoder_hidden_size=config.vision_width,
        intermediate_size=4 * config.text_width,
        num_hidden_layers=config.text_layers,
        num_attention_heads=config.text_heads,
        max_position_embeddings=config.text_positions,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        sep_token_id=0,
        is_decoder=is_decoder,  # which is what gives a layer of BLIP its cross-attention
    )
