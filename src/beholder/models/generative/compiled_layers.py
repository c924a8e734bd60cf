"""Layers of a model, compiled, which replace the originals only while they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from beholder.models.checkpoint.checkpoint import replaced_forward, torch
from beholder.models.torch_types import Module


class CompiledLayers:
    """Layers of one kind share what is compiled; nothing is compiled before it is first used."""

    def __init__(self, layers: Sequence[Module]) -> None:
        self._layers = list(layers)
        self._forwards = [torch.compile(layer.forward) for layer in self._layers]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with ExitStack() as stack:
            for layer, forward in zip(self._layers, self._forwards, strict=True):
                stack.enter_context(replaced_forward(layer, forward))
            yield
