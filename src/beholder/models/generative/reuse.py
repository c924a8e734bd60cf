"""What a model lets us reuse between questions about one picture: the contract, and its proof on the model at hand.

A causal language model never looks ahead, so what it made of the picture and of the words that all questions begin
with serves all of them. A model whose picture looks at the question (PaliGemma, encoder-decoders) lets only the
image tower's work be kept; one whose image tower reads the question (InstructBLIP) lets nothing be kept.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from enum import Enum
from functools import cached_property

import numpy as np

from beholder.models.checkpoint.checkpoint import replaced_forward, running, torch
from beholder.models.generative.loaded_model import LoadedModel
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.scorer import batches
from beholder.models.spec import Module, Output, Tensor


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


# One image, many questions, for models on which no tree can be planted

WAY = "from a kept beginning, several at once"
BESIDE = "cross_attention_mask"
"""Which pictures a word may look at, where pictures are no part of the words: all words of a question alike."""


class TrunkRunner:
    """Runs the questions of a tree from what the model keeps of their trunk."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded, self._model = loaded, loaded.model
        self._seen_positions: Tensor | None = None

    def way(self, tree: PromptTree) -> str:
        """How the questions are run; the same for every tree."""
        return WAY

    def give_up_kernel(self) -> bool:
        """There is none."""
        return False

    def logits(self, tree: PromptTree, inputs: Mapping[str, Tensor]) -> Tensor:
        """`[pictures, prompts, vocabulary]`; `inputs` are the pictures with one of the prompts, alike for all."""
        branches = [tree.spelled(number)[tree.trunk :] for number in range(len(tree.last_tokens))]
        order = sorted(range(len(branches)), key=lambda number: len(branches[number]))
        rows: dict[int, Tensor] = {}
        with running():
            kept = self._read_trunk(tree.trunk, inputs)
            for numbers in batches(order, self._loaded.questions):
                answers = self._branch(kept, [branches[number] for number in numbers], tree.trunk, inputs)
                rows |= {number: answers[:, at] for at, number in enumerate(numbers)}
        return torch.stack([rows[number] for number in range(len(branches))], dim=1)

    def _read_trunk(self, trunk: int, inputs: Mapping[str, Tensor]) -> Output:
        """The model's own cache after the trunk."""
        of_picture = self._loaded.pictures.made
        cut = {name: value if name in of_picture else value[:, :trunk] for name, value in inputs.items()}
        with self._noting_positions():
            output = self._model(**cut, use_cache=True, **self._keeping(torch.tensor([trunk - 1])))
        kept = getattr(output, "past_key_values", None)
        if kept is None:
            raise NotImplementedError("the model keeps nothing of what it has read")
        return kept

    def _branch(self, kept: Output, branches: list[list[int]], trunk: int, inputs: Mapping[str, Tensor]) -> Tensor:
        """The logits at the last token of each branch, for each picture."""
        ids, pictures = inputs["input_ids"], len(inputs["input_ids"])
        longest = max(map(len, branches))
        rows = torch.tensor([[*branch, *[0] * (longest - len(branch))] for branch in branches], device=ids.device)
        told = {"input_ids": rows.repeat(pictures, 1), "use_cache": True}
        told["attention_mask"] = torch.ones(len(told["input_ids"]), trunk + longest, dtype=ids.dtype, device=ids.device)
        told["past_key_values"] = _copied(kept, pictures, len(branches))
        if self._seen_positions is not None and "position_ids" in self._accepted:
            told["position_ids"] = _after(self._seen_positions, len(branches), longest)
        if BESIDE in inputs:
            last = inputs[BESIDE][:, trunk - 1 : trunk].repeat_interleave(len(branches), dim=0)
            told[BESIDE] = last.repeat(1, longest, *[1] * (last.ndim - 2))
        ends = torch.tensor([len(branch) - 1 for branch in branches])
        read = ends.unique()
        logits = self._model(**told, **self._keeping(read)).logits.unflatten(0, (pictures, -1))
        at = torch.searchsorted(read, ends) if "logits_to_keep" in self._accepted else ends
        return logits[:, torch.arange(len(branches)), at.to(logits.device)]

    def _keeping(self, positions: Tensor) -> dict[str, Tensor]:
        """Logits at these positions only, where the model can be asked for some."""
        return {"logits_to_keep": positions.to(self._model.device)} if "logits_to_keep" in self._accepted else {}

    @cached_property
    def _accepted(self) -> set[str]:
        return set(inspect.signature(self._model.forward).parameters)

    @contextmanager
    def _noting_positions(self) -> Iterator[None]:
        """Remembers the positions that the model gives to the tokens of the trunk."""
        self._seen_positions, text = None, language_model(self._model)
        if text is None:
            yield
            return
        forward = text.forward

        def noting(*args: object, position_ids: Tensor = None, **kwargs: object) -> Output:
            self._seen_positions = position_ids
            return forward(*args, position_ids=position_ids, **kwargs)

        with (
            replaced_forward(text, noting) if "position_ids" in inspect.signature(forward).parameters else nullcontext()
        ):
            yield


def _after(positions: Tensor, branches: int, length: int) -> Tensor:
    """The positions that follow the trunk, for every picture and branch.

    A picture's tokens may have a time, a row and a column; words behind it go on after the largest of the three. A
    fourth kind, before those three, counts tokens.
    """
    last = positions.amax(dim=-1, keepdim=True)
    if last.ndim == 3:
        last = torch.cat([last[:-3], last[-3:].amax(dim=0, keepdim=True).expand_as(last[-3:])])
    following = last + 1 + torch.arange(length, device=positions.device)
    return following.repeat_interleave(branches, dim=-2)


def _copied(kept: Output, pictures: int, branches: int) -> Output:
    """The cache of some pictures, once for every branch of each; the original stays as it is."""
    copied = copy.copy(kept)
    copied.layers = [_shallow(layer) for layer in kept.layers]
    copied.reorder_cache(torch.arange(pictures).repeat_interleave(branches))
    return copied


def _shallow(layer: Output) -> Output:
    """A cache layer of its own whose tensors are the original's until they are replaced."""
    twin = copy.copy(layer)
    for name, value in vars(layer).items():
        if isinstance(value, list | dict):
            setattr(twin, name, copy.copy(value))
    return twin
