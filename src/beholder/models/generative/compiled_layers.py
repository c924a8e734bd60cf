"""Layers of a model, compiled, which replace the originals only while they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from beholder.core.files import cache_folder, private_folder
from beholder.models.checkpoint.checkpoint import replaced_forward, torch
from beholder.models.torch_types import Module

KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch keeps what it compiled: anew, the first pictures took 40 s in place of 11 (Qwen2.5-VL-3B, one H200)."""


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
                stack.enter_context(replaced_forward(layer, forward))
            yield
