"""ALBEF, read from its published checkpoint: a folder with the weights, BERT's vocabulary and a small config.json.

`{"model_type": "albef"}` is enough for the checkpoints of ALBEF's own repository; `AlbefConfig` lists the other
settings, and docs/matching.md says how to make the folder. Texts are processed as in the code that trained the
checkpoint (`"code"`): that code's cleaning of captions, and its closing token or none.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from beholder.core.errors import ModelError, UnknownName
from beholder.models.checkpoint.checkpoint import image_settings, read_weights, take_weights
from beholder.models.checkpoint.files import ConfigFile, Origin, find_files, read_config
from beholder.models.matching import BlipMatcher, MatchingScorer, TextReading, Texts, unit
from beholder.models.spec import Config, LoadOptions, ModelSpec, Tensor
from beholder.models.torch_scorer import as_model_error, memory_errors, resolve_device, torch, transformers

CHECKPOINTS = ("*.pth", "*.pt", "pytorch_model.bin")


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> MatchingScorer:
    """Load an ALBEF folder; `origin` says where it came from if that is not the folder itself."""
    device, precision = resolve_device(options.device), options.resolved_precision
    config = parse_config(read_config(folder), folder)
    files = find_files(folder, allow_pickle=options.allow_pickle, pickled_names=CHECKPOINTS, image_processor=False)
    if len(files.weights) != 1:
        names = ", ".join(path.name for path in files.weights)
        raise ModelError(f"{folder} holds several checkpoints ({names}); leave the one to be audited.")
    with as_model_error(folder):
        model = build(read_weights(files), config, folder=folder)
        reading = reading_of(folder, config)
        with memory_errors():
            model = model.to(device, getattr(torch, precision)).eval().requires_grad_(False)
    size = model.visual_encoder.config.image_size
    processor = transformers.BlipImageProcessorPil(size={"height": size, "width": size})
    dialect = {"cleaning": config.code, "template": DIALECTS[config.code][1]}
    settings = {
        "model_type": "albef",
        "architecture": asdict(config),
        "image_processor": image_settings(processor),
        "text": reading.settings | dialect,
        "itc_logit_scale": 1.0 / float(model.temp),
    }
    spec = ModelSpec(name, "matching", *(origin or files.origin), precision, settings)
    return MatchingScorer(AlbefMatcher(model), processor, reading, spec, options).proved(folder)


@dataclass(frozen=True)
class AlbefConfig:
    """The published sizes; a `config.json` says what is otherwise."""

    image_size: int | None = None  # side of the square picture in pixels; none: as the checkpoint's position table
    code: str = "albef"  # whose code trained the checkpoint, `albef` or `lavis`: they read texts differently
    max_text_length: int = 30
    patch_size: int = 16
    vision_width: int = 768
    vision_layers: int = 12
    vision_heads: int = 12
    text_width: int = 768
    text_layers: int = 12
    fusion_layer: int = 6  # the first text layer that attends to the picture
    text_heads: int = 12
    text_positions: int = 512
    vocab_size: int = 30522
    embed_dim: int = 256


class AlbefModel(torch.nn.Module):  # type: ignore[misc]
    """Two towers, their contrastive projections, and the fusion layers with the matching head."""

    def __init__(self, config: AlbefConfig, *, image_size: int) -> None:
        super().__init__()
        nn, blip = torch.nn, transformers.models.blip.modeling_blip_text
        shape = {"image_size": image_size, "patch_size": config.patch_size, "layer_norm_eps": 1e-6}
        vision = transformers.BlipVisionConfig(**_sizes(config, "vision"), **shape, attention_dropout=0.0)
        self.visual_encoder = transformers.BlipVisionModel(vision)
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
        self.fusion_layer = config.fusion_layer

    def text_states(self, ids: Tensor) -> Tensor:
        """`[n, tokens, width]` of texts of one length, before any picture is seen."""
        states = self.embeddings(input_ids=ids)
        for layer in self.layer[: self.fusion_layer]:
            states = layer(states)
        return states


def _sizes(config: AlbefConfig, tower: str) -> dict[str, int | str]:
    width, layers, heads = (getattr(config, f"{tower}_{size}") for size in ("width", "layers", "heads"))
    common = {"hidden_size": width, "intermediate_size": 4 * width, "hidden_act": "gelu"}
    return {**common, "num_hidden_layers": layers, "num_attention_heads": heads}


def _text_config(config: AlbefConfig, *, is_decoder: bool = False) -> Config:
    return transformers.BlipTextConfig(
        **_sizes(config, "text"),
        **dict.fromkeys(["pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id"], 0),
        vocab_size=config.vocab_size,
        encoder_hidden_size=config.vision_width,
        max_position_embeddings=config.text_positions,
        layer_norm_eps=1e-12,
        is_decoder=is_decoder,  # which is what gives a layer of BLIP its cross-attention
    )


class AlbefMatcher(BlipMatcher):
    """The parts of ALBEF in the order a score needs them; texts meet pictures as in BLIP."""

    def __init__(self, model: AlbefModel) -> None:
        super().__init__(model, model.layer[model.fusion_layer :], model.visual_encoder)

    def texts(self, ids: Tensor) -> Texts:
        """The text layers' states, on to where the fusion reads the picture, and the first one projected."""
        states = self._model.text_states(ids)
        begun = self._words[0].read_words(states[None])[0]
        return Texts(begun, unit(self._model.text_proj(states[:, 0])))

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """One pair through BLIP's own layers, nothing shared or kept."""
        pictures, states = self.pictures(pixels), self._model.text_states(ids)
        cosine = pictures.vectors[:, 0] @ unit(self._model.text_proj(states[:, 0])).T
        for layer in self._layers:
            states = layer(states, pictures.states)
        return self._model.itm_head(states[:, 0]), cosine


