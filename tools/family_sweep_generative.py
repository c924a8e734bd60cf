"""The image-text-to-text architectures for `family_sweep.py`: each configuration is shrunk from its own defaults."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from family_sweep import PROMPTS, Case, Comparison, NotBuiltError, pictures, randomise, tokenizer_with
from transformers.models.auto import image_processing_auto, modeling_auto, processing_auto

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import Checkpoint, backend_of
from beholder.models.generative.loaded_model import refuse_unserved
from beholder.models.generative.model_types import Reuse
from beholder.models.generative.processor import PromptForm, build_processor
from beholder.models.load import load_model

TASK = "image-text-to-text"
READY = Path(os.environ.get("BEHOLDER_SHARED", Path(__file__).parents[2] / "shared")) / "tiny-models"
"""Tiny checkpoints of families that are hard to build, with plain logits of the same questions and pictures."""
WAYS = {
    Reuse.PREFIX: "tree of questions",
    Reuse.TRUNK: "kept beginning",
    Reuse.FEATURES: "image tower",
    Reuse.NOTHING: "nothing",
}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}IMAGE{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_TEMPLATE = {"blip", "blip-2", "florence2", "fuyu", "git", "instructblip", "kosmos-2", "paligemma"}
"""Families whose checkpoints bring no chat template."""
WIDTH, HEADS, LAYERS, SIDE, PATCH = 64, 4, 2, 32, 8
SHRUNK: Mapping[str, Any] = {
    **dict.fromkeys(["hidden_size", "d_model", "embed_dim", "n_embd", "width", "word_embed_proj_dim"], WIDTH),
    **dict.fromkeys(["out_hidden_size", "projection_dim", "encoder_hidden_size", "hidden_dim"], WIDTH),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"], 48),
    **dict.fromkeys(["moe_intermediate_size", "shared_expert_intermediate_size"], 16),
    **dict.fromkeys(
        ["num_hidden_layers", "depth", "num_layers", "n_layer", "encoder_layers", "decoder_layers"], LAYERS
    ),
    **dict.fromkeys(["num_attention_heads", "num_heads", "n_head", "encoder_attention_heads"], HEADS),
    **dict.fromkeys(["decoder_attention_heads"], HEADS),
    **dict.fromkeys(["num_key_value_heads", "num_global_key_value_heads"], 2),
    **dict.fromkeys(["head_dim", "d_kv", "global_head_dim", "v_head_dim"], WIDTH // HEADS),
    **dict.fromkeys(["num_experts", "num_local_experts", "n_routed_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "top_k_experts"], 2),
    **dict.fromkeys(["n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"], 1),
    **dict.fromkeys(["linear_key_head_dim", "linear_value_head_dim"], 16),
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_conv_kernel_dim": 2,
    "max_position_embeddings": 512,
    "image_size": SIDE,
    "patch_size": PATCH,
    "num_position_embeddings": 16,
    "window_size": 32,
    "fullatt_block_indexes": [1],
    "deepstack_visual_indexes": [0],
    "mrope_section": [2, 3, 3],
    "num_query_tokens": 4,
    "image_seq_length": 4,
    "sliding_window": 16,
    "query_pre_attn_scalar": 16,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "hidden_size_per_layer_input": 8,
    "num_kv_shared_layers": 0,
    "mm_tokens_per_image": 4,
    "insert_layer_id": 0,
}
IMAGES: Mapping[str, Any] = {
    "size": {"height": SIDE, "width": SIDE},
    "crop_size": {"height": SIDE, "width": SIDE},
    "patch_size": PATCH,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "image_seq_length": 4,
}
PROCESSORS = {
    "cosmos3_omni": "Qwen3VLProcessor",
    "kosmos-2": "Kosmos2Processor",
    "kosmos-2.5": "Kosmos2_5Processor",
    "qwen2_5_omni_thinker": "Qwen2_5OmniProcessor",
    "qwen3_omni_moe_thinker": "Qwen3OmniMoeProcessor",
    "glm_ocr": "Glm46VProcessor",
    "glmga": "Glm46VProcessor",
    "shieldgemma2": "ShieldGemma2Processor",
    "phi4_multimodal": "Phi4MultimodalProcessor",
    "fast_vlm": "LlavaProcessor",
}


def cases() -> list[Case]:
    """Every model type that transformers lists for the task, and those that Beholder also takes."""
    names = dict(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    names["phi4_multimodal"] = modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES["phi4_multimodal"]
    return [
        Case(TASK, name, architecture, partial(write, name, architecture), compare, extra_of(name))
        for name, architecture in sorted(names.items())
    ]


def extra_of(model_type: str) -> str:
    """`vision` where transformers reads the family's pictures with torchvision only."""
    backends = image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type)
    try:
        asked = [
            backend
            for name, some in vars(_processor_class(model_type)).items()
            if "backends" in name
            for backend in some
        ]
    except NotBuiltError:
        asked = []
    needed = (backends is not None and "pil" not in backends) or "torchvision" in asked
    return "vision" if needed or model_type in ("gemma3n", "fast_vlm", "fuyu") else ""


