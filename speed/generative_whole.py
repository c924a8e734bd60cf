"""A whole GRAS, end to end: pictures on disk, a checkpoint on disk, all questions, every score in the store.

    python speed/generative_whole.py --tiny --pictures 8                      # a try, on this machine's CPU
    python speed/generative_whole.py --device cuda --pictures 5010             # Qwen2.5-VL-3B's architecture

The weights are random and the pictures are clouds; tokens, shapes and bytes are those of the real work.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from architectures import architecture
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from beholder.datasets import load_dataset
from beholder.models.load import LoadOptions, load_model
from beholder.models.torch_scorer import torch, transformers
from beholder.scores.fill import FillOptions, fill
from beholder.scores.store import Store
from beholder.studies.gras.study import GRAS

MARKS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_start": "<|vision_start|>",
    "vision_end": "<|vision_end|>",
    "im_start": "<|im_start|>",
    "im_end": "<|im_end|>",
}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SIDE = 448


def tokenizer_of(questions: list[str]) -> Any:
    """A byte-level BPE in which, as in large vocabularies, common words are one token."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=4000, show_progress=False, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]
    )
    inner.train_from_iterator([*questions, "Yes No yes no " * 9, "user assistant " * 9], trainer)
    named = {name: token for name, token in MARKS.items() if name.endswith("_token")}
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<|endoftext|>", eos_token="<|endoftext|>", extra_special_tokens=named
    )
    fast.add_special_tokens({"additional_special_tokens": list(MARKS.values())})
    fast.chat_template = TEMPLATE
    return fast


def checkpoint(folder: Path, questions: list[str], *, tiny: bool, device: str) -> Path:
    """A folder as the hub has them: weights, tokenizer, image processor."""
    if (folder / "processor_config.json").is_file():
        return folder
    tokenizer = tokenizer_of(questions)
    built = architecture("qwen2.5-vl-3b")
    model = built.build(tiny=tiny, device=device, dtype=torch.float32 if tiny else torch.bfloat16)
    config = model.config
    if tiny:
        model.resize_token_embeddings(len(tokenizer))
    for name in ("image_token", "video_token", "vision_start", "vision_end"):
        attribute = f"{name.removesuffix('_token')}_token_id"
        setattr(config, attribute, tokenizer.convert_tokens_to_ids(MARKS[name]))
    pixels = SIDE * SIDE if not tiny else 112 * 112
    processor = transformers.Qwen2VLImageProcessorPil(size={"shortest_edge": 3136, "longest_edge": pixels})
    for part in (model, tokenizer, processor):
        part.save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "Qwen2_5_VLProcessor"}))
    return folder


def cloud(job: tuple[Path, int]) -> None:
    """One picture, different from all others."""
    folder, number = job
    coarse = np.random.default_rng(number).integers(0, 256, (14, 14, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(folder / f"{number:05}.jpg")


def pictures(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lacking = [(folder, number) for number in range(count) if not (folder / f"{number:05}.jpg").is_file()]
    with ProcessPoolExecutor() as pool:
        list(pool.map(cloud, lacking, chunksize=64))
    rows = [f"{number:05}.jpg" for number in range(count)]
    (folder / "table.csv").write_text("\n".join(["file", *rows]) + "\n")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--work", type=Path, default=Path("/tmp/beholder-whole"))
    parser.add_argument("--prepare", action="store_true", help="only make the checkpoint and the pictures")
    told = parser.parse_args()
    dataset = load_dataset(f"folder:{pictures(told.work / 'pictures', told.pictures)}")
    task = GRAS.asks.tasks(dataset)[0]
    questions = [GRAS.asks.instruction.ask(text) for text in task.prompts.texts]
    folder = checkpoint(told.work / "model", questions, tiny=told.tiny, device=told.device)
    if told.prepare:
        return
    begun = time.perf_counter()
    precision = "float32" if told.tiny else "bfloat16"
    scorer: Any = load_model(str(folder), LoadOptions(device=told.device, precision=precision))
    scorer = scorer.instructed(GRAS.asks.instruction)
    print(f"loaded in {time.perf_counter() - begun:.0f} s", flush=True)
    begun = time.perf_counter()
    fill([task], scorer, Store(told.work / "store"), FillOptions())
    seconds = time.perf_counter() - begun
    count = len(dataset) * len(questions)
    print("; ".join(scorer.notes))
    print(
        f"{len(dataset)} pictures × {len(questions)} questions, decoding and writing included: "
        f"{seconds:.1f} s, {count / seconds:,.0f} questions/s"
    )


if __name__ == "__main__":
    main()
