"""Tiny random generative models of the true architectures, and what a plain forward pass says of one question.

The plain way writes the prompt by hand, puts the picture's placeholders in by hand, tokenises, and reads the last
row of logits: nothing of the adapter's, nor of the processors that the adapter uses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from beholder.models.load import load_model

SENTENCES = [
    "Yes Yes Yes No No No yes yes no no YES NO true true false false",
    "Is the person in the image a woman? Is the person in the image a man?",
    "a photo of a doctor, a nurse, a smiling person, the politician and the actress",
    *["true", "false", "Yes", "No"],
    "Question: Answer: user assistant USER ASSISTANT model\n User: Assistant:\n",
] * 3
TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**TOWER, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512}
VISION = {**TOWER, "image_size": 32, "patch_size": 8}
PINPOINTS = [[32, 64], [64, 32], [64, 64]]
QWEN_MARKS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}IMAGE{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ANSWERS = ("yes", "no")


@dataclass(frozen=True)
class Family:
    """One architecture: how a folder of it is made, and how it is asked without the adapter."""

    special: Mapping[str, str]
    """Special tokens by the name that the processor looks for."""
    model: Callable[[Any], Any]
    """The random model, given the tokenizer."""
    image_processor: Any
    processor: Mapping[str, Any]
    written: Callable[[str], str]
    """The text of a question, with IMAGE where the picture stands."""
    placeholders: Callable[[Any, Any], str]
    """What stands in IMAGE's place, given the picture's features and the model."""
    inputs: Callable[[Any, torch.Tensor], dict[str, Any]] = lambda features, picture: {
        "pixel_values": features["pixel_values"]
    }
    """What the model is told beside the text, given the picture's features and where it stands in the text."""
    template: str | None = None
    image_options: Mapping[str, Any] = field(default_factory=dict)


