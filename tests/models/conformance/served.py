"""A tiny random LLaVA behind a real local server, and what its own forward pass gives for the first token."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import served_app as app
import torch

from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Scorer


def loader() -> Callable[[LoadOptions], Scorer]:
    """Starts the server when it is first asked for; it ends with the process."""
    running: dict[str, str] = {}

    def load(options: LoadOptions) -> Scorer:
        if not running:
            stack = ExitStack()
            atexit.register(stack.close)
            running["url"] = stack.enter_context(app.serving(app.Mood()))
        return load_model(f"openai:{app.MODEL}@{running['url']}", options)

    return load


def plain() -> Callable[[Any, str], list[float]]:
    """One forward pass; the words are `Yes` and `No` in every spelling, and the whole vocabulary is seen."""
    model, processor = app.tiny_llava()

    def channels(picture: Any, prompt: str) -> list[float]:
        inputs = processor(images=picture.convert("RGB"), text=f"<image> {prompt}", return_tensors="pt")
        with torch.no_grad():
            shares = torch.softmax(model(**inputs).logits[0, -1].double(), dim=-1).numpy()
        words = [token.strip("▁") for token in app.VOCABULARY]
        yes = shares[[n for n, word in enumerate(words) if word.lower() == "yes"]].sum()
        no = shares[[n for n, word in enumerate(words) if word.lower() == "no"]].sum()
        begun = {"yes": {"y"}, "no": set[str]()}
        more = {
            name: shares[[n for n, word in enumerate(words) if word.lower() in begun[name]]].sum() for name in begun
        }
        refused = float(words[int(np.argmax(shares))].lower() not in ("yes", "no", "y"))
        high_yes, high_no = yes + more["yes"], no + more["no"]
        return [*np.log([yes, yes, no, 1 - yes - no, yes, high_yes, no, high_no]), refused]

    return channels


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """One server, one model."""
    return {"served/llava": {"load": loader(), "plain": plain(), "tolerance": 1e-4, "bf16_tolerance": None}}