def write(model_type: str, architecture: str, folder: Path) -> None:
    """A tiny checkpoint and what its own forward pass says; a ready one where the defaults cannot be shrunk."""
    ready = READY / model_type
    try:
        build(model_type, architecture, folder)
    except ModelError:
        raise
    except Exception:
        if not (ready / "plain_logits.npy").is_file():
            raise
        shutil.copytree(ready, folder, dirs_exist_ok=True)
        (folder / "plain_logits.npy").rename(folder / "plain.npy")


def build(model_type: str, architecture: str, folder: Path) -> None:
    """From the defaults: tokenizer, image processor, chat template, random weights."""
    refuse_unserved({"model_type": model_type, "architectures": [architecture]}, folder)
    torch.manual_seed(0)
    settings = OVERRIDES.get(model_type, {})
    kind = _processor_class(model_type)
    image_processor = _image_processor(model_type, settings.get("images", {}))
    tokenizer = tokenizer_with({**_special_tokens(kind), **settings.get("special", {})})
    if adapt := settings.get("tokenizer"):
        tokenizer = adapt(tokenizer)
    told = {"processor_class": kind.__name__, **settings.get("processor", {})}
    mark = settings.get("image") or _picture_mark(kind, tokenizer, image_processor, told)
    if model_type not in NO_TEMPLATE:
        tokenizer.chat_template = CHATML.replace("IMAGE", mark)
    config = _config(model_type, tokenizer, settings)
    picture_token = settings.get("picture_token", mark)
    for name in ("image_token_id", "image_token_index"):
        if hasattr(config, name):
            setattr(config, name, int(tokenizer.convert_tokens_to_ids(picture_token)))
    model = randomise(getattr(transformers, architecture)(config), scale=settings.get("scale", 0.2))
    for part in (model, tokenizer, image_processor):
        part.save_pretrained(folder)
    for name, part in settings.get("parts", {}).items():
        tokenizer_with(part).save_pretrained(folder / name)
    (folder / "processor_config.json").write_text(json.dumps(told))
    np.save(folder / "plain.npy", _plain(folder, architecture))


def compare(folder: Path) -> Comparison:
    """All logits of some questions about two pictures, by Beholder and by the model's own forward pass."""
    scorer: Any = load_model(str(folder))
    shown = [scorer.prepare(picture) for picture in pictures()]
    far, plain = 0.0, np.load(folder / "plain.npy", allow_pickle=False)
    for part in scorer._sharing.first_tokens(shown, PROMPTS):
        theirs = plain[np.ix_(part.rows, part.indices)]
        far = max(far, float(np.abs(part.logits.float().numpy() - theirs).max()))
    alone = ", one picture at a time" if scorer._loaded.single else ""
    return Comparison(far, WAYS[scorer._sharing.reuse] + alone)


