"""The real image tower takes a tenth of a second for a photograph: what onnxruntime gave for the same pixels is kept.

`results_of` has the processes that it starts remember, and computations by hand may do the same.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

PIXELS = "pixel_values"
compute = onnxruntime.InferenceSession.run


def vectors(tower: Any, inputs: dict[str, Any], folder: Path, output: str = "image_embeds") -> Any:
    """What the tower gives for these pixels; computed once by all processes that share the folder."""
    name = f"{os.path.realpath(tower._model_path)}{output}{inputs[PIXELS].shape}{inputs[PIXELS].dtype}"
    kept = folder / hashlib.sha256(name.encode() + inputs[PIXELS].tobytes()).hexdigest()
    if not kept.exists():
        part = kept.with_suffix(f".{os.getpid()}")
        with part.open("wb") as file:
            np.save(file, compute(tower, [output], inputs)[0])
        part.replace(kept)
    return np.load(kept)


def remember(folder: Path) -> None:
    """From now on every tower in this process looks at the same pixels once."""

    def run(tower: Any, outputs: Any, inputs: dict[str, Any], *more: Any) -> Any:
        if PIXELS in inputs and outputs and len(outputs) == 1:
            return [vectors(tower, inputs, folder, outputs[0])]
        return compute(tower, outputs, inputs, *more)

    onnxruntime.InferenceSession.run = run