# ALBEF's published checkpoints

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


def build(weights: Weights, config: AlbefConfig, *, folder: Path) -> AlbefModel:
    """The model with the weights that make a score; what is missing, left over or of another shape is an error."""
    ours = {}
    for name, value in weights.items():
        if not ASIDE.search(name):
            for pattern, replacement in RENAMED:
                name = re.sub(pattern, replacement, name)
            ours[name] = value
    types = ours.pop(TOKEN_TYPES, None)
    # ALBEF adds the vector of token type 0 to every word's; LAVIS has none, and passes over them in a file.
    if config.code != "lavis" and WORDS in ours:
        if types is None:
            raise ModelError(
                f"The weights in {folder} have no token_type_embeddings, which ALBEF's own code trains.\n"
                'A checkpoint of LAVIS is read as such with "code": "lavis" in config.json.'
            )
        ours[WORDS] = ours[WORDS] + types[0]
    if POSITIONS not in ours:
        raise ModelError(f"The weights in {folder} have no visual_encoder.pos_embed: this is no ALBEF checkpoint.")
    size = config.image_size or math.isqrt(ours[POSITIONS].shape[1] - 1) * config.patch_size
    ours[POSITIONS] = resized_positions(ours[POSITIONS], side=size // config.patch_size)
    model = AlbefModel(config, image_size=size)
    take_weights(model, ours, folder)
    return model


def resized_positions(table: Tensor, *, side: int) -> Tensor:
    """The picture's position table `[1, 1 + patches, width]` for `side` patches each way, bicubic as published."""
    old = math.isqrt(table.shape[1] - 1)
    if old == side:
        return table
    grid = table[:, 1:].float().reshape(1, old, old, -1).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)
    return torch.cat([table[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2).to(table.dtype)], dim=1)


def parse_config(values: ConfigFile, folder: Path) -> AlbefConfig:
    """The config.json as a value; a key or a kind of value that is not known is an error."""
    kinds = {field.name: str if field.name == "code" else int for field in fields(AlbefConfig)}
    given = {key: value for key, value in values.items() if key not in ("model_type", "architectures")}
    for key, value in given.items():
        if key not in kinds:
            raise UnknownName("ALBEF setting", key, kinds, where=f"{folder}/config.json")
        if type(value) is not kinds[key]:
            raise ModelError(f"{folder}/config.json: '{key}' must be of type {kinds[key].__name__}, not {value!r}.")
    config = AlbefConfig(**given)
    if config.code not in DIALECTS:
        raise UnknownName("code that trains ALBEF", config.code, DIALECTS)
    return config


def albef_caption(text: str) -> str:
    """A caption as ALBEF's own code cleans it."""
    text = re.sub(r"[,.'!?\"()*#:;~]", "", text.lower())
    text = text.replace("-", " ").replace("/", " ").replace("<person>", "person")
    return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")


def lavis_caption(text: str) -> str:
    """A caption as LAVIS cleans it."""
    text = re.sub(r"[.!\"()*#:;~]", " ", text.lower())
    return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")


# How a code base cleans and closes captions: ALBEF's own copy of BERT's tokenizer closes a caption with nothing. Both
# also cut at a number of words, but tokens run out first.
DIALECTS = {"albef": (albef_caption, "[CLS] $A"), "lavis": (lavis_caption, "[CLS] $A [SEP]")}


def reading_of(folder: Path, config: AlbefConfig) -> TextReading:
    """BERT's tokenizer from the folder, cleaning and closing captions as the checkpoint was trained."""
    from tokenizers.processors import TemplateProcessing

    tokenizer = transformers.BertTokenizer.from_pretrained(folder, local_files_only=True)
    if len(tokenizer) != config.vocab_size:
        raise ModelError(
            f"The tokenizer in {folder} knows {len(tokenizer)} tokens, the model {config.vocab_size}.\n"
            "ALBEF reads texts with the vocabulary of bert-base-uncased: vocab.txt or tokenizer.json."
        )
    clean, template = DIALECTS[config.code]
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(template, special_tokens=special)
    return TextReading(tokenizer, min(config.max_text_length, config.text_positions), clean)
