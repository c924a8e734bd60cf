"""EVA-CLIP as published for transformers (`EvaCLIPModel`): BAAI/EVA-CLIP-8B and its kin, without their own code.

The weights keep their published names. Which projections have a bias, where a layer normalises, and by what, is read
from config.json. The repositories bring no image processor: pictures are prepared with CLIP's, as they say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import (
    Checkpoint,
    Opened,
    as_model_error,
    memory_errors,
    read_weights,
    resolve_device,
    take_weights,
    torch,
    transformers,
)
from beholder.models.checkpoint.files import ConfigFile, Origin, find_files, read_config
from beholder.models.contrastive.two_towers import TransformersContrastive
from beholder.models.scorer import Prepared
from beholder.models.spec import LoadOptions, Module, Tensor

nn = torch.nn
NOT_BUILT = ("use_sub_ln", "use_swiglu_mlp", "use_rope", "rope")  # options of EVA-02, not computed here


class EvaClipScorer(TransformersContrastive):
    """Cosine similarity; a pair by itself is what batches are checked against, for there is no other forward pass."""

    adapter = "evaclip"

    @classmethod
    def _open(cls, folder: Path, options: LoadOptions, origin: Origin | None) -> Opened:
        device, precision = resolve_device(options.device), options.resolved_precision
        config = read_config(folder)
        files = find_files(folder, allow_pickle=options.allow_pickle, image_processor=False)
        with as_model_error(folder), memory_errors():
            model = EvaClip(config, folder)
            given = {name: value for name, value in read_weights(files).items() if not name.endswith("position_ids")}
            take_weights(model, given, folder)  # what is missing, left over or of another shape is an error
            model = model.to(device, getattr(torch, precision)).eval().requires_grad_(False)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        side = config["vision_config"]["image_size"]
        square = {"height": side, "width": side}
        processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size=square)
        return Opened(Checkpoint(model, processor, tokenizer, []), device, precision, origin or files.origin)

    def _own(self, prepared: Sequence[Prepared], text: str) -> float:
        image = self._model.get_image_features(**self._image_inputs(prepared)).float()
        words = self._model.get_text_features(**self._text_inputs([text])).float()
        return float(nn.functional.cosine_similarity(image, words)[0])


class EvaClip(torch.nn.Module):  # type: ignore[misc]
    """Two towers and their projections, under the published names."""

    def __init__(self, config: ConfigFile, folder: Path) -> None:
        super().__init__()
        vision, text = (_Sizes(config[f"{side}_config"], folder) for side in ("vision", "text"))
        self.config = SimpleNamespace(model_type="clip", text_config=text, _attn_implementation="sdpa")
        self.vision_model, self.text_model = _Vision(vision), _Text(text)
        self.visual_projection = nn.Linear(vision.hidden_size, config["projection_dim"])
        self.text_projection = nn.Linear(text.hidden_size, config["projection_dim"], bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(float(config["logit_scale_init_value"])))

    def get_image_features(self, pixel_values: Tensor) -> Tensor:
        """`[n, dim]`."""
        return self.visual_projection(self.vision_model(pixel_values))

    def get_text_features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """`[n, dim]`; what follows the end of a text is never read, so its mask says nothing new."""
        return self.text_projection(self.text_model(input_ids))


class _Sizes(SimpleNamespace):
    """The settings of one tower; what its config.json leaves out is as its authors' class has it."""

    def __init__(self, values: ConfigFile, folder: Path) -> None:
        if used := [name for name in NOT_BUILT if values.get(name)]:
            raise ModelError(f"{folder} is an EVA-CLIP with {', '.join(used)}, which Beholder does not compute.")
        usual = {"q_bias": True, "k_bias": True, "v_bias": True, "post_layernorm": False, "use_rms_norm": False}
        super().__init__(**{**usual, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "model_type": "clip_text_model"})
        self.__dict__.update({name: value for name, value in values.items() if value is not None})

    def norm(self) -> Module:
        """What the tower normalises by."""
        kind = nn.RMSNorm if self.use_rms_norm else nn.LayerNorm
        return kind(self.hidden_size, eps=self.layer_norm_eps)


class _Vision(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: _Sizes) -> None:
        super().__init__()
        width, patch = sizes.hidden_size, sizes.patch_size
        self.embeddings = nn.Module()
        self.embeddings.class_embedding = nn.Parameter(torch.zeros(width))
        self.embeddings.patch_embedding = nn.Conv2d(3, width, patch, stride=patch)
        self.embeddings.position_embedding = nn.Embedding((sizes.image_size // patch) ** 2 + 1, width)
        self.encoder, self.post_layernorm = _encoder(sizes, causal=False), sizes.norm()

    def forward(self, pixels: Tensor) -> Tensor:
        parts = self.embeddings
        patches = parts.patch_embedding(pixels).flatten(2).transpose(1, 2)
        first = parts.class_embedding.expand(len(pixels), 1, -1)
        states = torch.cat([first, patches], dim=1) + parts.position_embedding.weight
        return self.post_layernorm(self.encoder(states)[:, 0])


class _Text(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: _Sizes) -> None:
        super().__init__()
        self.embeddings = nn.Module()
        self.embeddings.token_embedding = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.embeddings.position_embedding = nn.Embedding(sizes.max_position_embeddings, sizes.hidden_size)
        self.encoder, self.final_layer_norm = _encoder(sizes, causal=True), sizes.norm()

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.embeddings.position_embedding.weight[: ids.shape[1]]
        states = self.encoder(self.embeddings.token_embedding(ids) + positions)
        ends = ids.argmax(dim=-1)  # the token that ends a text has the highest number
        return self.final_layer_norm(states)[torch.arange(len(ids), device=ids.device), ends]


def _encoder(sizes: _Sizes, *, causal: bool) -> Module:
    layers = nn.Sequential(*(_Layer(sizes, causal=causal) for _ in range(sizes.num_hidden_layers)))
    return nn.Sequential(OrderedDict(layers=layers))


class _Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, sizes: _Sizes, *, causal: bool) -> None:
        super().__init__()
        width, inner = sizes.hidden_size, sizes.intermediate_size
        self._heads, self._after, self._causal = sizes.num_attention_heads, sizes.post_layernorm, causal
        self.self_attn = nn.Module()
        for part in ("q", "k", "v"):
            setattr(self.self_attn, f"{part}_proj", nn.Linear(width, width, bias=getattr(sizes, f"{part}_bias")))
        self.self_attn.out_proj = nn.Linear(width, width)
        activation = transformers.activations.ACT2FN[sizes.hidden_act]
        parts = OrderedDict(fc1=nn.Linear(width, inner), activation=activation, fc2=nn.Linear(inner, width))
        self.mlp = nn.Sequential(parts)
        self.layer_norm1, self.layer_norm2 = sizes.norm(), sizes.norm()

    def forward(self, states: Tensor) -> Tensor:
        if self._after:
            states = states + self.layer_norm1(self._attend(states))
            return states + self.layer_norm2(self.mlp(states))
        states = states + self._attend(self.layer_norm1(states))
        return states + self.mlp(self.layer_norm2(states))

    def _attend(self, states: Tensor) -> Tensor:
        parts = (getattr(self.self_attn, f"{part}_proj")(states) for part in ("q", "k", "v"))
        query, key, value = (part.unflatten(-1, (self._heads, -1)).transpose(1, 2) for part in parts)
        read = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self._causal)
        return self.self_attn.out_proj(read.transpose(1, 2).flatten(2))
