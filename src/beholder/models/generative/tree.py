"""One image, many questions: what a model lets us reuse between them, and the two ways to run their tree.

A causal language model never looks ahead, so what it made of the picture and of the words that all questions begin
with serves all of them. A model whose picture looks at the question (PaliGemma, encoder-decoders) lets only the
image tower's work be kept; one whose image tower reads the question (InstructBLIP) lets nothing be kept.
"""

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np

from beholder.models.generative.loaded_model import LoadedModel
from beholder.models.generative.model_types import Reuse, model_type_of
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.generative.tree_attention import ALIGNED, CompiledLayers, TreeMask, attending, windows_at_once
from beholder.models.scorer import batches
from beholder.models.spec import Module, Output, Tensor
from beholder.models.torch_scorer import replaced, running, torch


def ways(model: Module) -> list[Reuse]:
    """What may be tried with the model's architecture, best first; the last is always to share nothing.

    A layer that hands something on from token to token other than by attention would hand it on over a tree from one
    question to the next.
    """
    config, text = model.config.get_text_config(), language_model(model)
    known = model_type_of(model.config.model_type).reuse
    kinds = {*(getattr(config, "layer_types", None) or ()), *(getattr(config, "layers_block_type", None) or ())}
    # Attention to a choice of tokens, which a kept beginning may change.
    if getattr(config, "index_topk", None) or any(
        re.search("sparse|indexed|compressed|reference", kind) for kind in kinds
    ):
        known = Reuse.NOTHING
    if config.is_encoder_decoder:
        known = Reuse.FEATURES
    if known is not None:
        return list(dict.fromkeys([known, Reuse.NOTHING]))
    by_attention = kinds <= {"full_attention", "sliding_attention"}
    if text is None or not by_attention or any(isinstance(part, torch.nn.Conv1d) for part in text.modules()):
        return [Reuse.TRUNK, Reuse.NOTHING]
    return [Reuse.PREFIX, Reuse.TRUNK, Reuse.NOTHING]


def _part(model: Module, names: tuple[str, ...]) -> Module | None:
    """The first part of the model that has one of these names; None where it is not known."""
    owners = (model, getattr(model, "model", None))
    parts = (getattr(owner, name, None) for owner in owners for name in names)
    return next((part for part in parts if part is not None), None)


def language_model(model: Module) -> Module | None:
    """The part that reads embeddings and gives hidden states, without the head; None where it is not known."""
    part = _part(model, ("language_model", "text_model"))
    return part if part is None or part.get_output_embeddings() is None else part.get_decoder()


def image_tower(model: Module) -> Module | None:
    """The part that looks at pictures; None where it is not known."""
    return _part(model, ("visual", "vision_tower", "vision_model"))


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
        repeated = copy.copy(seen[0])
        for name, value in seen[0].items():
            if torch.is_tensor(value):
                repeated[name] = value.repeat_interleave(questions, dim=0)
        return repeated

    with replaced(tower, "forward", remembered):
        yield


# All prompts about a picture in one pass over their tree

WORDS_AGAIN = "per_layer_inputs"
"""What Gemma 3n and 4 hand to the language model beside the embeddings: an embedding of each word for every layer."""
BLOCKS, KERNEL = "block by block", "by a compiled kernel"
WORTH_COMPILING = 2048  # packed tokens; for fewer, compiling takes longer than the work
KEPT = 8  # masks at a time
Masks = Tensor | dict[str, Tensor]  # one for all layers, or one for each kind of layer


