"""EVA-CLIP as published for transformers (`EvaCLIPModel`): BAAI/EVA-CLIP-8B and its kin, without their own code.

The weights keep their published names. Which projections have a bias, where a layer normalises, and by what, is read
from config.json. The repositories bring no image processor: pictures are prepared with CLIP's, as they say.
"""

from pathlib import Path
from types import MethodType

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import Checkpoint, read_weights, take_weights
from beholder.models.checkpoint.files import CheckpointFiles, ConfigFile, read_config
from beholder.models.contrastive.two_towers import TransformersContrastive
from beholder.models.spec import LoadOptions, Module, Tensor
from beholder.models.torch_scorer import as_model_error, memory_errors, resolve_device, torch, transformers

nn = torch.nn
NOT_BUILT = ("use_sub_ln", "use_swiglu_mlp", "use_rope", "rope")  # options of EVA-02, not computed here


class EvaClipScorer(TransformersContrastive):
    """Cosine similarity by CLIP's own class, changed to what EVA-CLIP computes."""

    adapter, brings_processor = "evaclip", False

    @classmethod
    def _load(cls, files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
        device, precision = resolve_device(options.device), options.resolved_precision
        folder, config = files.folder, read_config(files.folder)
        with as_model_error(folder), memory_errors():
            model = EvaClip(config, folder)
            given = {name: value for name, value in read_weights(files).items() if not name.endswith("position_ids")}
            take_weights(model, given, folder)  # what is missing, left over or of another shape is an error
            model = model.to(device, getattr(torch, precision)).eval().requires_grad_(False)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        side = config["vision_config"]["image_size"]
        square = {"height": side, "width": side}
        processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size=square)
        return Checkpoint(model, processor, tokenizer, [])


class EvaClip(transformers.CLIPModel):  # type: ignore[misc]
    """CLIP's two towers with the published differences: biases, norms, and where a layer normalises."""

    def __init__(self, config: ConfigFile, folder: Path) -> None:
        vision, text = (_settings(config[f"{side}_config"], folder) for side in ("vision", "text"))
        # For CLIP's class a 2 says that the token that ends a text has the highest number.
        text |= {"bos_token_id": 0, "eos_token_id": 2}
        sizes = {name: config[name] for name in ("projection_dim", "logit_scale_init_value")}
        super().__init__(transformers.CLIPConfig(vision_config=vision, text_config=text, **sizes))
        self.vision_model.pre_layrnorm = nn.Identity()
        width, patch = vision["hidden_size"], vision["patch_size"]
        self.vision_model.embeddings.patch_embedding = nn.Conv2d(3, width, patch, stride=patch)
        self.visual_projection = nn.Linear(width, config["projection_dim"])
        for tower, last, values in (
            (self.vision_model, "post_layernorm", vision),
            (self.text_model, "final_layer_norm", text),
        ):
            width, kind = values["hidden_size"], nn.RMSNorm if values["use_rms_norm"] else nn.LayerNorm
            setattr(tower, last, kind(width, eps=values["layer_norm_eps"]))
            for layer in tower.encoder.layers:
                layer.layer_norm1, layer.layer_norm2 = (kind(width, eps=values["layer_norm_eps"]) for _ in range(2))
                for part in "qkv":
                    setattr(layer.self_attn, f"{part}_proj", nn.Linear(width, width, bias=values[f"{part}_bias"]))
                if values["post_layernorm"]:
                    layer.forward = MethodType(_normalise_after, layer)


def _normalise_after(layer: Module, states: Tensor, attention_mask: Tensor | None, **options: object) -> Tensor:
    attended, _ = layer.self_attn(hidden_states=states, attention_mask=attention_mask, **options)
    states = states + layer.layer_norm1(attended)
    return states + layer.layer_norm2(layer.mlp(states))


def _settings(values: ConfigFile, folder: Path) -> ConfigFile:
    """The settings of one tower; what its config.json leaves out is as its authors' class has it."""
    if used := [name for name in NOT_BUILT if values.get(name)]:
        raise ModelError(f"{folder} is an EVA-CLIP with {', '.join(used)}, which Beholder does not compute.")
    usual = {"q_bias": True, "k_bias": True, "v_bias": True, "post_layernorm": False, "use_rms_norm": False}
    given = {name: value for name, value in values.items() if value is not None}
    return {**usual, "layer_norm_eps": 1e-5, "hidden_act": "gelu", **given}