def tokenizer_with(special: Mapping[str, str]) -> Any:
    """A byte-level BPE, learnt from a few sentences, with a family's special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<pad>", "<bos>", "<eos>"],
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    named = {name: token for name, token in special.items() if name.endswith("_token")}
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", extra_special_tokens=named
    )
    fast.add_special_tokens({"additional_special_tokens": list(special.values())})
    return fast


def number(tokenizer: Any, token: str) -> int:
    return int(tokenizer.convert_tokens_to_ids(token))


def ends(tokenizer: Any) -> dict[str, int]:
    return {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": len(tokenizer)}


def llava(tokenizer: Any) -> Any:
    config = transformers.LlavaConfig(
        vision_config={"model_type": "clip_vision_model", **VISION},
        text_config={"model_type": "llama", **TEXT, **ends(tokenizer)},
        image_token_index=number(tokenizer, "<image>"),
        image_seq_length=16,
    )
    return transformers.LlavaForConditionalGeneration(config)


def llava_next(tokenizer: Any) -> Any:
    config = transformers.LlavaNextConfig(
        vision_config={"model_type": "clip_vision_model", **VISION},
        text_config={"model_type": "llama", **TEXT, **ends(tokenizer)},
        image_token_index=number(tokenizer, "<image>"),
        image_grid_pinpoints=PINPOINTS,
    )
    return transformers.LlavaNextForConditionalGeneration(config)


def llava_onevision(tokenizer: Any) -> Any:
    config = transformers.LlavaOnevisionConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config={"model_type": "qwen2", **TEXT, **ends(tokenizer)},
        image_grid_pinpoints=PINPOINTS,
        image_token_index=number(tokenizer, "<image>"),
        video_token_index=number(tokenizer, "<|im_end|>"),
    )
    return transformers.LlavaOnevisionForConditionalGeneration(config)


def qwen(kind: str, **vision: Any) -> Callable[[Any], Any]:
    """A model of the Qwen-VL line; its generations differ in the image tower."""
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    tower = {"depth": 2, "num_heads": 2, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2}

    def model(tokenizer: Any) -> Any:
        text = {**TEXT, **ends(tokenizer), "rope_parameters": rope}
        marks = {name: number(tokenizer, token) for name, token in QWEN_MARKS.items()}
        config = getattr(transformers, f"{kind}Config")(vision_config={**tower, **vision}, text_config=text, **marks)
        return getattr(transformers, f"{kind}ForConditionalGeneration")(config)

    return model


def gemma(tokenizer: Any) -> Any:
    text = {**TEXT, **ends(tokenizer), "num_hidden_layers": 3, "sliding_window": 16, "query_pre_attn_scalar": 8}
    text["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"]
    config = transformers.Gemma3Config(
        vision_config={"model_type": "siglip_vision_model", **VISION},
        text_config=text,
        mm_tokens_per_image=4,
        boi_token_index=number(tokenizer, "<boi>"),
        eoi_token_index=number(tokenizer, "<eoi>"),
        image_token_index=number(tokenizer, "<image_soft>"),
    )
    return transformers.Gemma3ForConditionalGeneration(config)


def paligemma(tokenizer: Any) -> Any:
    text = {"model_type": "gemma2", **TEXT, **ends(tokenizer), "sliding_window": 16, "query_pre_attn_scalar": 8}
    config = transformers.PaliGemmaConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "projection_dim": 32, "vision_use_head": False},
        text_config=text,
        image_token_index=number(tokenizer, "<image>"),
        projection_dim=32,
        hidden_size=32,
        vocab_size=len(tokenizer),
    )
    return transformers.PaliGemmaForConditionalGeneration(config)


OPT = {
    "model_type": "opt",
    "hidden_size": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "word_embed_proj_dim": 32,
}
T5 = {
    "model_type": "t5",
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}


def blip2(text: Mapping[str, Any]) -> Callable[[Any], Any]:
    """BLIP-2 around one language model or another."""
    qformer = {**TOWER, "encoder_hidden_size": 32, "vocab_size": 50}

    def model(tokenizer: Any) -> Any:
        config = transformers.Blip2Config(
            vision_config=VISION,
            qformer_config=qformer,
            text_config={**text, **ends(tokenizer)},
            num_query_tokens=4,
            image_token_index=number(tokenizer, "<image>"),
        )
        return transformers.Blip2ForConditionalGeneration(config)

    return model


def idefics(kind: str) -> Callable[[Any], Any]:
    """Idefics3, or SmolVLM, which came of it."""

    def model(tokenizer: Any) -> Any:
        config = getattr(transformers, f"{kind}Config")(
            vision_config=VISION,
            text_config={"model_type": "llama", **TEXT, **ends(tokenizer)},
            scale_factor=2,
            image_token_id=number(tokenizer, "<image>"),
            pad_token_id=0,
        )
        return getattr(transformers, f"{kind}ForConditionalGeneration")(config)

    return model


def internvl(tokenizer: Any) -> Any:
    vision = {**TOWER, "image_size": [32, 32], "patch_size": [8, 8]}
    text = {"model_type": "qwen2", **TEXT, **ends(tokenizer)}
    config = transformers.InternVLConfig(
        vision_config=vision,
        text_config=text,
        image_token_id=number(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=4,
        downsample_ratio=0.5,
    )
    return transformers.InternVLForConditionalGeneration(config)


def tiles(features: Any, begin: str) -> str:
    """SmolVLM's way of writing down a picture and its tiles; four tokens each."""
    rows, columns = features["rows"][0][0], features["cols"][0][0]
    whole = f"{begin}<global-img>{'<image>' * 4}{begin}"
    lines = [
        "".join(f"{begin}<row_{row + 1}_col_{column + 1}>{'<image>' * 4}" for column in range(columns)) + "\n"
        for row in range(rows)
    ]
    return "".join(lines) + ("\n" if rows else "") + whole


def chatml(prompt: str) -> str:
    return f"<|im_start|>user\nIMAGE{prompt}<|im_end|>\n<|im_start|>assistant\n"


def as_many_as_the_model_sees(features: Any, model: Any) -> str:
    """For the LLaVAs that cut a picture into tiles: what of the tiles is border is left out by a rule of its own."""
    seen = model.get_image_features(features["pixel_values"], image_sizes=features["image_sizes"])
    return "<image>" * sum(len(part) for part in getattr(seen, "pooler_output", seen))


def git(tokenizer: Any) -> Any:
    vision = {"model_type": "git_vision_model", **VISION}
    config = transformers.GitConfig(vision_config=vision, **TOWER, max_position_embeddings=128, **ends(tokenizer))
    return transformers.GitForCausalLM(config)


def tiled(features: Any, picture: torch.Tensor) -> dict[str, Any]:
    return {"pixel_values": features["pixel_values"], "image_sizes": features["image_sizes"]}


CHAT = {"im_start": "<|im_start|>", "im_end": "<|im_end|>"}
SQUARE = {"size": {"height": 32, "width": 32}}
BEGIN = "<fake_token_around_image>"