class TreeRunner:
    """Runs trees through one model; masks are kept for trees seen before.

    The model is called as always, with the pictures and one of the prompts. Where its language model would read that
    prompt, it is given the whole tree instead: the trunk's embeddings as the model made them, picture included, then
    the embeddings of all other tokens, with the positions they have in their own prompts and a mask by which each sees
    only its own prompt. What comes back is cut to the last token of each prompt, and the model goes on to its logits.
    """

    def __init__(self, model: Module) -> None:
        self._model = model
        text = language_model(model)
        if text is None:
            raise NotImplementedError("its language model is not a separate submodule")
        self._text = text
        compiling = model.device.type == "cuda" and len(set(getattr(model, "hf_device_map", {}).values())) <= 1
        # What is compiled: the layers that read, with attention over the tree, and those that look.
        self._kernel = (CompiledLayers(text.layers), CompiledLayers(_tower_layers(model))) if compiling else None
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
        grown = partial(self._grow, tree, self._text.forward)
        looking = self._kernel[1].in_place() if self._kernel and self.way(tree) == KERNEL else nullcontext()
        with running(), windows_at_once(self._model), looking, replaced(self._text, "forward", grown):
            return self._model(**inputs, use_cache=False).logits

    def _grow(
        self,
        tree: PromptTree,
        forward: Callable[..., Output],
        *args: object,
        inputs_embeds: Tensor = None,
        attention_mask: Masks = None,
        position_ids: Tensor = None,
        past_key_values: object = None,
        use_cache: object = None,
        **others: Tensor,
    ) -> Output:
        """What the language model is called with in place of a prompt; its own output at each prompt's last token."""
        if any(arg is not None for arg in args):
            raise NotImplementedError("its language model is given its inputs without names")
        if inputs_embeds is None:
            raise NotImplementedError("its language model reads words, not embeddings with the picture among them")
        mask, handed = self._mask(tree, attention_mask)
        embed = self._model.get_input_embeddings()
        below = torch.from_numpy(np.pad(tree.ids[tree.trunk :], (0, mask.padded))).to(embed.weight.device)
        words = embed(below).to(inputs_embeds).expand(len(inputs_embeds), -1, -1)
        kwargs = {
            name: self._lengthened(name, value, tree.trunk, below)
            if torch.is_tensor(value) and value.shape[:2] == inputs_embeds.shape[:2]
            else value
            for name, value in others.items()
        }
        kwargs["inputs_embeds"] = torch.cat([inputs_embeds[:, : tree.trunk], words], dim=1)
        kwargs["position_ids"] = _positions(tree, position_ids, mask.size).to(inputs_embeds.device)
        compiled = self._kernel[0].in_place() if self._kernel and self.way(tree) == KERNEL else nullcontext()
        last = torch.from_numpy(tree.last_tokens).to(inputs_embeds.device)
        reading = self._last.reading(last) if self._last else nullcontext()
        with attending(self._text.config, mask), compiled, reading:
            output = forward(**kwargs, attention_mask=handed, use_cache=False)
        output.last_hidden_state = output.last_hidden_state[:, last.to(output.last_hidden_state.device)]
        return output

    def _lengthened(self, name: str, value: Tensor, trunk: int, below: Tensor) -> Tensor:
        """What else runs along the prompt: of Qwen3's picture positions nothing is below the trunk."""
        if name == WORDS_AGAIN:
            following = self._text.get_per_layer_inputs(below[None]).expand(len(value), -1, -1, -1)
        else:
            following = value.new_zeros(len(value), len(below), *value.shape[2:])
        return torch.cat([value[:, :trunk], following], dim=1)

    def _mask(self, tree: PromptTree, given: Masks) -> tuple[TreeMask, Masks]:
        """The tree's mask, and what the layers are handed of it: they look it up where they are handed nothing."""
        if id(tree) not in self._masks:
            config, kernel = self._text.config, self.way(tree) == KERNEL
            kinds = dict.fromkeys(getattr(config, "layer_types", None) or ["full_attention"])
            window = getattr(config, "sliding_window", None)
            windows = {kind: window if kind == "sliding_attention" else None for kind in kinds}
            own = {}  # the model's masks of the trunk, by window; none where it made no mask, being plainly causal
            for name, one in (given if isinstance(given, dict) else {"full_attention": given}).items():
                if name in windows and torch.is_tensor(one) and one.ndim == 4:
                    seen = one[0, 0, : tree.trunk, : tree.trunk]
                    own[windows[name]] = seen if seen.dtype == torch.bool else seen == 0
            mask = TreeMask(tree, own, padded=-tree.size % ALIGNED if kernel else 0)
            device = self._model.device
            handed = {name: mask.block_mask(window, device) if kernel else None for name, window in windows.items()}
            kept = dict(list(self._masks.items())[1 - KEPT :])
            self._masks = {**kept, id(tree): (tree, mask, handed)}
        _, mask, handed = self._masks[id(tree)]
        return mask, handed if len(handed) > 1 else next(iter(handed.values()))


