"""One image, many questions: all prompts about a picture in one pass over their tree.

The model is called as always, with the pictures and one of the prompts. Where its language model would read that
prompt, it is given the whole tree instead: the trunk's embeddings as the model made them, picture included, then the
embeddings of all other tokens, with the positions they have in their own prompts and a mask by which each sees
only its own prompt. What comes back is cut to the last token of each prompt, and the model goes on to its logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from beholder.models.checkpoint.checkpoint import replaced_forward, running, torch
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.generative.reuse import image_tower, language_model
from beholder.models.generative.tree_attention import (
    ALIGNED,
    Bools,
    CompiledLayers,
    TreeMask,
    attending,
    windows_at_once,
)
from beholder.models.spec import Config, Module, Output, Tensor

WORDS_AGAIN = "per_layer_inputs"
"""What Gemma 3n and 4 hand to the language model beside the embeddings: an embedding of each word for every layer."""
SLIDING = "sliding_attention"
BLOCKS, KERNEL = "block by block", "by a compiled kernel"
WORTH_COMPILING = 2048
"""Packed tokens; for fewer, compiling takes longer than the work, and a GPU gathers small blocks fast enough."""
KEPT = 8
"""Masks kept at a time."""
Masks = Tensor | dict[str, Tensor]  # one for all layers, or one for each kind of layer


class _Kernel(NamedTuple):
    """What is compiled: the layers that read, with attention over the tree, and those that look."""

    text: CompiledLayers
    tower: CompiledLayers


class TreeRunner:
    """Runs trees through one model; masks are kept for trees seen before."""

    def __init__(self, model: Module) -> None:
        self._model = model
        text = language_model(model)
        if text is None:
            raise NotImplementedError("its language model is no part of its own")
        self._text = text
        compiling = _on_one_gpu(model)
        self._kernel = _Kernel(CompiledLayers(text.layers), CompiledLayers(_tower_layers(model))) if compiling else None
        last = getattr(getattr(text, "layers", [None])[-1], "mlp", None)
        self._last = None if last is None else _LastStep(last, compiling=compiling)
        self._masks: dict[int, tuple[PromptTree, TreeMask, dict[str, Tensor]]] = {}

    def way(self, tree: PromptTree) -> str:
        """How attention over this tree is computed: by a kernel where it repays compiling it."""
        return KERNEL if self._kernel and tree.size >= WORTH_COMPILING else BLOCKS

    def give_up_kernel(self) -> bool:
        """From now on without a kernel; False if there was none to give up."""
        had, self._kernel, self._masks = self._kernel is not None, None, {}
        return had

    def logits(self, tree: PromptTree, inputs: Mapping[str, Tensor]) -> Tensor:
        """`[pictures, prompts, vocabulary]`; `inputs` are the pictures with one of the prompts, alike for all."""
        planted = _Planted(self, tree)
        grown = partial(planted.grow, self._text.forward)
        looking = self._kernel.tower.in_place() if self._kernel and self.way(tree) == KERNEL else nullcontext()
        with running(), windows_at_once(self._model), looking, replaced_forward(self._text, grown):
            return self._model(**inputs, use_cache=False).logits

    def embed(self, ids: Tensor) -> Tensor:
        """Words as the model reads them."""
        return self._model.get_input_embeddings()(ids)

    def embed_again(self, ids: Tensor) -> Tensor:
        """Words as Gemma's layers read each of them once more, `[1, words, layers, width]`."""
        return self._text.get_per_layer_inputs(ids[None])

    @property
    def device(self) -> object:
        """Where the words' embeddings lie."""
        return self._model.get_input_embeddings().weight.device

    def hidden(self, forward: Callable[..., Output], mask: TreeMask, handed: Masks, **kwargs: Tensor) -> Output:
        """The language model's own output at the last token of each prompt."""
        compiled = self._kernel.text.in_place() if self._kernel and _kernel_mask(handed) else nullcontext()
        positions = torch.from_numpy(mask.tree.last_tokens).to(kwargs["inputs_embeds"].device)
        reading = self._last.reading(positions) if self._last else nullcontext()
        with attending(self._text.config, mask), compiled, reading:
            output = forward(**kwargs, attention_mask=handed, use_cache=False)
        output.last_hidden_state = output.last_hidden_state[:, positions.to(output.last_hidden_state.device)]
        return output

    def mask(self, tree: PromptTree, given: Masks) -> tuple[TreeMask, Masks]:
        """The tree's mask, and what the layers are handed of it: they look it up where they are handed nothing."""
        if id(tree) not in self._masks:
            kernel, windows = self.way(tree) == KERNEL, _windows(self._text.config)
            own = _own_masks(given, tree.trunk, windows)
            mask = TreeMask(tree, own, padded=-tree.size % ALIGNED if kernel else 0)
            device = self._model.device
            handed = {name: mask.block_mask(window, device) if kernel else None for name, window in windows.items()}
            kept = dict(list(self._masks.items())[1 - KEPT :])
            self._masks = {**kept, id(tree): (tree, mask, handed)}
        _, mask, handed = self._masks[id(tree)]
        return mask, handed if len(handed) > 1 else next(iter(handed.values()))