FAMILIES: dict[str, Callable[[], Family]] = {
    "llava": lambda: Family(
        special={**CHAT, "image_token": "<image>"},
        model=llava,
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        ),
        processor={
            "processor_class": "LlavaProcessor",
            "patch_size": 8,
            "num_additional_image_tokens": 1,
            "vision_feature_select_strategy": "default",
        },
        template=CHATML.replace("IMAGE", "<image>"),
        written=chatml,
        placeholders=lambda features, model: "<image>" * 16,
    ),
    "qwen2_5_vl": lambda: Family(
        special={
            **CHAT,
            "vision_start": "<|vision_start|>",
            "image_token": "<|image_pad|>",
            "vision_end": "<|vision_end|>",
            "video_token": "<|video_pad|>",
        },
        model=qwen(
            "Qwen2_5_VL",
            hidden_size=32,
            out_hidden_size=32,
            intermediate_size=48,
            window_size=32,
            fullatt_block_indexes=[1],
        ),
        image_processor=transformers.Qwen2VLImageProcessorPil(
            patch_size=8, merge_size=2, temporal_patch_size=2, size={"shortest_edge": 256, "longest_edge": 4096}
        ),
        processor={"processor_class": "Qwen2_5_VLProcessor"},
        template=CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
        written=chatml,
        placeholders=lambda features, model: (
            "<|vision_start|>" + "<|image_pad|>" * int(features["image_grid_thw"].prod() // 4) + "<|vision_end|>"
        ),
        inputs=lambda features, picture: {
            "pixel_values": features["pixel_values"],
            "image_grid_thw": features["image_grid_thw"],
            "mm_token_type_ids": picture.long(),
        },
    ),
    "gemma3": lambda: Family(
        special={
            "start": "<start_of_turn>",
            "end": "<end_of_turn>",
            "boi_token": "<boi>",
            "eoi_token": "<eoi>",
            "image_token": "<image_soft>",
        },
        model=gemma,
        image_processor=transformers.Gemma3ImageProcessorPil(**SQUARE),
        processor={"processor_class": "Gemma3Processor", "image_seq_length": 4},
        template=(
            "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{% for c in m['content'] %}"
            "{% if c['type'] == 'image' %}<boi>{% else %}{{ c['text'] | trim }}{% endif %}{% endfor %}<end_of_turn>\n"
            "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
        ),
        written=lambda prompt: f"<bos><start_of_turn>user\nIMAGE{prompt}<end_of_turn>\n<start_of_turn>model\n",
        placeholders=lambda features, model: "\n\n<boi>" + "<image_soft>" * 4 + "<eoi>\n\n",
        inputs=lambda features, picture: {"pixel_values": features["pixel_values"], "token_type_ids": picture.long()},
    ),
    "paligemma": lambda: Family(
        special={"image_token": "<image>"},
        model=paligemma,
        image_processor=_with(transformers.SiglipImageProcessorPil(**SQUARE), image_seq_length=16),
        processor={"processor_class": "PaliGemmaProcessor"},
        written=lambda prompt: f"IMAGE<bos>{prompt}\n",
        placeholders=lambda features, model: "<image>" * 16,
        inputs=lambda features, picture: {
            "pixel_values": features["pixel_values"],
            "token_type_ids": torch.zeros_like(picture).long(),
        },
    ),
    "blip-2": lambda: Family(
        special={"image": "<image>"},
        model=blip2(OPT),
        image_processor=transformers.BlipImageProcessorPil(**SQUARE),
        processor={"processor_class": "Blip2Processor", "num_query_tokens": 4},
        written=lambda prompt: f"IMAGEQuestion: {prompt} Answer:",
        placeholders=lambda features, model: "<image>" * 4,
    ),
    "git": lambda: Family(  # its tokenizer has no `[CLS]`: a question is opened by what it has
        special={},
        model=git,
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        ),
        processor={"processor_class": "GitProcessor"},
        written=lambda prompt: f"<bos>{prompt}",
        placeholders=lambda features, model: "",
    ),
    "smolvlm": lambda: Family(
        special={
            "end": "<end_of_utterance>",
            "fake": BEGIN,
            "image_token": "<image>",
            "global": "<global-img>",
            **{f"r{r}c{c}": f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)},
        },
        model=idefics("SmolVLM"),
        image_processor=transformers.SmolVLMImageProcessorPil(
            size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
        ),
        processor={"processor_class": "SmolVLMProcessor", "image_seq_len": 4},
        template=(
            "{% for m in messages %}{{ m['role'] | capitalize }}:{% for c in m['content'] %}"
            "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<end_of_utterance>\n"
            "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
        ),
        written=lambda prompt: f"User:IMAGE{prompt}<end_of_utterance>\nAssistant:",
        placeholders=lambda features, model: tiles(features, BEGIN),
        inputs=lambda features, picture: {
            "pixel_values": features["pixel_values"],
            "pixel_attention_mask": features["pixel_attention_mask"],
        },
        image_options={"return_row_col_info": True},
    ),
    "internvl": lambda: Family(
        special={
            **CHAT,
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        model=internvl,
        image_processor=transformers.GotOcr2ImageProcessorPil(**SQUARE, crop_to_patches=True, max_patches=4),
        processor={"processor_class": "InternVLProcessor", "image_seq_length": 4},
        template=CHATML.replace("IMAGE", "<IMG_CONTEXT>\n"),
        written=lambda prompt: chatml(f"\n{prompt}"),
        placeholders=lambda features, model: "<img>" + "<IMG_CONTEXT>" * 4 * int(features["num_patches"][0]) + "</img>",
        image_options={"crop_to_patches": True},
    ),
}