def _plain(folder: Path, architecture: str) -> Any:
    """Logits at the first answer position by the checkpoint's processor and model, one question at a time."""
    model = getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32).eval()
    processor = _own_processor(folder, model)
    form = PromptForm(processor, model.config.model_type)
    accepted = inspect.signature(model.forward).parameters

    def answer(picture: Any, prompt: str) -> Any:
        text = form.write(prompt)
        options = {"add_special_tokens": False} if form.opens_itself(text) else {}
        options |= {"return_mm_token_type_ids": True} if model.config.model_type == "cosmos3_edge" else {}
        inputs = processor(text=[text], images=[picture], return_tensors="pt", **options)
        told = {
            name: value.float() if torch.is_tensor(value) and value.is_floating_point() else value
            for name, value in inputs.items()
            if name in accepted
        }
        if model.config.get_text_config().is_encoder_decoder:
            start = model.generation_config.decoder_start_token_id
            told["decoder_input_ids"] = torch.tensor([[0 if start is None else start]])
        with torch.no_grad():
            return model(**told).logits[0, -1].float().numpy()

    return np.array([[answer(picture, prompt) for prompt in PROMPTS] for picture in pictures()])


def _own_processor(folder: Path, model: Any) -> Any:
    """The checkpoint's processor as transformers loads it, with PIL; Beholder's where that fails.

    It fails where a library for video or sound is missing, and on BLIP-2, whose image token it reads as a text.
    """
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend=backend_of(folder))
    try:
        processor = transformers.AutoProcessor.from_pretrained(folder)
        processor.image_processor = pixels
        if not hasattr(processor, "num_query_tokens"):
            return processor
    except Exception as error:
        print(f"{folder}: {error}", file=sys.stderr)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    try:
        return build_processor(folder, Checkpoint(model, pixels, tokenizer, []))
    except ModelError as error:
        raise NotBuiltError(str(error).replace(str(folder), "the folder")) from error


def _processor_class(model_type: str) -> Any:
    name = PROCESSORS.get(model_type) or processing_auto.PROCESSOR_MAPPING_NAMES.get(model_type)
    if name is None or not hasattr(transformers, name):
        raise NotBuiltError("transformers has no processor for it")
    return getattr(transformers, name)


def _image_processor(model_type: str, own: Mapping[str, Any]) -> Any:
    backends = image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type) or own.get("class")
    if backends is None:
        raise NotBuiltError("transformers names no image processor for it")
    name = backends if isinstance(backends, str) else backends.get("pil") or backends["torchvision"]
    kind = getattr(transformers, name)
    known = {key: value for key, value in IMAGES.items() if hasattr(kind, key)}
    size = getattr(kind, "size", None)
    if isinstance(size, dict) and "longest_edge" in size and "shortest_edge" in size:
        known["size"] = {"shortest_edge": 256, "longest_edge": 4096}
    elif isinstance(size, dict) and set(size) <= {"shortest_edge", "longest_edge"}:
        known["size"] = dict.fromkeys(size, SIDE)
    return kind(**{**known, **{key: value for key, value in own.items() if key != "class"}})


def _special_tokens(kind: Any) -> dict[str, str]:
    """What the processor's code spells in angle brackets, and the tokens that it takes from the tokenizer by name."""
    source = inspect.getsource(sys.modules[kind.__module__])
    spelled = re.findall(r"""["'](<[^<>\s"']{2,40}>|\[[A-Z_]{3,20}\])["']""", source)
    tokens = {
        f"s{number}": token for number, token in enumerate(dict.fromkeys([*spelled, "<|im_start|>", "<|im_end|>"]))
    }
    for name in dict.fromkeys(re.findall(r"tokenizer\.(\w+_token)\b", source)):
        if name not in ("pad_token", "bos_token", "eos_token", "unk_token", "cls_token", "sep_token", "mask_token"):
            tokens[name] = _default_token(source, name)
    return tokens


def _default_token(source: str, name: str) -> str:
    spelled = re.search(rf"""{name}\b[^"'\n]*["'](<[^"'\n]+>)["']""", source)
    return spelled[1] if spelled else f"<{name}>"