def _positions(tree: PromptTree, given: Tensor, size: int) -> Tensor:
    """In the trunk as given; below it, one more for each token of the prompt, as after any picture."""
    depth = torch.from_numpy(np.pad(tree.depth, (0, size - tree.size)))
    if given is None:
        return depth[None]
    trunk = given[..., : tree.trunk]
    below = (depth[tree.trunk :] - tree.trunk).clamp(min=0).to(given.device)
    return torch.cat([trunk, given[..., tree.trunk : tree.trunk + 1] + below], dim=-1)


class _LastStep:
    """Stands in for the last layer's feed-forward part: only tokens that are read go through it; no layer follows."""

    def __init__(self, module: Module, *, compiling: bool) -> None:
        self._module, self._forward, self._positions = module, module.forward, torch.empty(0)
        self._apart = torch.compiler.disable(self._only_read) if compiling else self._only_read

    @contextmanager
    def reading(self, positions: Tensor) -> Iterator[None]:
        self._positions = positions
        with replaced(self._module, "forward", self._apart):
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


# For models on which trees are unsupported: each question goes on from what the model keeps of the trunk

BESIDE = "cross_attention_mask"
"""Which pictures a word may look at, where pictures are no part of the words: all words of a question alike."""


class TrunkRunner:
    """Runs the questions of a tree from what the model keeps of their trunk."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded, self._model = loaded, loaded.model
        self._accepted = set(inspect.signature(loaded.model.forward).parameters)
        self._seen_positions: Tensor | None = None

    def way(self, tree: PromptTree) -> str:
        """How the questions are run; the same for every tree."""
        return "from a kept beginning, several at once"

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
        """The model's own cache after the trunk, and on the way the positions that it gives to the trunk's tokens."""
        of_picture = self._loaded.pictures.made
        cut = {name: value if name in of_picture else value[:, :trunk] for name, value in inputs.items()}
        self._seen_positions, text = None, language_model(self._model)

        def note(module: Module, args: object, kwargs: Mapping[str, Tensor]) -> None:
            self._seen_positions = kwargs.get("position_ids")

        with nullcontext() if text is None else text.register_forward_pre_hook(note, with_kwargs=True):
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
        given = {"input_ids": rows.repeat(pictures, 1), "use_cache": True}
        given["attention_mask"] = ids.new_ones(len(given["input_ids"]), trunk + longest)
        given["past_key_values"] = _copied(kept, pictures, len(branches))
        if self._seen_positions is not None and "position_ids" in self._accepted:
            given["position_ids"] = _after(self._seen_positions, len(branches), longest)
        if BESIDE in inputs:
            last = inputs[BESIDE][:, trunk - 1 : trunk].repeat_interleave(len(branches), dim=0)
            given[BESIDE] = last.repeat(1, longest, *[1] * (last.ndim - 2))
        ends = torch.tensor([len(branch) - 1 for branch in branches])
        read = ends.unique()
        logits = self._model(**given, **self._keeping(read)).logits.unflatten(0, (pictures, -1))
        at = torch.searchsorted(read, ends) if "logits_to_keep" in self._accepted else ends
        return logits[:, torch.arange(len(branches)), at.to(logits.device)]

    def _keeping(self, positions: Tensor) -> dict[str, Tensor]:
        """Logits at these positions only, where the model can be asked for some."""
        return {"logits_to_keep": positions.to(self._model.device)} if "logits_to_keep" in self._accepted else {}


def _after(positions: Tensor, branches: int, length: int) -> Tensor:
    """The positions that follow the trunk, for every picture and branch."""
    last = positions.amax(dim=-1, keepdim=True)
    # Of a time, a row and a column, words go on after the largest. A fourth kind, before those, counts tokens.
    if last.ndim == 3:
        last = torch.cat([last[:-3], last[-3:].amax(dim=0, keepdim=True).expand_as(last[-3:])])
    following = last + 1 + torch.arange(length, device=positions.device)
    return following.repeat_interleave(branches, dim=-2)


def _copied(kept: Output, pictures: int, branches: int) -> Output:
    """The cache of some pictures, once for every branch of each; the original stays as it is."""
    copied = copy.copy(kept)
    copied.layers = [copy.copy(layer) for layer in kept.layers]
    for layer in copied.layers:
        for name, value in vars(layer).items():
            if isinstance(value, list | dict):
                setattr(layer, name, copy.copy(value))
    copied.reorder_cache(torch.arange(pictures).repeat_interleave(branches))
    return copied
