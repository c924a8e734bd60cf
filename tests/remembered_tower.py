"""The real image tower takes a tenth of a second for a photograph: what it gave is kept for models that share its file.

`results_of` imports this in each process that it starts, with the folder to keep vectors in.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


def remember(folder: Path) -> None:
    """From now on the same pixels are given to the same file once, by all processes that share the folder."""
    compute = onnxruntime.InferenceSession.run

    def run(session: Any, outputs: Any, inputs: dict[str, Any], *more: Any) -> Any:
        pixels = inputs.get("pixel_values")
        if pixels is None:
            return compute(session, outputs, inputs, *more)
        name = f"{os.path.realpath(session._model_path)}{outputs}{pixels.shape}".encode()
        kept = folder / hashlib.sha256(name + pixels.tobytes()).hexdigest()
        if not kept.exists():
            part = kept.with_suffix(f".{os.getpid()}")
            with part.open("wb") as file:
                np.save(file, compute(session, outputs, inputs, *more)[0])
            part.replace(kept)
        return [np.load(kept)]

    onnxruntime.InferenceSession.run = run
