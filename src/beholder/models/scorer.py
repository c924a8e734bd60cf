"""Scorer: anything that fills cells. It knows nothing of paths, progress or metrics.

A scorer is handed decoded pictures and prompts and gives float32 `[n_images, n_prompts, n_channels]`.
`prepare` is the part of it that may run in worker threads (resizing, cropping, normalising). A scorer that also has a
`preparation` lets worker processes do that part; its pictures then come as one array, a row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.models.preparation import Decoder, Preparation
from beholder.models.spec import ModelSpec

if TYPE_CHECKING:  # worker processes start without polars
    from beholder.prompts.prompt_set import Instruction

Floats = npt.NDArray[np.float32]
Prepared = Any  # what an adapter's `prepare` returns; only that adapter reads it


class Scorer(Protocol):
    """What every adapter offers.

    >>> from beholder.models.null import NullScorer
    >>> scorer: Scorer = NullScorer()
    >>> scorer.score_prepared([scorer.prepare(Image.new("RGB", (8, 8)))], ["a warm person", "a cold person"]).shape
    (1, 2, 1)
    """

    spec: ModelSpec
    channels: tuple[str, ...]
    batch_size: int
    """How many images at once; the filler halves it when memory runs out."""

    def prepare(self, image: Image.Image) -> Prepared:
        """One RGB picture made ready for the model; called from several threads at once."""
        ...

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """One row per prepared picture, one column per prompt, one layer per channel."""
        ...


@runtime_checkable
class Embedder(Scorer, Protocol):
    """A scorer whose score is a product of an image vector and a text vector: each is computed once."""

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        """Unit image vectors `[n_images, dim]`."""
        ...

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Unit text vectors `[n_texts, dim]`."""
        ...


def begun(scorer: Embedder, pictures: Sequence[Prepared]) -> Callable[[], Floats]:
    """Start on a batch where the scorer can leave it to its device; what is returned waits for the unit vectors."""
    if begin := getattr(scorer, "begin_embedding", None):
        waiting: Callable[[], Floats] = begin(pictures)
        return waiting
    vectors = scorer.embed_prepared(pictures)
    return lambda: vectors


def preparation_of(scorer: Scorer) -> Preparation | None:
    """What worker processes can do for this scorer; None if its pictures must be prepared by `prepare`, in threads."""
    preparation: Preparation | None = getattr(scorer, "preparation", None)
    return preparation


def decoder_of(scorer: Scorer) -> Decoder | None:
    """What decodes whole files for this scorer, if it was loaded so."""
    decoder: Decoder | None = getattr(scorer, "decoder", None)
    return decoder


@runtime_checkable
class Answerer(Scorer, Protocol):
    """A scorer that answers in words: what it is told beside the prompt moves its scores, so it is in its spec."""

    def instructed(self, instruction: Instruction) -> Scorer:
        """The same model, asked this way."""
        ...


class ContrastiveScorer:
    """Cosine of image and text vectors: the shared part of every two-tower adapter.

    `settings["logit_scale"]` (the multiplier itself, not its logarithm) and `settings["logit_bias"]` travel in
    the spec: a measure that wants the model's own logits takes `scale * cosine + bias`.
    """

    spec: ModelSpec
    channels: tuple[str, ...] = ("cosine",)
    batch_size: int = 32

    def prepare(self, image: Image.Image) -> Prepared:
        raise NotImplementedError

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        raise NotImplementedError

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        raise NotImplementedError

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """Cosines `[n_images, n_prompts, 1]`."""
        return cosines(self.embed_prepared(prepared), self.embed_texts(prompts))[:, :, None]


def cosines(images: Floats, texts: Floats) -> Floats:
    """Cosine of every image vector with every text vector; both come in as unit vectors."""
    return np.asarray(images @ texts.T, dtype=np.float32)


def unit_rows(vectors: npt.NDArray[np.generic]) -> Floats:
    """Rows scaled to length 1, computed in float32."""
    vectors = np.asarray(vectors, dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
