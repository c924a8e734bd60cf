"""Train the small generative reference model: `python tools/reference_models/train_generative.py --out DIR`.

First it learns to see: the image tower, its patches begun from the principal components of the pictures, is asked
for what is drawn, through a head that is thrown away. Then, with the tower fixed, the language model learns to
answer: the target is the planted probability itself, on the first token of the answer: P(Yes) = p,
P(No) = 1 - p, every other token 0, by cross-entropy with these soft labels. Two cores are enough. Writes an
ordinary `transformers` LLaVA folder.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from captions import draw_scene, draw_thing_uri, draw_worn
from PIL import Image
from questions import TRAIT_KINDS, Claim, Question, claims, questions
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from beholder.glasshouse.outfits import OUTFITS
from beholder.glasshouse.planted import darkness, seniority, side
from beholder.glasshouse.portrait import Portrait, open_uri, render
from beholder.glasshouse.world import TRAINING_IDENTITIES
from beholder.studies.gras.prompts import INSTRUCTION
from beholder.studies.study import TRUE_OR_FALSE

RESIZED, IMAGE_SIZE, PATCH_SIZE, VOCABULARY = 80, 72, 24, 900
SEEING_WIDTH, SEEING_LAYERS, SPEAKING_WIDTH, SPEAKING_LAYERS = 96, 3, 64, 2
PAD, IMAGE, ANSWER, END = "<pad>", "<image>", "<answer>", "<end>"
ANSWERS = ("Yes", "No", "true", "false")
# One token each: an instruction is the same in every question, and reading it word by word would only cost time.
PHRASES = (INSTRUCTION[0], "Question:", INSTRUCTION[2], TRUE_OR_FALSE.template.replace("{}", "").strip())
CHAT_TEMPLATE = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}" + IMAGE + "{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}" + ANSWER + "{% endif %}"
)
THING_SHARE, DRESSED_SHARE = 0.06, 0.25


class Round(NamedTuple):
    """One course of the language model: steps, and the shares of its questions by kind of claim."""

    steps: int
    planted: float
    control: float
    other: float
    seen: float
    thing: float


# Some words stay at their base rate for long (three of twelve in our first round), although the loss is nearly
# flat by then: a further round, from a high rate again and with more of what is hard, frees them.
ROUNDS = (
    Round(1800, planted=0.35, control=0.35, other=0.10, seen=0.17, thing=0.03),
    Round(1100, planted=0.425, control=0.425, other=0.05, seen=0.08, thing=0.02),
    Round(1500, planted=0.65, control=0.20, other=0.05, seen=0.08, thing=0.02),
)


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is learnt."""

    pictures: int = 12_000
    seeing: int = 1000
    """Steps of the image tower."""
    looked_at: int = 128
    """Pictures in each of them."""
    rounds: tuple[Round, ...] = ROUNDS
    """The language model's."""
    shown: int = 48
    """Pictures in each of them."""
    asked: int = 16
    """Questions about each picture."""
    seeing_rate: float = 2e-3
    speaking_rate: float = 3e-3
    seed: int = 2026


class Lesson(NamedTuple):
    """Pictures as uint8 [n, size, size, 3], P(yes) of every claim [n, claims], attributes to be seen [n, 6]."""

    pixels: npt.NDArray[np.uint8]
    truth: npt.NDArray[np.float32]
    """NaN where a claim is not asked of a picture."""
    seen: npt.NDArray[np.float32]


# Pictures


def render_part(seed: int, count: int) -> Lesson:
    """One worker's share."""
    rng, known = Random(seed), claims()
    pixels = np.empty((count, RESIZED, RESIZED, 3), dtype=np.uint8)
    truth = np.empty((count, len(known)), dtype=np.float32)
    seen = np.empty((count, 6), dtype=np.float32)
    for index in range(count):
        picture, truth[index], seen[index] = draw_example(rng, known)
        pixels[index] = np.asarray(picture.resize((RESIZED, RESIZED), Image.Resampling.BICUBIC))
    return Lesson(pixels, truth, seen)


