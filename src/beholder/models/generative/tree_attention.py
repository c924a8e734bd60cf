"""Attention over a packed prompt tree, put into a transformers model by name.

Two ways, equal in what they compute. `blocks`, anywhere: queries are cut into short runs; as tokens stand in
depth-first order, all that a run can see is the ancestors of its first token and the run itself, which is gathered
into a small dense attention. `flex`, on a GPU: one FlexAttention kernel that skips the blocks nobody looks at.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from beholder.core.files import cache_folder, private_folder
from beholder.models.generative.model_types import model_type_of
from beholder.models.generative.prompt_tree import PromptTree
from beholder.models.spec import Config, Module, Tensor
from beholder.models.torch_scorer import replaced, torch, transformers

RUN = 64  # queries. Longer runs look at more of each other in vain; shorter ones gather the trunk more often
ALIGNED = 64
"""The kernel's block, of queries and of keys: a tree is ragged, and larger blocks look at more in vain. Packed tokens
are padded to a multiple of it on a GPU."""
WIDE = 128  # heads wider than this take half as many keys at a time, to fit into a small GPU's shared memory


@dataclass
class TreeMask:
    """What each packed token sees, in the forms that the two ways need."""

    tree: PromptTree
    own: Mapping[int | None, Tensor] = field(default_factory=dict)
    """By sliding window: the trunk's mask as the model itself makes it, where that is not plainly causal."""
    padded: int = 0  # tokens of no meaning behind the tree, which see only themselves

    _runs: dict[tuple[int | None, object], tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.tree.size + self.padded

    def rule(self, window: int | None, device: object) -> Callable[[Tensor, Tensor], Tensor]:
        """Whether queries see keys, for packed positions that broadcast."""
        trunk, padding = self.tree.trunk, np.arange(self.tree.size, self.size)
        end = torch.from_numpy(np.concatenate([self.tree.end, padding + 1])).to(device)
        depth = torch.from_numpy(np.concatenate([self.tree.depth, padding * 0])).to(device)
        inner = self.own[window].to(device) if window in self.own else None

        def sees(query: Tensor, key: Tensor) -> Tensor:
            seen = (key <= query) & (query < end[key])
            if window is not None:
                seen = seen & (depth[query] - depth[key] < window)
            if inner is not None:
                both = (query < trunk) & (key < trunk)
                seen = torch.where(both, inner[query.clamp(max=trunk - 1), key.clamp(max=trunk - 1)], seen)
            return seen

        return sees

    def runs(self, window: int | None, device: object) -> tuple[Tensor, Tensor, Tensor]:
        """Of the trunk, who sees whom; for each run below it, which tokens it is shown and who sees which."""
        if (window, device) not in self._runs:
            sees, positions = self.rule(window, "cpu"), torch.arange(self.tree.trunk)
            parts = sees(positions[:, None], positions[None, :]), *_gathered(self.tree, sees)
            trunk, keys, allowed = (part.to(device) for part in parts)
            self._runs[window, device] = trunk, keys, allowed
        return self._runs[window, device]

    def block_mask(self, window: int | None, device: object) -> Tensor:
        """The same for FlexAttention."""
        from torch.nn.attention.flex_attention import create_block_mask

        sees = self.rule(window, device)
        shape = None, None, self.size, self.size
        blocks = {"device": str(device), "BLOCK_SIZE": (ALIGNED, ALIGNED)}
        return create_block_mask(lambda batch, head, query, key: sees(query, key), *shape, **blocks)


def _gathered(tree: PromptTree, sees: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Runs of `RUN` queries with the tokens each is shown, padded to one width."""
    starts = range(tree.trunk, tree.size, RUN)
    above = [torch.from_numpy(tree.ancestors(start)) for start in starts]
    width = max(map(len, above)) + RUN
    keys = torch.zeros(len(starts), width, dtype=torch.int64)
    allowed = torch.zeros(len(starts), RUN, width, dtype=torch.bool)
    for row, (start, some) in enumerate(zip(starts, above, strict=True)):
        run = torch.arange(start, min(start + RUN, tree.size))
        shown = torch.cat([some, run])
        keys[row, : len(shown)] = shown
        allowed[row, : len(run), : len(shown)] = sees(run[:, None], shown[None, :])
        allowed[row, len(run) :, 0] = True  # a query behind the last one, cut off below, must see something
    return keys, allowed


_state = SimpleNamespace(mask=None)  # of the tree that is now attended over


@contextmanager
def _attending_by(config: Config, name: str, attention: Callable[..., tuple[Tensor, None]]) -> Iterator[None]:
    transformers.AttentionInterface.register(name, attention)
    with replaced(config, "_attn_implementation", name):
        yield


@contextmanager
def attending(config: Config, mask: TreeMask) -> Iterator[None]:
    """While this lasts, a language model with this config attends over the tree."""
    with replaced(_state, "mask", mask), _attending_by(config, "beholder_tree", tree_attention):
        yield


def tree_attention(
    module: Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: heads in the second axis going in, in the third coming out."""
    if softcap is not None:
        raise NotImplementedError("attention with a soft cap over a prompt tree")
    if attention_mask is not None:
        seen = _flex(query, key, value, attention_mask, scaling)
    else:
        seen = _blocks(query, key, value, _state.mask, sliding_window, scaling)
    return seen.transpose(1, 2), None


def _flex(query: Tensor, key: Tensor, value: Tensor, block_mask: Tensor, scaling: float | None) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    grouped = query.shape[1] != key.shape[1]
    keys = ALIGNED if query.shape[-1] <= WIDE else ALIGNED // 2
    tiles = {"BLOCK_M": ALIGNED, "BLOCK_N": keys, "num_warps": 4, "num_stages": 2} if query.is_cuda else None
    options = {"scale": scaling, "enable_gqa": grouped, "kernel_options": tiles}
    return flex_attention(query, key, value, block_mask=block_mask, **options)


def _blocks(
    query: Tensor, key: Tensor, value: Tensor, mask: TreeMask, window: int | None, scaling: float | None
) -> Tensor:
    trunk = mask.tree.trunk
    inner, keys, allowed = mask.runs(window, query.device)
    above = _dense(query[:, :, :trunk], key[:, :, :trunk], value[:, :, :trunk], inner, scaling)
    batch, heads, _, width = query.shape
    count = len(keys)
    behind = count * RUN - (query.shape[2] - trunk)
    below = torch.nn.functional.pad(query[:, :, trunk:], (0, 0, 0, behind))
    below = below.reshape(batch, heads, count, RUN, width).transpose(1, 2).flatten(0, 1)
    # What each run is shown; runs join the batch.
    key, value = (states[:, :, keys].transpose(1, 2).flatten(0, 1) for states in (key, value))
    seen = _dense(below, key, value, allowed.repeat(batch, 1, 1).unsqueeze(1), scaling)
    seen = seen.unflatten(0, (batch, count)).transpose(1, 2).reshape(batch, heads, count * RUN, -1)
    return torch.cat([above, seen[:, :, : query.shape[2] - trunk]], dim=2)


def _dense(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None) -> Tensor:
    """Attention by torch; query heads that share a key are folded into the queries, so that no key is copied."""
    batch, heads, length, width = query.shape
    shared = heads // key.shape[1]
    folded = query.reshape(batch, key.shape[1], shared * length, width)
    mask = mask.expand(*mask.shape[:-2], length, mask.shape[-1])
    mask = torch.cat([mask] * shared, dim=-2)
    seen = torch.nn.functional.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return seen.reshape(batch, heads, length, -1)


# Layers of a model, compiled, which replace the originals only while they are needed

# Where torch keeps what it compiled: anew, the first pictures took 40 s in place of 11 (Qwen2.5-VL-3B, one H200).
KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"


class CompiledLayers:
    """Layers of one kind share what is compiled; nothing is compiled before it is first used."""

    def __init__(self, layers: Sequence[Module]) -> None:
        with suppress(OSError):  # torch's own place is the folder for what may go at any time
            os.environ.setdefault(KEPT_IN, str(private_folder(cache_folder().with_name("beholder-compiled"))))
        self._layers = list(layers)
        self._forwards = [torch.compile(layer.forward) for layer in self._layers]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with ExitStack() as stack:
            for layer, forward in zip(self._layers, self._forwards, strict=True):
                stack.enter_context(replaced(layer, "forward", forward))
            yield


# Image towers that look through windows (Qwen2.5-VL and its kin), without a Python loop over the windows

_read: deque[tuple[Tensor, list[int]]] = deque(maxlen=2)


@contextmanager
def windows_at_once(model: Module) -> Iterator[None]:
    """While this lasts, a tower that is known to look through windows looks through all of them at once."""
    if not model_type_of(model.config.model_type).windows:
        yield
        return
    with _attending_by(model.config.vision_config, "beholder_windows_as_in_flash", _attention(model.device.type)):
        yield


@cache
def _attention(device: str) -> Callable[..., tuple[Tensor, None]]:
    """Where layers are compiled, this is left as it is: it asks for the windows' lengths."""
    return torch.compiler.disable(window_attention) if device == "cuda" else window_attention


def window_attention(
    module: Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention within each window; states are `[1, heads, patches, width]`, borders the windows' first patches."""
    borders = _borders(cu_seq_lens_q)
    lengths = [after - before for before, after in pairwise(borders)]
    query, key, value = (state[0].transpose(0, 1) for state in (query, key, value))
    if len(set(lengths)) == 1:
        return _batch(query, key, value, lengths[0], scaling).flatten(0, 1)[None], None
    seen = torch.empty_like(query)
    start = torch.tensor(borders[:-1], device=query.device)
    for length in set(lengths):
        first = start[[number for number, one in enumerate(lengths) if one == length]]
        index = (first[:, None] + torch.arange(length, device=query.device)).flatten()
        seen[index] = _batch(query[index], key[index], value[index], length, scaling).flatten(0, 1)
    return seen[None], None


def _borders(tensor: Tensor) -> list[int]:
    """Read once, not once a layer: reading waits for the GPU. Layers look through windows or at the whole picture."""
    for known, borders in _read:
        if known is tensor:
            return borders
    _read.append((tensor, tensor.tolist()))
    return _read[-1][1]


def _batch(query: Tensor, key: Tensor, value: Tensor, length: int, scaling: float | None) -> Tensor:
    """Windows of one length, `[windows × length, heads, width]` in, `[windows, length, heads, width]` out."""
    if length == 0:
        return query.new_empty(0, 0, *query.shape[1:])
    windows = (state.unflatten(0, (-1, length)).transpose(1, 2) for state in (query, key, value))
    seen = torch.nn.functional.scaled_dot_product_attention(*windows, scale=scaling)
    return seen.transpose(1, 2)
