"""Train the small contrastive reference model: `python tools/reference_models/train_contrastive.py --out DIR`.

Pictures are rendered and captions drawn in worker processes; each time a picture is shown it carries another
draw of its caption, so the model can only learn the planted rates, never single captions. The loss is InfoNCE
in both directions; captions that are the same text share the target evenly, which keeps its optimum at
log p(text | image) / p(text) and only lowers its variance. Writes an ordinary `transformers` CLIP folder.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from captions import TEMPLATES, THING_SHARE, all_phrases, draw_phrase, draw_portrait, draw_thing_uri
from PIL import Image
from tokens import END, START, learn_merges, vocabulary
from torch.nn import functional
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer

from beholder.glasshouse.portrait import open_uri, render
from beholder.glasshouse.world import with_article

IMAGE_SIZE, PATCH_SIZE, MERGES, TEXT_LENGTH = 80, 8, 700, 64
MEAN = STD = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is learnt."""

    steps: int = 6500
    batch: int = 2048
    pictures: int = 76_800
    draws: int = 128
    rate: float = 1e-3
    seed: int = 2026


class Lesson(NamedTuple):
    """Pictures as uint8 [n, size, size, 3] and drawn phrases as numbers [n, draws]."""

    pixels: npt.NDArray[np.uint8]
    phrases: npt.NDArray[np.int32]


def render_part(seed: int, count: int, draws: int) -> Lesson:
    """One worker's share of pictures and phrases."""
    rng, number = Random(seed), {phrase: index for index, phrase in enumerate(all_phrases())}
    pixels = np.empty((count, IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)
    phrases = np.empty((count, draws), dtype=np.int32)
    for index in range(count):
        picture, captions = draw_example(rng, draws)
        pixels[index] = np.asarray(picture.resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BICUBIC))
        phrases[index] = [number[phrase] for phrase in captions]
    return Lesson(pixels, phrases)


def draw_example(rng: Random, draws: int) -> tuple[Image.Image, list[str]]:
    """A picture and `draws` phrases that describe it."""
    if rng.random() < THING_SHARE:
        uri = draw_thing_uri(rng)
        return open_uri(uri), [with_article(uri.split("/")[1])] * draws
    portrait = draw_portrait(rng)
    return render(portrait), [draw_phrase(portrait, rng) for _ in range(draws)]


def prepare(plan: Plan, workers: int) -> Lesson:
    """All pictures, rendered in parallel; the number of workers does not change them."""
    parts = 64 if plan.pictures >= 6400 else 2
    count = -(-plan.pictures // parts)
    seeds = [plan.seed * 1000 + part for part in range(parts)]
    if workers <= 1:
        done = [render_part(seed, count, plan.draws) for seed in seeds]
    else:
        with ProcessPoolExecutor(workers) as pool:
            done = list(pool.map(render_part, seeds, [count] * parts, [plan.draws] * parts))
    return Lesson(np.concatenate([part.pixels for part in done]), np.concatenate([part.phrases for part in done]))


def make_tokenizer() -> CLIPTokenizer:
    """A CLIP tokenizer with a vocabulary of our own."""
    merges = learn_merges(
        [template.format(phrase) for phrase in all_phrases() for template in TEMPLATES[:1]]
        + [template.format("") for template in TEMPLATES] * 200,
        MERGES,
    )
    return CLIPTokenizer(vocab=vocabulary(merges), merges=merges, model_max_length=TEXT_LENGTH)


def make_model(tokenizer: CLIPTokenizer) -> CLIPModel:
    """A fresh two-tower model of about three million parameters."""
    ends: dict[str, Any] = {
        "bos_token_id": tokenizer.convert_tokens_to_ids(START),
        "eos_token_id": tokenizer.convert_tokens_to_ids(END),
        "pad_token_id": tokenizer.convert_tokens_to_ids(END),
    }
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": TEXT_LENGTH,
        "projection_dim": 128,
        **ends,
    }
    vision = {
        "hidden_size": 192,
        "intermediate_size": 768,
        "num_hidden_layers": 5,
        "num_attention_heads": 6,
        "image_size": IMAGE_SIZE,
        "patch_size": PATCH_SIZE,
        "projection_dim": 128,
    }
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=128, **ends))


def make_processor() -> CLIPImageProcessor:
    """Resize to the model's size, then to -1..1."""
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    return CLIPImageProcessor(
        size={"shortest_edge": IMAGE_SIZE}, crop_size=size, image_mean=list(MEAN), image_std=list(STD)
    )


