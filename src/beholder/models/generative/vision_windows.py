"""Image towers that look through windows (Qwen2.5-VL and its kin), without a Python loop over the windows.

transformers hands the windows' borders over only to what calls itself flash attention; to all else it gives one
window after another. So this calls itself that: windows of one length become a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

from beholder.models.checkpoint.checkpoint import torch, transformers
from beholder.models.torch_types import Module, Tensor

NAME = "beholder_windows_as_in_flash"
_read: deque[tuple[Tensor, list[int]]] = deque(maxlen=2)
TOWERS = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl"}


@contextmanager
def windows_at_once(model: Module) -> Iterator[None]:
    """While this lasts, a tower that is known to look through windows looks through all of them at once."""
    if model.config.model_type not in TOWERS:
        yield
        return
    transformers.AttentionInterface.register(NAME, _attention(model.device.type))
    config = model.config.vision_config
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


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
