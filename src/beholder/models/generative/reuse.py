"""What a model lets us reuse between questions about one picture: the contract, and its proof on the model at hand.

A causal language model never looks ahead, so what it made of the picture and of the words that all questions begin
with serves all of them. A model whose picture looks at the question (PaliGemma, encoder-decoders) lets only the
image tower's work be kept; one whose image tower reads the question (InstructBLIP) lets nothing be kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import numpy as np

from beholder.models.checkpoint.checkpoint import replaced_forward, torch
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.torch_types import Module, Output, Tensor


class Reuse(Enum):
    """How much of the work on one question serves the next, best first."""

    PREFIX = "the picture and all words that the questions begin with are read once"
    TRUNK = "the picture and the words that all questions begin with are read once; each question goes on from there"
    FEATURES = "the image tower looks once; the language model reads each question with the picture"
    NOTHING = "questions are asked one by one"


LOOKS_BACK = {"blip": Reuse.FEATURES, "paligemma": Reuse.FEATURES, "instructblip": Reuse.NOTHING}
"""Model types that are not causal from end to end."""
PLAIN_LAYERS = {"full_attention", "sliding_attention"}
"""Kinds of layers over which a tree is known to be exact."""
INNER = ("language_model", "text_model")
TOWERS = ("visual", "vision_tower", "vision_model")
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.3}
"""Of log-probabilities, over the likeliest first tokens. Half precision rounds a sum differently in every shape."""
STEPS = 4
"""A logit of 30 is known to 0.125 in bfloat16; two ways that round it differently are soon some of these apart."""
LIKELIEST = 10
ASKED_BOTH_WAYS = 8


def contract(model: Module) -> Reuse:
    """The most that the model's architecture allows."""
    return ways(model)[0]


def ways(model: Module) -> list[Reuse]:
    """What may be tried with the model's architecture, best first; the last is always to share nothing."""
    if model.config.get_text_config().is_encoder_decoder:
        return [Reuse.FEATURES, Reuse.NOTHING]
    looking_back = LOOKS_BACK.get(model.config.model_type)
    if looking_back is not None:
        return list(dict.fromkeys([looking_back, Reuse.NOTHING]))
    hidden = language_model(model) is None or carries_a_state(model)
    return [*([] if hidden else [Reuse.PREFIX]), Reuse.TRUNK, Reuse.NOTHING]


def carries_a_state(model: Module) -> bool:
    """Whether a layer of the language model hands something on from token to token other than by attention.

    Over a tree such a layer would hand it on from one question to the next.
    """
    config, text = model.config.get_text_config(), language_model(model)
    kinds = {*(getattr(config, "layer_types", None) or ()), *(getattr(config, "layers_block_type", None) or ())}
    mixing = text is not None and any(isinstance(part, torch.nn.Conv1d) for part in text.modules())
    return mixing or not kinds <= PLAIN_LAYERS


def language_model(model: Module) -> Module | None:
    """The part that reads embeddings and gives hidden states, without the head; None where it is not known."""
    for owner in (model, getattr(model, "model", None)):
        for name in INNER:
            part = getattr(owner, name, None)
            if part is not None:
                return part if part.get_output_embeddings() is None else part.get_decoder()
    return None


def sample_questions(tree: PromptTree) -> list[int]:
    """A handful of questions: the shortest, the longest, and some spread over the tree."""
    ends = tree.depth[tree.last_tokens]
    order = np.argsort(tree.last_tokens, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, ASKED_BOTH_WAYS - 2).round().astype(int)]
    return list(dict.fromkeys([int(ends.argmin()), int(ends.argmax()), *map(int, spread)]))


def tolerance(dtype: object, plain: Tensor) -> float:
    """How far two ways may be apart in this precision: more where its steps at the likeliest logits are wide."""
    largest = _likeliest(plain).values.abs().max().float()
    step = torch.finfo(dtype).eps * 2.0 ** float(largest.log2().floor())
    return float(max(TOLERANCE.get(dtype, max(TOLERANCE.values())), STEPS * step))


def difference(ours: Tensor, plain: Tensor) -> float:
    """The largest distance between two ways' log-probabilities of the likeliest tokens."""
    own, theirs = (logits.float().log_softmax(dim=-1) for logits in (ours, plain))
    likeliest = _likeliest(theirs)
    distance = (own.gather(-1, likeliest.indices) - likeliest.values).abs().max()
    return float(distance) if torch.isfinite(own).all() else float("inf")


def _likeliest(tokens: Tensor) -> Output:
    return tokens.topk(min(LIKELIEST, tokens.shape[-1]), dim=-1)


@contextmanager
def looking_once(model: Module, pictures: int = 1) -> Iterator[None]:
    """While this lasts, the image tower looks once at the pictures it is given, each with all its questions."""
    tower = image_tower(model)
    assert tower is not None
    look = tower.forward
    seen: list[Output] = []

    def remembered(pixel_values: Tensor, **kwargs: object) -> Output:
        questions = len(pixel_values) // pictures
        if not seen:
            seen.append(look(pixel_values[::questions], **kwargs))
        return _repeated(seen[0], questions)

    with replaced_forward(tower, remembered):
        yield


def image_tower(model: Module) -> Module | None:
    """The part that looks at pictures; None where it is not known."""
    owners = (model, getattr(model, "model", None))
    parts = (getattr(owner, name, None) for owner in owners for name in TOWERS)
    return next((part for part in parts if part is not None), None)


def _repeated(features: Output, times: int) -> Output:
    """The features of each picture for several questions about it."""
    repeated = copy.copy(features)
    for name, value in features.items():
        if torch.is_tensor(value):
            repeated[name] = value.repeat_interleave(times, dim=0)
    return repeated