def draw_example(rng: Random, known: list[Claim]) -> tuple[Image.Image, list[float], list[float]]:
    """A picture, P(yes) of every claim, and the attributes of a portrait (of a thing there are none)."""
    if rng.random() < THING_SHARE:
        uri = draw_thing_uri(rng)
        return open_uri(uri), [of_thing(claim, uri.split("/")[1]) for claim in known], [math.nan] * 6
    portrait = draw_person(rng)
    return render(portrait), [claim.holds(portrait) for claim in known], attributes(portrait)


def of_thing(claim: Claim, thing: str) -> float:
    """P(yes) of a claim about a thing: traits are not asked."""
    if claim.kind in TRAIT_KINDS:
        return math.nan
    return float(claim.kind == "thing" and claim.words.split()[-1] == thing)


def draw_person(rng: Random) -> Portrait:
    """Somebody new, most often in plain clothes; every attribute is independent of every other."""
    who = (rng.choice(("woman", "man")), rng.randint(20, 80), rng.randint(1, 10))
    identity = TRAINING_IDENTITIES + rng.randrange(10**8)
    if rng.random() >= DRESSED_SHARE:
        return Portrait(*who, *draw_scene(rng), identity)
    return Portrait(*who, *draw_scene(rng), identity, rng.choice(tuple(OUTFITS)), draw_worn(rng))


def attributes(p: Portrait) -> list[float]:
    """What the image tower is asked for directly, each between -1 and 1."""
    signs = 2 * side(p.presentation), 2 * darkness(p.skin_tone), 2 * seniority(p.age)
    return [*signs, p.pose / 2, p.lighting / 2, p.smiling / 2 - 1]