@dataclass
class _Planted:
    """The moment a prompt reaches the language model and is replaced by the tree."""

    runner: TreeRunner
    tree: PromptTree

    def grow(
        self,
        forward: Callable[..., Output],
        *args: object,
        inputs_embeds: Tensor = None,
        attention_mask: Masks = None,
        position_ids: Tensor = None,
        past_key_values: object = None,
        use_cache: object = None,
        **others: Tensor,
    ) -> Output:
        if args and any(arg is not None for arg in args):
            raise NotImplementedError("its language model is given its inputs without names")
        if inputs_embeds is None:
            raise NotImplementedError("its language model reads words, not embeddings with the picture among them")
        mask, handed = self.runner.mask(self.tree, attention_mask)
        device = inputs_embeds.device
        others = {name: self._lengthened(name, value, inputs_embeds, mask.size) for name, value in others.items()}
        return self.runner.hidden(
            forward,
            mask,
            handed,
            inputs_embeds=self._embedded(inputs_embeds, mask.size),
            position_ids=self._positions(position_ids, mask.size, device),
            **others,
        )

    def _embedded(self, prompt: Tensor, size: int) -> Tensor:
        """The trunk as it is, then every other token by itself."""
        below = self.runner.embed(self._below(size)).to(prompt)
        return torch.cat([prompt[:, : self.tree.trunk], below.expand(len(prompt), -1, -1)], dim=1)

    def _positions(self, given: Tensor, size: int, device: object) -> Tensor:
        """In the trunk as given; below it, one more for each token of the prompt, as after any picture."""
        tree = self.tree
        depth = torch.from_numpy(np.concatenate([tree.depth, np.zeros(size - tree.size, dtype=np.int64)]))
        if given is None:
            return depth[None].to(device)
        trunk = given[..., : tree.trunk]
        below = (depth[tree.trunk :] - tree.trunk).clamp(min=0).to(given.device)
        return torch.cat([trunk, given[..., tree.trunk : tree.trunk + 1] + below], dim=-1)

    def _lengthened(self, name: str, value: Tensor, prompt: Tensor, size: int) -> Tensor:
        """What else runs along the prompt: of Qwen3's picture positions nothing is below the trunk."""
        if not torch.is_tensor(value) or value.shape[:2] != prompt.shape[:2]:
            return value
        trunk = value[:, : self.tree.trunk]
        if name == WORDS_AGAIN:
            return torch.cat([trunk, self.runner.embed_again(self._below(size)).expand(len(value), -1, -1, -1)], dim=1)
        below = (*value.shape[:1], size - self.tree.trunk, *value.shape[2:])
        return torch.cat([trunk, value.new_zeros(below)], dim=1)

    def _below(self, size: int) -> Tensor:
        """The tokens below the trunk; padding is any token."""
        ids = np.concatenate([self.tree.ids[self.tree.trunk :], np.zeros(size - self.tree.size, dtype=np.int64)])
        return torch.from_numpy(ids).to(self.runner.device)


class _LastStep:
    """Stands in for the last layer's feed-forward part: only the tokens that are read off go through it.

    The others get nothing, and nobody asks for them: no layer follows.
    """

    def __init__(self, module: Module, *, compiling: bool) -> None:
        self._module, self._forward, self._positions = module, module.forward, torch.empty(0)
        self._apart = torch.compiler.disable(self._only_read) if compiling else self._only_read

    @contextmanager
    def reading(self, positions: Tensor) -> Iterator[None]:
        self._positions = positions
        with replaced_forward(self._module, self._apart):
            yield

    def _only_read(self, states: Tensor, *others: object) -> Output:
        if others:  # what else runs along the tokens (Ernie's kinds of tokens) would have to be cut too
            return self._forward(states, *others)
        positions = self._positions.to(states.device)
        read = self._forward(states[:, positions])
        if not torch.is_tensor(read):  # experts give more than states
            return self._forward(states)
        return torch.zeros_like(states).index_copy_(1, positions, read)


def _tower_layers(model: Module) -> list[Module]:
    """The layers of the part that looks at pictures: its longest list of modules; none where it is not known."""
    tower = image_tower(model)
    lists = [part for part in tower.modules() if isinstance(part, torch.nn.ModuleList)] if tower else []
    return list(max(lists, key=len, default=[]))


def _on_one_gpu(model: Module) -> bool:
    placed = set(getattr(model, "hf_device_map", {}).values())
    return model.device.type == "cuda" and len(placed) <= 1


def _windows(config: Config) -> dict[str, int | None]:
    """The kinds of layers, each with how far back it looks."""
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    window = getattr(config, "sliding_window", None)
    return {kind: window if kind == SLIDING else None for kind in dict.fromkeys(kinds)}


def _kernel_mask(handed: Masks) -> bool:
    """Whether what the layers are handed is for the kernel."""
    one = next(iter(handed.values())) if isinstance(handed, dict) else handed
    return one is not None


def _own_masks(given: Masks, trunk: int, windows: Mapping[str, int | None]) -> dict[int | None, Bools]:
    """The model's masks of the trunk, by window; none where it made no mask, being plainly causal."""
    named = given if isinstance(given, dict) else {"full_attention": given}
    masks = {}
    for name, mask in named.items():
        if name in windows and torch.is_tensor(mask) and mask.ndim == 4:
            seen = mask[0, 0, :trunk, :trunk]
            masks[windows[name]] = (seen if seen.dtype == torch.bool else seen == 0).cpu().numpy()
    return masks
