"""Recorded: a function of one tensor on a card that is launched at once, whatever Python's other threads are doing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from beholder.models.checkpoint.checkpoint import torch
from beholder.models.torch_types import Tensor

PLAIN_CALLS = 2
"""So often a shape is computed plainly: libraries prepare themselves, and few batches are not worth a recording."""


class _Recording(NamedTuple):
    graph: object
    given: Tensor
    result: Tensor


class Recorded:
    """Once a shape has come a few times, its kernels are recorded as a CUDA graph, which one call launches.

    They are the kernels of the plain call, in its order, so the result is the same; it lasts until the next call. What
    cannot be recorded is called plainly.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._calls: Counter[object] = Counter()
        self._recordings: dict[object, _Recording | None] = {}

    def __call__(self, batch: Tensor) -> Tensor:
        shape = tuple(batch.shape), batch.dtype
        self._calls[shape] += 1
        if self._calls[shape] <= PLAIN_CALLS:
            return self._function(batch)
        if shape not in self._recordings:
            self._recordings = {shape: self._recorded(batch)}  # of one shape: each takes memory of its own
        recording = self._recordings[shape]
        if recording is None:
            return self._function(batch)
        recording.given.copy_(batch, non_blocking=True)
        recording.graph.replay()  # type: ignore[attr-defined]
        return recording.result

    def _recorded(self, batch: Tensor) -> _Recording | None:
        graph, given = torch.cuda.CUDAGraph(), batch.clone()
        try:
            # Other threads may use the card meanwhile: they decode pictures, which can wait for the model.
            first = torch.cuda.Stream(priority=-1)
            with torch.cuda.graph(graph, stream=first, capture_error_mode="thread_local"):
                result = self._function(given)
        except RuntimeError:  # the function asks the card for a value on the way, or memory is short
            torch.cuda.synchronize()
            return None
        return _Recording(graph, given, result)