def _picture_mark(kind: Any, tokenizer: Any, image_processor: Any, told: Mapping[str, Any]) -> str:
    """The token that stands for a picture in the text, as the processor itself says."""
    given = {"tokenizer": tokenizer, "image_processor": image_processor}
    try:
        own = {name: value for name, value in told.items() if name in inspect.signature(kind).parameters}
        lenient = type(kind.__name__, (kind,), {"check_argument_for_proper_class": lambda *_: None})
        parts = {name: given.get(name, image_processor) for name in kind.get_attributes()}
        mark = lenient(**parts, **own).image_token
        return str(getattr(mark, "content", mark))
    except Exception:  # it needs more than that: then what its code spells
        return _default_token(inspect.getsource(sys.modules[kind.__module__]), "image_token")


def _config(model_type: str, tokenizer: Any, settings: Mapping[str, Any]) -> Any:
    kind = transformers.CONFIG_MAPPING[model_type]
    values = _shrink(kind(**settings.get("given", {})).to_dict(), tokenizer)
    own = settings.get("config", {})
    return kind(**_merged(values, own(tokenizer) if callable(own) else own))


def _shrink(values: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    small: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            continue
        if name in (
            "transformers_version",
            "architectures",
            "dtype",
            "_name_or_path",
            "id2label",
            "label2id",
            "per_layer_config",
        ):
            continue
        if isinstance(value, dict) and any(not isinstance(key, str) for key in value):
            small[name] = value
        elif isinstance(value, dict):
            small[name] = _shrink(value, tokenizer)
        elif name == "vocab_size":
            small[name] = len(tokenizer)
        elif name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
            small[name] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}.get(name, 0)
        elif name.endswith(("_token_id", "_token_index")) and isinstance(value, int):
            spelled = name.removesuffix("_id").removesuffix("_index")
            small[name] = _token(tokenizer, spelled)
        elif name in ("layer_types", "mlp_layer_types", "layers_block_type") and value:
            small[name] = _two_kinds(value)
        elif name in SHRUNK and value is not None:
            as_it_is = not isinstance(value, list) or isinstance(SHRUNK[name], list)
            small[name] = SHRUNK[name] if as_it_is else [SHRUNK[name]] * min(len(value), LAYERS)
        else:
            small[name] = value
    return small


def _two_kinds(kinds: list[str]) -> list[str]:
    """Two layers, of different kinds where there are some."""
    distinct = list(dict.fromkeys(kinds))
    return distinct[:2] if len(distinct) > 1 else [kinds[0]] * LAYERS


def _token(tokenizer: Any, name: str) -> int:
    spelled = getattr(tokenizer, name, None)
    candidates = [spelled] if isinstance(spelled, str) else [f"<|{name}|>", f"<{name}>", "<|im_end|>"]
    vocabulary = tokenizer.get_vocab()
    return next((vocabulary[token] for token in candidates if token in vocabulary), 3)


