"""A model that the caller has at hand, as a Scorer: loaded objects of transformers or open_clip, or a function.

Objects are copied: the caller's own may go on being trained. A copy is named by the digest of its weights, so the store
never takes the scores of one state of a model for those of another.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from beholder.core.errors import ModelError, UsageError
from beholder.models.families import open_folder
from beholder.models.load import load_model
from beholder.models.scorer import Floats, Scorer
from beholder.models.spec import LoadOptions, ModelSpec

Function = Callable[[list[Image.Image], list[str]], Any]
Model = str | Path | Scorer | Function | tuple[Any, ...]
"""A name, a scorer, a function, `(model, processor)` of transformers, `(model, preprocess, tokenizer)` of open_clip."""
Kind = Literal["matching", "contrastive"]
CHANNELS: dict[str, str] = {"matching": "match_logit", "contrastive": "cosine"}
"""What the numbers of a function are, by the kind of model that it asks."""


@dataclass(frozen=True)
class GivenAs:
    """What an object does not say of itself."""

    name: str | None = None
    """What people call it."""
    revision: str | None = None
    """Of a function: which state of it this is. Scores of a function without a revision are not kept."""
    kind: Kind = "matching"
    """Of a function: `matching` gives logits, used as they are; `contrastive` gives cosines."""
    logit_scale: float | None = None
    """Of a contrastive function: what the model multiplies a cosine by."""


def as_scorer(model: Model, options: LoadOptions, given: GivenAs = GivenAs()) -> Scorer:  # noqa: B008  (frozen)
    """The model as a scorer; an error says what is missing."""
    if isinstance(model, str | Path):
        return load_model(str(model), options)
    if hasattr(model, "score_prepared") and hasattr(model, "spec"):
        return model  # type: ignore[return-value]  # a Scorer by its shape
    parts = model if isinstance(model, tuple) else (model,)
    if len(parts) > 1 and hasattr(parts[0], "save_pretrained"):
        return _saved(parts[0], parts[1:], options, given.name)
    if len(parts) == 3 and hasattr(parts[0], "encode_image"):
        # Needs an optional library.
        from beholder.models.contrastive.openclip import OpenClipContrastive

        return OpenClipContrastive.from_objects(*parts, options, name=given.name)
    if len(parts) == 1 and hasattr(parts[0], "state_dict"):
        raise UsageError(
            f"A {type(parts[0]).__name__} alone cannot be audited: how pictures and texts are prepared is not known.\n"
            "Give it with its processor, (model, processor), or for open_clip (model, preprocess, tokenizer)."
        )
    if len(parts) == 1 and callable(parts[0]):
        return FunctionScorer(parts[0], given, batch_size=options.batch_size)
    raise UsageError(
        f"{_described(model)} is not a model. A model is a name, a Scorer, (model, processor) of transformers, (model, "
        "preprocess, tokenizer) of open_clip, or a function of images and prompts.\nSeveral models go in a list."
    )


def _described(model: object) -> str:
    if isinstance(model, tuple):
        return f"({', '.join(type(part).__name__ for part in model)})"
    return f"A {type(model).__name__}"


def _saved(model: Any, processors: Sequence[Any], options: LoadOptions, name: str | None) -> Scorer:
    """A model of transformers, saved and opened like any folder: with the same checks, and the same scores."""
    if not all(hasattr(each, "save_pretrained") for each in processors):
        raise UsageError(f"{_described(tuple(processors))} is not a processor of transformers.")
    with tempfile.TemporaryDirectory(prefix="beholder-model-") as folder:
        for part in (model, *processors):
            part.save_pretrained(folder)
        called = name or getattr(model.config, "name_or_path", "") or type(model).__name__
        return open_folder(Path(folder), called, options)


class FunctionScorer:
    """A function of images and prompts that gives a number for every pair."""

    def __init__(self, function: Function, given: GivenAs, *, batch_size: int | None = None) -> None:
        if given.kind not in CHANNELS:
            raise UsageError(f"kind={given.kind!r}: a function is one of {', '.join(map(repr, CHANNELS))}.")
        if given.kind == "contrastive" and given.logit_scale is None:
            raise UsageError(
                "The scores of a contrastive model are cosines. Say what it multiplies them by, as in "
                "logit_scale=100, or give its logits and kind='matching'."
            )
        if given.revision is not None and given.name is None:
            raise UsageError(f"revision={given.revision!r} is the revision of what? Say name= too.")
        self.temporary = given.revision is None
        """Whether its scores must not be kept: nothing says which state of the function they belong to."""
        name = str(given.name or getattr(function, "__name__", type(function).__name__))
        settings = {"kind": given.kind, "logit_scale": given.logit_scale or 1.0, "logit_bias": 0.0}
        revision = uuid.uuid4().hex if given.revision is None else given.revision
        self.spec = ModelSpec(name, "function", name, revision, settings=settings)
        self.channels: tuple[str, ...] = (CHANNELS[given.kind],)
        self.batch_size = batch_size or 16
        self._function = function

    def prepare(self, image: Image.Image) -> Image.Image:
        """The picture itself, in RGB."""
        return image.convert("RGB")

    def score_prepared(self, prepared: Sequence[Image.Image], prompts: Sequence[str]) -> Floats:
        """What the function gives, checked: a row for each picture, a column for each prompt."""
        scores = self._function(list(prepared), list(prompts))
        scores = scores.detach().float().cpu() if hasattr(scores, "detach") else scores
        cells = np.asarray(scores, dtype=np.float32)
        if cells.shape != (len(prepared), len(prompts)):
            raise ModelError(
                f"{self.spec.name} gave scores of shape {cells.shape} for {len(prepared)} images and {len(prompts)} "
                f"prompts. A row for each image and a column for each prompt is expected: "
                f"{(len(prepared), len(prompts))}."
            )
        return cells[:, :, None]