FAMILIES |= {
    "llava_next": lambda: replace(
        FAMILIES["llava"](),
        model=llava_next,
        image_processor=transformers.LlavaNextImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, image_grid_pinpoints=PINPOINTS
        ),
        processor={**FAMILIES["llava"]().processor, "processor_class": "LlavaNextProcessor"},
        placeholders=as_many_as_the_model_sees,
        inputs=tiled,
    ),
    "llava_onevision": lambda: replace(
        FAMILIES["llava"](),
        model=llava_onevision,
        image_processor=transformers.LlavaOnevisionImageProcessorPil(**SQUARE, image_grid_pinpoints=PINPOINTS),
        processor={
            "processor_class": "LlavaOnevisionProcessor",
            "num_image_tokens": 16,
            "vision_feature_select_strategy": "full",
        },
        placeholders=as_many_as_the_model_sees,
        inputs=tiled,
    ),
    "qwen2_vl": lambda: replace(
        FAMILIES["qwen2_5_vl"](),
        model=qwen("Qwen2VL", embed_dim=32, hidden_size=32, mlp_ratio=2),
        processor={"processor_class": "Qwen2VLProcessor"},
    ),
    "qwen3_vl": lambda: replace(
        FAMILIES["qwen2_5_vl"](),
        model=qwen(
            "Qwen3VL",
            hidden_size=32,
            out_hidden_size=32,
            intermediate_size=48,
            num_position_embeddings=16,
            deepstack_visual_indexes=[0],
        ),
        processor={"processor_class": "Qwen3VLProcessor"},
    ),
    "blip-2-t5": lambda: replace(
        FAMILIES["blip-2"](),
        model=blip2(T5),
        inputs=lambda features, picture: {
            "pixel_values": features["pixel_values"],
            "decoder_input_ids": torch.zeros((1, 1), dtype=torch.long),
        },
    ),
    "idefics3": lambda: replace(
        FAMILIES["smolvlm"](),
        model=idefics("Idefics3"),
        image_processor=transformers.Idefics3ImageProcessorPil(
            size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
        ),
        processor={"processor_class": "Idefics3Processor", "image_seq_len": 4},
    ),
}


def _with(part: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(part, name, value)
    return part


def save(folder: Path, name: str) -> Path:
    """A folder with a tiny random model of this family, as the hub has them."""
    family = FAMILIES[name]()
    tokenizer = tokenizer_with(family.special)
    tokenizer.chat_template = family.template
    model = family.model(tokenizer).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape, generator=generator) * 0.2)
    for part in (model, tokenizer, family.image_processor):
        part.save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps(family.processor))
    return folder


def plain(folder: Path, name: str) -> Callable[[Image.Image, str], list[float]]:
    """What the model says of one picture and one question, the obvious way."""
    family = FAMILIES[name]()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    beginning = {
        answer: [number for number in range(len(tokenizer)) if tokenizer.decode([number]).strip().lower() == answer]
        for answer in ANSWERS
    }

    def channels(image: Image.Image, prompt: str) -> list[float]:
        features = family.image_processor(image.convert("RGB"), return_tensors="pt", **family.image_options)
        text = family.written(prompt).replace("IMAGE", family.placeholders(features, model))
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        picture = ids == tokenizer.convert_tokens_to_ids(family.special.get("image_token", "<pad>"))
        told = {"attention_mask": torch.ones_like(ids), **family.inputs(features, picture)}
        with torch.no_grad():
            logits = model(input_ids=ids, **told).logits[0, -1].double()
        share = logits.softmax(0)
        yes, no = (float(share[beginning[answer]].sum()) for answer in ANSWERS)
        masses = torch.tensor([yes, no, 1 - yes - no], dtype=torch.float64).log()
        study = number_of(tokenizer, "Yes")
        return [float(logits[study]), *masses.tolist(), float(share[study].log())]

    return channels


def number_of(tokenizer: Any, word: str) -> int:
    return next(number for number in range(len(tokenizer)) if tokenizer.decode([number]) == word)


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """Every family: how the adapter loads it, what a plain forward pass says, and how near they must be."""

    def case(name: str) -> dict[str, Any]:
        saved = save(folder / name, name)
        return {
            "load": lambda options: load_model(str(saved), options),
            "plain": plain(saved, name),
            "tolerance": 1e-5,
            "bf16_tolerance": 0.3,
        }

    return {name: case(name) for name in FAMILIES}