def _merged(values: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name, value in own.items():
        merged[name] = _merged(merged.get(name) or {}, value) if isinstance(value, dict) else value
    return merged


def of_pieces(tokenizer: Any) -> Any:
    """A tokenizer as SentencePiece's: special tokens are words like others, and every text begins with a blank."""
    from tokenizers import Tokenizer, models, normalizers

    words = [*tokenizer.all_special_tokens, "\u2581", "\n", *(chr(number) for number in range(33, 127))]
    likely = dict.fromkeys([*words, "Yes", "No", "yes", "no"], -1.0)
    backend = Tokenizer(models.Unigram(list(likely.items()), unk_id=words.index("<unk>")))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    ends = {"bos_token": "<s>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **ends)


MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
LLAVA = {"patch_size": PATCH, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"}
PINPOINTS = [[32, 64], [64, 32], [64, 64]]
PIXTRAL = {"patch_size": PATCH, "spatial_merge_size": 2}
TILED: dict[str, Any] = {
    "images": {"size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}},
    "processor": {"image_seq_len": 4},
    "config": {"scale_factor": 2},
    "special": {
        "global": "<global-img>",
        "fake": "<fake_token_around_image>",
        **{f"r{row}c{column}": f"<row_{row}_col_{column}>" for row in range(1, 4) for column in range(1, 4)},
    },
}
MINIMAX = ("image", "video", "start of image", "end of image")
QWEN_IMAGES = {"class": "Qwen2VLImageProcessorPil"}
SAM = {
    **{"hidden_size": 32, "output_channels": 16, "downsample_channels": [32, WIDTH], "mlp_dim": 48},
    **{"global_attn_indexes": [1], "window_size": 2},
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "aya_vision": {
        "picture_token": "<|IMG_PATCH|>",
        "processor": {"patch_size": PATCH, "img_size": SIDE, "downsample_factor": 2},
    },
    "cohere2_vision": {"images": {"patch_size": 2}},
    "cosmos3_edge": {"images": {"temporal_patch_size": 1}},
    "deepseek_ocr2": {  # 144 queries a picture, as if each were 48 pixels wide and cut into patches of one
        "config": {
            "vision_config": {
                "sam_config": {**SAM, "image_size": 48, "patch_size": 4},
                "encoder_config": {"layer_types": ["full_attention"] * LAYERS},
            },
            "text_config": {
                "mlp_layer_types": ["dense", "sparse"],
                "num_experts_per_tok": 2,
                "max_position_embeddings": 2048,
            },
        },
        "images": {"tile_size": 48, "size": {"height": 48, "width": 48}},
        "processor": {"patch_size": 1},
    },
    "deepseek_vl": {"processor": {"num_image_tokens": 16}, "images": {"min_size": 8}},
    "blip-2": {"processor": {"num_query_tokens": 4}},
    "emu3": {
        "special": {
            **{f"visual{number}": f"<|visual token {number:06d}|>" for number in range(16)},
            **{"eol": "<|extra_200|>", "image_token": "<image>"},
        },
        "config": lambda tokenizer: {
            "vocabulary_map": tokenizer.get_vocab(),
            "vq_config": {
                "base_channels": 32,
                "channel_multiplier": [1, 1, 1, 1],
                "codebook_size": 16,
                "hidden_size": 32,
            },
        },
        "given": {"vocabulary_map": {}},
        "images": {"min_pixels": 1024, "max_pixels": 4096},
    },
    "fuyu": {
        "special": {name: name for name in ("|SPEAKER|", "|NEWLINE|", "<0x04>", "<s>")},
        "tokenizer": of_pieces,
        "image": "|SPEAKER|",
    },
    "gemma3": {"image": "<boi_token>", "picture_token": "<image_token>", "processor": {"image_seq_length": 4}},
    "gemma4": {"special": {"audio_token": "<|audio|>"}},
    "gemma4_unified": {
        "special": {"boa_token": "<|audio>", "eoa_token": "<audio|>", "audio_token": "<|audio|>"},
        "config": {
            "vision_config": {
                **{"patch_size": PATCH, "pooling_kernel_size": 2, "mm_embed_dim": WIDTH, "output_proj_dims": WIDTH}
            }
        },
        "images": {"pooling_kernel_size": 2},
    },
    "glm46v": {"config": {"text_config": {"rope_parameters": MROPE}}},
    "glm4v": {"config": {"text_config": {"rope_parameters": MROPE}}},
    "glm4v_moe": {
        "config": {"text_config": {"rope_parameters": {**MROPE, "mrope_section": [1, 1, 2]}}},
        "images": {"class": "Glm4vImageProcessorPil"},
    },
    "glm_ocr": {"config": {"text_config": {"rope_parameters": MROPE}}, "images": {"class": "Glm46VImageProcessorPil"}},
    "glmga": {"config": {"text_config": {"rope_parameters": MROPE}}},
    "hunyuan_vl": {
        "special": {"image_token": "<img>", "image_start_token": "<im_start>", "image_end_token": "<im_end>"},
        "image": "<im_start><img><im_end>",
        "images": {"temporal_patch_size": 1},
        "picture_token": "<img>",
        "config": {"text_config": {"head_dim": 16, "rope_parameters": {**MROPE, "mrope_section": [2, 2, 2, 2]}}},
    },
    "idefics3": TILED,
    "internvl": {"processor": {"image_seq_length": 4}},
    "janus": {"processor": {"num_image_tokens": 16}, "images": {"min_size": 8}},
    "kosmos-2.5": {  # its processor hands over 4,096 patches, whatever the picture: some minutes
        "config": {
            "vision_config": {
                "patch_embed_hidden_size": 3 * PATCH**2,
                "num_hidden_layers": 1,
                "num_attention_heads": 1,
                "head_dim": 8,
            },
            "latent_query_num": 4,
            "text_config": {"layers": LAYERS, "attention_heads": HEADS},
        },
        "processor": {"num_image_tokens": 4},
        "image": "",
    },
    "lfm2_vl": {
        "images": {"encoder_patch_size": PATCH, "tile_size": SIDE, "min_image_tokens": 4, "max_image_tokens": 16},
        "config": {"text_config": {"layer_types": ["conv", "full_attention"]}},
    },
    "lighton_ocr": {"processor": PIXTRAL},
    "llama4": {
        "config": {
            "vision_config": {
                "intermediate_size": 4 * WIDTH,
                "projector_input_dim": WIDTH,
                "projector_output_dim": WIDTH,
                "vision_output_dim": WIDTH,
            }
        }
    },
    "llava": {"processor": LLAVA},
    "llava_next_video": {
        "processor": LLAVA,
        "config": {"image_grid_pinpoints": PINPOINTS},
        "images": {"image_grid_pinpoints": PINPOINTS},
    },
    "minimax_m3_vl": {
        "config": {
            "text_config": {
                "layer_types": ["full_attention", "minimax_m3_sparse"],
                **{"index_head_dim": 16, "index_n_heads": 2, "index_block_size": 8, "index_topk_blocks": 2},
            }
        },
        "special": {f"mark{number}": f"]<]{name}[>[" for number, name in enumerate(MINIMAX)},
        "image": "]<]image[>[",
    },
    "mistral3": {"processor": PIXTRAL},
    "mistral_large4": {
        "processor": PIXTRAL,
        "config": {
            "text_config": {
                "num_key_value_heads": HEADS,
                "kv_source_layers": [0, 1],
                "index_topk": 16,
                "index_head_dim": 16,
                "index_n_heads": 2,
            }
        },
    },
    "molmo2": {
        "config": {
            "vision_config": {"image_size": [SIDE, SIDE]},
            "adapter_config": {"vision_feature_layer": [0, 1], "text_hidden_size": WIDTH},
        },
        "images": {"overlap_margins": [1, 1]},
        "picture_token": "<im_patch>",
    },
    "nemotron_h_omni": {
        "config": {
            "vision_hidden_size": WIDTH,
            "projector_hidden_size": WIDTH,
            "text_config": {"layer_types": ["linear_attention", "full_attention"]},
        },
        "images": {"min_num_patches": 4, "max_num_patches": 64},
    },
    "ovis2": {"picture_token": "<IMG_ATOM>", "processor": {"image_seq_length": 16}},
    "perception_lm": {"processor": {"patch_size": PATCH}},
    "pp_chart2table": {"special": {"image_token": "<imgpad>"}, "image": "<imgpad>"},
    "qianfan_ocr": {
        "processor": {"image_seq_length": 4},
        "special": {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"},
        "image": "<image>",
        "picture_token": "<IMG_CONTEXT>",
    },
    "smolvlm": {**TILED, "image": "<image>", "special": {**TILED["special"], "image_token": "<image>"}},
    "inkling_mm_model": {
        "config": {
            "text_config": {
                **{
                    "swa_num_attention_heads": HEADS,
                    "swa_num_key_value_heads": 2,
                    "swa_head_dim": 16,
                    "rel_extent": 64,
                },
                **{"logits_mup_width_multiplier": 1.0, "sliding_window_size": 16},
                **{"layer_types": ["hybrid_sliding", "hybrid"], "n_shared_experts": 1},
            },
            "audio_config": {"n_mel_bins": 4, "mel_vocab_size": 16, "text_hidden_size": WIDTH},
            "vision_config": {"n_layers": 4, "patch_size": 40, "text_hidden_size": WIDTH},
        },
        "images": {"size": {"height": 40, "width": 40}},
    },
    "instructblip": {"processor": {"num_query_tokens": 4}, "parts": {"qformer_tokenizer": {}}},
    "llava_next": {
        "processor": LLAVA,
        "config": {"image_grid_pinpoints": PINPOINTS},
        "images": {"image_grid_pinpoints": PINPOINTS},
    },
    "llava_onevision": {
        "processor": {"num_image_tokens": 16, "vision_feature_select_strategy": "full"},
        "config": {"image_grid_pinpoints": PINPOINTS},
        "images": {"image_grid_pinpoints": PINPOINTS},
    },
    "step3p7": {  # patches so wide that a picture is cut as often as by the true model
        "images": {"vision_patch_size": 63, "size": {"height": 756, "width": 756}, "patch_size": 504},
        "config": {
            "vision_config": {"image_size": 756, "patch_size": 63, "max_position_embeddings": 144},
            "text_config": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
        },
    },
    "unlimited_ocr": {
        "config": {"vision_config": {"sam_config": {**SAM, "image_size": 2 * SIDE}}},
        "images": {"size": {"height": 2 * SIDE, "width": 2 * SIDE}, "tile_size": SIDE},
        "processor": {"patch_size": PATCH},
    },
    "video_llava": {
        "images": {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}},
        "processor": LLAVA,
        "config": {"image_seq_length": 17},
    },
    "paddleocr_vl": {"images": {"temporal_patch_size": 1}, "config": {"text_config": {"rope_parameters": MROPE}}},
    "video_llama_3": {"images": {"temporal_patch_size": 1}},
    "kimi_k25": {
        "images": {"size": {"max_height": 64, "max_width": 64}},
        "config": {"projection_hidden_size": WIDTH, "text_config": {"head_dim": 8}},
    },
    "vipllava": {"processor": LLAVA, "config": {"vision_feature_layers": [-1, -2]}},
    "mllama": {
        "config": {
            "text_config": {"cross_attention_layers": [1]},
            "vision_config": {
                "intermediate_layers_indices": [0, 1],
                "num_global_layers": 1,
                "vision_output_dim": 3 * WIDTH,
                "attention_heads": HEADS,
            },
        }
    },
    "paligemma": {
        "images": {"image_seq_length": 16},
        "config": {"projection_dim": WIDTH},
        "special": {"image_token": "<image>"},
        "image": "<image>",
    },
    "qwen2_5_omni_thinker": {"images": QWEN_IMAGES, "config": {"text_config": {"rope_parameters": MROPE}}},
    "qwen2_5_vl": {"config": {"text_config": {"rope_parameters": MROPE}}},
    "qwen2_vl": {"config": {"text_config": {"rope_parameters": MROPE}, "vision_config": {"hidden_size": WIDTH}}},
    "qwen3_omni_moe_thinker": {
        "images": QWEN_IMAGES,
        "special": {
            "vision_start_token": "<|vision_start|>",
            "vision_bos_token": "<|vision_start|>",
            "vision_eos_token": "<|vision_end|>",
            "image_token": "<|image_pad|>",
            "audio_token": "<|audio_pad|>",
            "audio_start_token": "<|audio_start|>",
            "video_token": "<|video_pad|>",
        },
        "image": "<|vision_start|><|image_pad|><|vision_end|>",
        "picture_token": "<|image_pad|>",
        "given": {"vision_start_token_id": 1},
        "config": {"text_config": {"rope_parameters": MROPE}},
    },
    "qwen3_vl_moe": {"images": QWEN_IMAGES},
}
"""What a family needs beside the common shrinking: `config`, `images`, `special`, `image`, `processor`, `parts`."""