class Captions:
    """Every phrase in every template as token numbers, on the device."""

    def __init__(self, tokenizer: CLIPTokenizer, device: str) -> None:
        texts = [template.format(phrase) for phrase in all_phrases() for template in TEMPLATES]
        encoded = tokenizer(texts, padding=True, return_tensors="pt")
        self.ids = encoded.input_ids.to(torch.int16).to(device)
        self.lengths = encoded.attention_mask.sum(1).to(device)

    def batch(self, phrases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Number and tokens of each phrase in a random template."""
        template = torch.randint(len(TEMPLATES), phrases.shape, device=phrases.device)
        numbers = phrases.long() * len(TEMPLATES) + template
        return numbers, self.ids[numbers][:, : int(self.lengths[numbers].max())].long()


def contrast(image: torch.Tensor, text: torch.Tensor, numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """InfoNCE both ways; equal captions share the target."""
    logits = scale * functional.normalize(image.float()) @ functional.normalize(text.float()).T
    same = (numbers[:, None] == numbers[None, :]).float()
    target = same / same.sum(1, keepdim=True)
    return (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2


def forward(model: CLIPModel, pixels: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Projected embeddings of pictures and texts."""
    image = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)
    return image, model.text_projection(model.text_model(input_ids=ids).pooler_output)


def shift(pixels: torch.Tensor, rng: Random, most: int = 2) -> torch.Tensor:
    """The pictures moved by up to `most` pixels, their edges repeated."""
    padded = functional.pad(pixels, (most, most, most, most), mode="replicate")
    x, y = rng.randint(0, 2 * most), rng.randint(0, 2 * most)
    return padded[:, :, y : y + IMAGE_SIZE, x : x + IMAGE_SIZE]


def batches(lesson: Lesson, plan: Plan, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Random pictures, scaled to -1..1 and slightly shifted, with one drawn phrase each."""
    pixels, phrases = (torch.from_numpy(part).to(device) for part in lesson)
    rng = Random(plan.seed)
    while True:
        indices = torch.randint(len(pixels), (plan.batch,), device=device)
        draw = torch.randint(phrases.shape[1], (plan.batch,), device=device)
        scaled = pixels[indices].permute(0, 3, 1, 2).float() / 127.5 - 1
        yield shift(scaled, rng), phrases[indices, draw]


def pace(step: int, plan: Plan) -> float:
    """Learning rate as a share of its peak: a short rise, then half a cosine down to nothing."""
    rise = min(500, plan.steps // 10 + 1)
    return min((step + 1) / rise, 0.5 * (1 + math.cos(math.pi * step / plan.steps)))


def train(model: CLIPModel, captions: Captions, lesson: Lesson, plan: Plan, device: str) -> list[float]:
    """Train in place; returns the loss of every step."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: pace(step, plan))
    losses: list[torch.Tensor] = []
    source, start = batches(lesson, plan, device), time.perf_counter()
    for step in range(plan.steps):
        pixels, phrases = next(source)
        numbers, ids = captions.batch(phrases)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            image, text = forward(model, pixels, ids)
        loss = contrast(image, text, numbers, model.logit_scale.exp())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        losses.append(loss.detach())
        if step % 500 == 499:
            print(
                f"step {step + 1}  loss {torch.stack(losses[-500:]).mean():.4f}  scale {model.logit_scale.exp():.1f}"
                f"  {time.perf_counter() - start:.0f} s",
                flush=True,
            )
    return [float(loss) for loss in losses]


def save(model: CLIPModel, tokenizer: CLIPTokenizer, folder: Path) -> None:
    """Write the folder; weights in float16."""
    model.to("cpu").half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    make_processor().save_pretrained(folder)


def run(plan: Plan, folder: Path, device: str, workers: int) -> list[float]:
    """Render, train, save."""
    torch.manual_seed(plan.seed)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer).to(device)
    start = time.perf_counter()
    lesson = prepare(plan, workers)
    print(f"{len(lesson.pixels)} pictures in {time.perf_counter() - start:.0f} s", flush=True)
    losses = train(model, Captions(tokenizer, device), lesson, plan, device)
    save(model, tokenizer, folder)
    return losses


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write the model to")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes that render")
    for name in ("steps", "batch", "pictures", "draws", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan, name))
    given = parser.parse_args()
    plan = Plan(given.steps, given.batch, given.pictures, given.draws, seed=given.seed)
    run(plan, given.out, given.device, given.workers)


if __name__ == "__main__":
    main()
