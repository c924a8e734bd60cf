"""A tiny ONNX pair and a tiny closed vocabulary, scored by onnxruntime one picture and one text at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from beholder.models.load import load_model

SIDE, DIM = 16, 12
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]
WORDS = [
    "[UNK]",
    "[PAD]",
    "a",
    "photo",
    "of",
    "the",
    "person",
    "dog",
    "doctor",
    "nurse",
    "woman",
    "man",
    "smiling",
    "tree",
]


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """A pair of towers; everything else about ONNX folders is tested in `test_onnx.py`."""
    build(folder)
    case = {"load": lambda options: load_model(f"onnx:{folder}", options), "plain": plain(folder), "folder": folder}
    return {"towers": {**case, "tolerance": 1e-5, "bf16_tolerance": None}}


def build(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(4)
    save(folder / "image.onnx", image_graph(rng.standard_normal((3 * SIDE * SIDE, DIM)).astype(np.float32)))
    save(folder / "text.onnx", text_graph(rng.standard_normal((len(WORDS), DIM)).astype(np.float32)))
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.enable_padding(pad_id=1, pad_token="[PAD]")
    tokenizer.save(str(folder / "tokenizer.json"))
    image = {
        "file": "image.onnx",
        "input": "pixel_values",
        "output": "image_embeds",
        "size": SIDE,
        "mean": MEAN,
        "std": STD,
    }
    text = {"file": "text.onnx", "inputs": ["input_ids", "attention_mask"], "output": "text_embeds"}
    config = {
        "image": {**image, "max_batch": 8, "resize": "shortest edge, bicubic", "crop": "center"},
        "text": {**text, "tokenizer": "tokenizer.json", "max_length": 24},
        "embedding_dim": DIM,
        "logit_scale": 12.5,
    }
    (folder / "config.json").write_text(json.dumps(config))


def image_graph(weights: np.ndarray) -> onnx.GraphProto:
    """Pixels, laid flat, times a matrix."""
    nodes = [
        helper.make_node("Flatten", ["pixel_values"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["image_embeds"]),
    ]
    inputs = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])]
    output = helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["n", DIM])
    return helper.make_graph(nodes, "image", inputs, [output], [numpy_helper.from_array(weights, "weights")])


def text_graph(table: np.ndarray) -> onnx.GraphProto:
    """The sum of the vectors of the words that the mask keeps."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["mask"]),
        helper.make_node("Mul", ["vectors", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "middle"], ["text_embeds"], keepdims=0),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["n", DIM])
    constants = {"table": table, "last": np.array([2]), "middle": np.array([1])}
    initial = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return helper.make_graph(nodes, "text", inputs, [output], initial)


def save(path: Path, graph: onnx.GraphProto) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def plain(folder: Path) -> Callable[[Image.Image, str], list[float]]:
    """Resize, crop and normalise by hand; one picture, one text."""
    images, texts = (onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("image", "text"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def cosine(picture: Image.Image, prompt: str) -> list[float]:
        scale = SIDE / min(picture.size)
        size = tuple(SIDE if side == min(picture.size) else int(side * scale) for side in picture.size)
        picture = picture.convert("RGB").resize(size, Image.Resampling.BICUBIC)
        left, top = (picture.width - SIDE) // 2, (picture.height - SIDE) // 2
        pixels = np.asarray(picture.crop((left, top, left + SIDE, top + SIDE)), np.float32) / 255
        pixels = ((pixels - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)[None]
        ids = np.array([tokenizer.encode(prompt).ids], np.int64)
        (image,), (text,) = (
            images.run(None, {"pixel_values": pixels}),
            texts.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)}),
        )
        return [float(image[0] @ text[0] / np.linalg.norm(image[0]) / np.linalg.norm(text[0]))]

    return cosine
