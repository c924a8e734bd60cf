"""An audit slow enough to be killed in the middle: `slow_audit.py FOLDER STORE OUT LOG [SECONDS PER IMAGE]`.

Every image that the model is really asked about leaves a line in LOG before its block is written.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

import beholder.audit as audit
import beholder.scores.fill as fill
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.studies.custom.study import custom_study


class Slow(ContrastiveScorer):
    """Vectors that depend on what else is in the batch, by a hair, as on real hardware: a resumed run must not."""

    batch_size = 4

    def __init__(self, log: Path, pause: float) -> None:
        self.spec = ModelSpec("slow", "test", "none", "1", settings={"logit_scale": 5.0})
        self._log, self._pause = log, pause

    def prepare(self, image: Image.Image) -> bytes:
        return hashlib.sha256(image.tobytes()).digest()

    def embed_prepared(self, prepared: Sequence[bytes]) -> np.ndarray:
        time.sleep(self._pause * len(prepared))
        with self._log.open("a") as log:
            log.write("".join(f"{picture.hex()}\n" for picture in prepared))
        shift = int.from_bytes(hashlib.sha256(b"".join(prepared)).digest()[:2], "little") * 1e-10
        return self._vectors(prepared) + np.float32(shift)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors([hashlib.sha256(text.encode()).digest() for text in texts])

    def _vectors(self, items: Sequence[bytes]) -> np.ndarray:
        seeds = [int.from_bytes(item[:4], "little") for item in items]
        return unit_rows(np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds]))


def main(folder: str, store: str, out: str, log: str, pause: str = "0.002") -> None:
    fill.BLOCK_ROWS = 8
    audit.load_model = lambda name, options: Slow(Path(log), float(pause))  # type: ignore[assignment]
    audit.write_report = lambda run, folder: folder  # type: ignore[assignment]  # the page is tested elsewhere
    rows = [{"text": text, "level": "words", "concept": text} for text in ("kind", "cold", "clever")]
    benchmark = custom_study(prompt_set("words", rows), by=("gender",))
    options = audit.AuditOptions(out=Path(out), store=Path(store), dataset=f"folder:{folder}")
    audit.audit_models(["slow"], [benchmark], options)


if __name__ == "__main__":
    main(*sys.argv[1:])