def prepare(plan: Plan, workers: int) -> Lesson:
    """All pictures, rendered in parallel; the number of workers does not change them."""
    parts = 64 if plan.pictures >= 6400 else 2
    count = -(-plan.pictures // parts)
    seeds = [plan.seed * 1000 + part for part in range(parts)]
    if workers <= 1:
        done = [render_part(seed, count) for seed in seeds]
    else:
        with ProcessPoolExecutor(workers) as pool:
            done = list(pool.map(render_part, seeds, [count] * parts))
    return Lesson(*(np.concatenate(columns) for columns in zip(*done, strict=True)))


# Model


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE learnt from the questions: any text can be written, and each answer is one token."""
    texts = [question.text for question in questions()]
    for phrase in PHRASES:
        texts = [text.replace(phrase, "\n") for text in texts]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, IMAGE, ANSWER, END],
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator([*texts, *PHRASES, *ANSWERS * 1000], trainer)
    tokenizer.add_tokens([AddedToken(p, lstrip=True, rstrip=True, normalized=False) for p in PHRASES])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        additional_special_tokens=[IMAGE, ANSWER],
        padding_side="left",
        model_max_length=256,
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """A fresh model of about 0.7 million parameters that looks at nine patches."""
    ends: dict[str, Any] = {
        "pad_token_id": tokenizer.convert_tokens_to_ids(PAD),
        "eos_token_id": tokenizer.convert_tokens_to_ids(END),
        "bos_token_id": None,
    }
    vision = CLIPVisionConfig(
        hidden_size=SEEING_WIDTH,
        intermediate_size=4 * SEEING_WIDTH,
        num_hidden_layers=SEEING_LAYERS,
        num_attention_heads=4,
        image_size=IMAGE_SIZE,
        patch_size=PATCH_SIZE,
        projection_dim=SEEING_WIDTH,
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=SPEAKING_WIDTH,
        intermediate_size=3 * SPEAKING_WIDTH,
        num_hidden_layers=SPEAKING_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        **ends,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(IMAGE_SIZE // PATCH_SIZE) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
        **ends,
    )
    return LlavaForConditionalGeneration(config)


def save(model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the folder; weights in float16."""
    from transformers import CLIPImageProcessorPil, LlavaProcessor

    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    pictures = CLIPImageProcessorPil(
        size={"shortest_edge": RESIZED}, crop_size=size, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    processor = LlavaProcessor(
        pictures,
        tokenizer,
        patch_size=PATCH_SIZE,
        vision_feature_select_strategy="default",
        chat_template=CHAT_TEMPLATE,
        num_additional_image_tokens=1,
    )
    model.to("cpu").half().save_pretrained(folder)
    processor.save_pretrained(folder)


# Seeing


def scaled(pixels: torch.Tensor) -> torch.Tensor:
    """Pictures as the image processor gives them: the middle cut out, -1 to 1, channels first."""
    edge = (RESIZED - IMAGE_SIZE) // 2
    middle = pixels[:, edge : edge + IMAGE_SIZE, edge : edge + IMAGE_SIZE]
    return middle.permute(0, 3, 1, 2).float() / 127.5 - 1


def begin_patches(model: LlavaForConditionalGeneration, pixels: torch.Tensor) -> None:
    """Set the patch embedding to the principal components of patches, each scaled to equal spread."""
    conv = model.model.vision_tower.embeddings.patch_embedding
    patches = functional.unfold(scaled(pixels), PATCH_SIZE, stride=PATCH_SIZE).transpose(1, 2).flatten(0, 1)
    patches = patches - patches.mean(0)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    best = vectors[:, -SEEING_WIDTH:] / values[-SEEING_WIDTH:].clamp(min=1e-6).sqrt()
    with torch.no_grad():
        conv.weight.copy_(0.3 * best.T.reshape(conv.weight.shape))


def look(model: LlavaForConditionalGeneration, pixels: torch.Tensor) -> torch.Tensor:
    """What the language model is shown of each picture: [n, patches, width]."""
    last = model.model.vision_tower(pixel_values=pixels).last_hidden_state
    shown: torch.Tensor = model.model.multi_modal_projector(last[:, 1:])
    return shown


def look_at_all(model: LlavaForConditionalGeneration, pixels: torch.Tensor, batch: int = 256) -> torch.Tensor:
    """The same for many pictures, without learning."""
    with torch.no_grad():
        return torch.cat([look(model, scaled(part)) for part in pixels.split(batch)])


def learn_to_see(model: LlavaForConditionalGeneration, lesson: Lesson, plan: Plan) -> list[float]:
    """Train image tower and projector; returns the error of every step."""
    pixels, truth, seen = (torch.from_numpy(part) for part in lesson)
    drawn = torch.tensor([claim.kind in ("seen", "thing") for claim in claims()])
    target = torch.cat([seen, truth[:, drawn]], 1)
    weight = torch.cat([torch.full((seen.shape[1],), 1.0), torch.full((int(drawn.sum()),), 0.1)])
    begin_patches(model, pixels[:2000])
    head = torch.nn.Linear(SPEAKING_WIDTH, target.shape[1])
    parts = (model.model.vision_tower, model.model.multi_modal_projector, head)
    course = Course([weights for part in parts for weights in part.parameters()], plan.seeing, plan.seeing_rate)
    for _ in range(plan.seeing):
        indices = torch.randint(len(pixels), (plan.looked_at,))
        wanted = target[indices]
        off = (head(look(model, scaled(pixels[indices])).mean(1)) - wanted.nan_to_num()).square() * weight
        course.step(off[~wanted.isnan()].mean())
    return course.losses


# Speaking


class Asking:
    """Every question as token numbers, with its claim and the tokens of its answers."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, asked: list[Question]) -> None:
        texts = [tokenizer.encode(question.text + ANSWER, add_special_tokens=False) for question in asked]
        longest, pad = max(map(len, texts)), tokenizer.convert_tokens_to_ids(PAD)
        self.tokens = torch.tensor([ids + [pad] * (longest - len(ids)) for ids in texts])
        self.last = torch.tensor([len(ids) - 1 for ids in texts])
        self.claim = torch.tensor([question.claim for question in asked])
        self.answers = torch.tensor([tokenizer.convert_tokens_to_ids([q.yes, q.no]) for q in asked])
        known = claims()
        self.kinds = [known[question.claim].kind for question in asked]

    def weights(self, shares: Round) -> torch.Tensor:
        """How often each question is asked: its kind's share, evenly over the questions of that kind."""
        counts = Counter(self.kinds)
        return torch.tensor([getattr(shares, kind) / counts[kind] for kind in self.kinds])


def answer(
    model: LlavaForConditionalGeneration, shown: torch.Tensor, tokens: torch.Tensor, last: torch.Tensor
) -> torch.Tensor:
    """Log-probabilities of the first answer token to `tokens [n, asked, length]` about `shown [n, patches, width]`.

    The same as the model's own forward pass, but each picture is read once for all its questions. Questions are
    padded after their end, where a causal model cannot see, so positions are those of `generate`.
    """
    speaker, asked = model.model.language_model, tokens.shape[1]
    read = speaker(inputs_embeds=shown, use_cache=True).past_key_values
    read.batch_repeat_interleave(asked)
    words = model.model.get_input_embeddings()(tokens.flatten(0, 1))
    hidden = speaker(inputs_embeds=words, past_key_values=read, use_cache=True).last_hidden_state
    final = hidden[torch.arange(len(words)), last.flatten()]
    return functional.log_softmax(model.lm_head(final).float(), dim=-1)


def learn_to_speak(
    model: LlavaForConditionalGeneration, asking: Asking, lesson: Lesson, plan: Plan, this: Round
) -> list[float]:
    """One round of the language model with the tower fixed; returns the loss of every step.

    It is 0 when all rates are known, which they cannot be: nobody sees whether somebody is older than 25.
    """
    weights = asking.weights(this)
    shown, truth = look_at_all(model, torch.from_numpy(lesson.pixels)), torch.from_numpy(lesson.truth)
    course = Course(list(model.model.language_model.parameters()), this.steps, plan.speaking_rate)
    for _ in range(this.steps):
        indices = torch.randint(len(shown), (plan.shown,))
        asked = torch.multinomial(weights, plan.shown * plan.asked, replacement=True)
        asked = asked.view(plan.shown, plan.asked)
        length = int(asking.last[asked].max()) + 1
        answers = answer(model, shown[indices], asking.tokens[asked][:, :, :length], asking.last[asked])
        yes = truth[indices[:, None], asking.claim[asked]].flatten()
        course.step(excess(answers.gather(1, asking.answers[asked.flatten()]), yes))
    return course.losses


def excess(answers: torch.Tensor, yes: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of log-probabilities of yes and no with P(yes), less its least possible value, in nats."""
    there = ~yes.isnan()
    target = torch.stack([yes, 1 - yes], 1)[there]
    return (-(target * answers[there]).sum(1) - torch.special.entr(target).sum(1)).mean()


class Course:
    """An optimiser at its pace: a short rise, then half a cosine down to nothing."""

    def __init__(self, parameters: list[torch.nn.Parameter], steps: int, rate: float) -> None:
        self.parameters, self.losses, self._start = parameters, list[float](), time.perf_counter()
        self._optimiser = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.98), weight_decay=0.02)
        rise = min(100, steps // 10 + 1)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser, lambda k: min((k + 1) / rise, 0.5 * (1 + math.cos(math.pi * k / steps)))
        )

    def step(self, loss: torch.Tensor) -> None:
        """One step down."""
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self._optimiser.step()
        self._schedule.step()
        self.losses.append(loss.item())
        if len(self.losses) % 100 == 0:
            print(
                f"step {len(self.losses)}  loss {np.mean(self.losses[-100:]):.5f}"
                f"  {time.perf_counter() - self._start:.0f} s",
                flush=True,
            )


def run(plan: Plan, folder: Path, workers: int) -> list[float]:
    """Render, train, save; returns the losses of the language model."""
    torch.manual_seed(plan.seed)
    lesson = prepare(plan, workers)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    learn_to_see(model, lesson, plan)
    asking = Asking(tokenizer, questions())
    losses = [loss for this in plan.rounds for loss in learn_to_speak(model, asking, lesson, plan, this)]
    save(model, tokenizer, folder)
    return losses


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write the model to")
    parser.add_argument("--workers", type=int, default=1, help="processes that render")
    for name in ("pictures", "seeing", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan, name))
    given = parser.parse_args()
    plan = Plan(given.pictures, given.seeing, seed=given.seed)
    run(plan, given.out, given.workers)


if __name__ == "__main__":
    main()
