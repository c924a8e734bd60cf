"""One image, many questions, for models on which no tree can be planted: the trunk is read once and kept.

Layers that carry a state from token to token (Qwen3.5, LFM2-VL), that look at the picture beside the words (Llama 3.2
Vision), or that hide their language model (Chameleon) keep what they made of the trunk in the cache with which they
generate. Every question goes on from a copy of it, several at once. They are padded behind their last token, which
no token before it ever sees.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property

from beholder.models.checkpoint.checkpoint import replaced_forward, torch
from beholder.models.checkpoint.torch_scorer import running
from beholder.models.contrastive.embedding import batches
from beholder.models.generative.loaded_model import LoadedModel
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.generative.reuse import language_model
from beholder.models.torch_types import Output, Tensor

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
