"""One image, many questions: how fast each way of asking them is, on one model, in one run.

The work is GRAS's in shape: a picture, a trunk of 40 words, 5 branches of 8, 100 leaves of 17 on each. Ways: the
authors' loop (one question at a time, image tower and all), whole prompts in batches, the prefix's keys and values
copied for every question, and ours; beside them the floor, which is what the matrix products alone would take at
the rate that this machine was just measured to have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from architectures import MARKS, Architecture
from PIL import Image

from beholder.core.errors import OutOfMemory
from beholder.models.generative.loaded_model import Encoded, LoadedModel
from beholder.models.generative.model_types import Reuse
from beholder.models.generative.processor import Picture
from beholder.models.generative.prompt_tree import prompt_tree
from beholder.models.generative.sharing import Sharing, difference
from beholder.models.generative.tree import image_tower, language_model, ways
from beholder.models.torch_scorer import running, torch, transformers


@dataclass(frozen=True)
class Shape:
    """Words before the picture, in the trunk after it, on each branch, on each leaf; branches, leaves on each."""

    before: int = 15
    trunk: int = 40
    branch: int = 8
    leaf: int = 17
    branches: int = 5
    leaves: int = 100

    @property
    def questions(self) -> int:
        return self.branches * self.leaves


@dataclass(frozen=True)
class Effort:
    """How much of each way is timed."""

    pictures: int = 16
    loop: int = 20
    batch: int = 64
    repeats: int = 3
    together: int | None = None
    """Pictures that ours takes at once; None: as many as memory holds."""


class Timed(NamedTuple):
    """A way of asking: questions a second, and how far its answers are from those of the loop."""

    way: str
    per_second: float
    difference: float | None = None


class Rehearsal(LoadedModel):
    """Made-up questions about made-up pictures: what a processor would give, without one."""

    @classmethod
    def of_shape(cls, built: Architecture, model: Any, shape: Shape, seed: int = 1) -> Rehearsal:
        """All questions of a shape, as tokens."""
        rehearsal = cls(model, None, None, [], 64)  # type: ignore[arg-type]
        rng = np.random.default_rng(seed)
        words = model.config.get_text_config().vocab_size - MARKS
        mark = words  # the first of the marks stands for the picture

        def drawn(count: int) -> Any:
            return rng.integers(3, words, count)

        beginning = [drawn(shape.before), np.full(built.image_tokens(model.config), mark), drawn(shape.trunk)]
        branches = [drawn(shape.branch) for _ in range(shape.branches)]
        rehearsal.spoken = [
            torch.from_numpy(np.concatenate([*beginning, branch, drawn(shape.leaf)]))[None]
            for branch in branches
            for _ in range(shape.leaves)
        ]
        rehearsal.along = lambda ids: built.along(ids == mark)
        return rehearsal

    spoken: list[Any]
    along: Callable[[Any], Encoded]

    def encode(self, picture: Picture, question: str) -> tuple[Encoded, Encoded]:
        ids = self.spoken[int(question)]
        text = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **self.along(ids)}
        return text, dict(picture.features)

    @cached_property
    def _padding_token(self) -> int:
        return 0


def rehearse(
    built: Architecture, model: Any, shape: Shape, effort: Effort, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Timed]:
    """Time one way after the other."""
    loaded = Rehearsal.of_shape(built, model, shape)
    questions = [str(number) for number in range(shape.questions)]
    rng = torch.Generator().manual_seed(2)
    pictures = [Picture(Image.new("RGB", (8, 8)), built.picture(model.config, rng)) for _ in range(effort.pictures)]
    few = questions[:: max(1, len(questions) // effort.loop)][: effort.loop]
    texts, seen = [loaded.encode(pictures[0], one)[0] for one in few], dict(pictures[0].features)
    expected = torch.cat([loaded.answers([text], [seen])[0] for text in texts])
    seconds = _seconds(lambda: [_loop_one(loaded, text, seen) for text in texts], model, effort.repeats)
    yield Timed("authors' loop", len(few) / seconds, 0.0)
    many = [loaded.encode(pictures[0], one)[0] for one in questions[: effort.batch]]
    seconds = _seconds(lambda: loaded.answers(many, [seen]), model, effort.repeats)
    yield Timed(f"whole prompts, {len(many)} at once", len(many) / seconds)
    if ways(model)[0] is Reuse.PREFIX:
        copied = copied_prefix(loaded, texts, seen)
        yield _copying(loaded, [loaded.encode(pictures[0], one)[0] for one in questions], seen, copied, expected)
    yield _ours(loaded, pictures, questions, few, expected, effort, tell)
    yield Timed("floor: matrix products alone", floor(built, model, loaded, tell))


def _ours(
    loaded: Rehearsal,
    pictures: Sequence[Picture],
    questions: Sequence[str],
    few: Sequence[str],
    expected: Any,
    effort: Effort,
    tell: Callable[[str], None],
) -> Timed:
    sharing = Sharing(loaded, together=effort.together)

    def ask(some: Sequence[Picture]) -> Any:
        """As an audit does: three numbers of each distribution are kept and read back."""
        kept = []
        for one in sharing.first_tokens(some, questions):
            parts = [part.float().logsumexp(dim=-1) for part in one.logits.flatten(0, 1).split(512)]
            kept.append(torch.cat([torch.cat(parts), one.logits[..., 5].float().flatten()]))
        return [one.cpu() for one in kept]

    on_gpu = loaded.model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    first = {
        index: one.logits[0, at].clone()
        for one in sharing.first_tokens(pictures[:1], questions)
        for at, index in enumerate(one.indices)
        if str(index) in few
    }
    ask(pictures)
    tell(f"first passes, compiling included: {time.perf_counter() - begun:.1f} s; {'; '.join(sharing.notes)}")
    seconds = _seconds(lambda: ask(pictures), loaded.model, effort.repeats, warm=0)
    if on_gpu:
        tell(f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB at the peak, weights included")
    far = difference(torch.stack([first[int(one)] for one in few]), expected)
    return Timed(f"ours: {sharing.reuse.value}", len(pictures) * len(questions) / seconds, far)


def _loop_one(loaded: Rehearsal, text: Encoded, seen: Encoded) -> Any:
    """As the released scripts do: the whole forward pass, all logits, the softmax of the last."""
    with running():
        inputs = transformers.BatchFeature({**text, **seen}).to(loaded.model.device, dtype=loaded.model.dtype)
        return loaded.model(**inputs).logits[0, -1].float().softmax(-1).cpu()


def _copying(loaded: Rehearsal, texts: Sequence[Encoded], seen: Encoded, copied: Any, expected: Any) -> Timed:
    """As many copies at once as memory holds."""
    at_once = len(texts)
    while True:
        try:
            parts = [texts[start : start + at_once] for start in range(0, len(texts), at_once)]
            seconds = _seconds(lambda: [copied_prefix(loaded, part, seen) for part in parts], loaded.model, 1)  # noqa: B023
        except OutOfMemory:
            at_once = -(-at_once // 2)
            continue
        way = f"prefix's keys and values copied, {at_once} at once"
        return Timed(way, len(texts) / seconds, difference(copied, expected))


def copied_prefix(loaded: Rehearsal, texts: Sequence[Encoded], seen: Encoded) -> Any:
    """Read what the questions share once, copy its keys and values for each of them, then read all the rest."""
    model = loaded.model
    tree = prompt_tree([text["input_ids"][0].tolist() for text in texts])
    cut = tree.trunk
    with running():
        beginning = {name: values[:, :cut] for name, values in texts[0].items()}
        inputs = transformers.BatchFeature({**beginning, **seen}).to(model.device, dtype=model.dtype)
        cache = transformers.DynamicCache(config=model.config.get_text_config())
        model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache.batch_repeat_interleave(len(texts))
        rest = torch.cat([text["input_ids"][:, cut:] for text in texts]).to(model.device)
        positions = _positions_after(model, texts[0], seen, cut, rest.shape[1])
        mask = torch.ones(len(texts), cut + rest.shape[1], device=model.device, dtype=torch.long)
        text = language_model(model)
        assert text is not None
        output = text(
            inputs_embeds=model.get_input_embeddings()(rest),
            attention_mask=mask,
            past_key_values=cache,
            position_ids=positions.expand(*positions.shape[:-2], len(texts), -1),
            use_cache=True,
        )
        return model.get_output_embeddings()(output.last_hidden_state[:, -1]).float()


def _positions_after(model: Any, text: Encoded, seen: Encoded, cut: int, length: int) -> Any:
    """Positions of the words after the prefix; after a picture, Qwen counts on from its larger side."""
    steps = torch.arange(length, device=model.device)[None]
    if not hasattr(model.model, "get_rope_index"):
        return cut + steps
    along = {name: text[name].to(model.device) for name in ("attention_mask", "mm_token_type_ids")}
    positions, _ = model.model.get_rope_index(
        text["input_ids"].to(model.device), image_grid_thw=seen["image_grid_thw"].to(model.device), **along
    )
    return positions[:, :, cut : cut + 1] + steps


def floor(built: Architecture, model: Any, loaded: Rehearsal, tell: Callable[[str], None]) -> float:
    """Questions a second if nothing took time but the products of the weights with the tokens that must be read.

    Those are the tree's where the model shares prefixes, else all prompts' tokens.
    """
    rate = matrix_rate(model)
    tree = prompt_tree([ids[0].tolist() for ids in loaded.spoken])
    shared = ways(model)[0] is Reuse.PREFIX
    tokens = tree.size if shared else sum(ids.shape[1] for ids in loaded.spoken)
    text = language_model(model)
    assert text is not None
    weights = sum(part.numel() for name, part in text.named_parameters() if "embed" not in name)
    head = model.get_output_embeddings().weight.numel() * len(tree.last_tokens)
    looking = _tower_products(built, model)
    needed = 2 * (weights * tokens + head + looking)
    tell(
        f"{tokens} {'unique ' if shared else ''}tokens, {weights / 1e9:.2f} billion weights, "
        f"{needed / 1e12:.1f} TFLOP a picture, {rate / 1e12:.1f} TFLOP/s measured"
    )
    return float(len(tree.last_tokens) * rate / needed)


def _tower_products(built: Architecture, model: Any) -> int:
    """Weights of the image tower times patches."""
    config = model.config.vision_config
    tower = image_tower(model)
    assert tower is not None
    picture = built.picture(model.config, torch.Generator().manual_seed(0))["pixel_values"]
    patches = len(picture) if picture.ndim == 2 else (config.image_size // config.patch_size) ** 2
    return int(sum(part.numel() for part in tower.parameters()) * patches)


def matrix_rate(model: Any) -> float:
    """Operations a second of a large matrix product in the model's precision."""
    side = 8192 if model.device.type == "cuda" else 1024
    one = torch.randn(side, side, device=model.device, dtype=model.dtype)
    seconds = _seconds(lambda: one @ one, model, 10)
    return 2 * side**3 / seconds


def _seconds(act: Callable[[], Any], model: Any, repeats: int, warm: int = 1) -> float:
    """Mean seconds of some repeats, after a first one that does not count."""
    wait = torch.cuda.synchronize if model.device.type == "cuda" else lambda: None
    with torch.inference_mode():
        for _ in range(warm):
            act()
        wait()
        begun = time.perf_counter()
        for _ in range(repeats):
            act()
        wait()
    return (time.perf_counter() - begun) / repeats
