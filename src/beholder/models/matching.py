"""Matching models look at a picture and a text together: BLIP and BLIP-2 (`matching_blip`), ALBEF (`albef`).

A matching head gives two logits for a pair. Three channels:

    match_logit      the head's logit of "they match": what the models' authors rank by, and what APA's softmax takes
    no_match_logit   the other one: match - no_match is the log-odds, its sigmoid the probability of a match
    itc_cosine       the contrastive head's cosine (BLIP-2: of the nearest query), which needs no fusion

Every picture passes the vision tower once, every text the text-only layers once; only what joins the two runs per
pair, one picture with a block of texts at a time, so that the picture's keys and values are shared by the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from PIL import Image

from beholder.errors import ModelError, OutOfMemory, UnusableScore
from beholder.models.checkpoint import torch
from beholder.models.contrastive import running, sample_picture
from beholder.models.embedding import CutTexts, batches
from beholder.models.scorer import Floats
from beholder.models.spec import ModelSpec

BATCH_SIZES = {"cpu": 8, "cuda": 64, "mps": 16}
BLOCK_SIZES = {"cpu": 32, "cuda": 256, "mps": 64}
CHANNELS = ("match_logit", "no_match_logit", "itc_cosine")
TOLERANCE = {"float32": 1e-4, "bfloat16": 1e-1, "float16": 1e-2}
"""Of a score, between our way and the model's own forward pass, relative to the score where that is above 1."""


class Pictures(NamedTuple):
    """What the vision tower makes of a batch."""

    states: Any
    """`[n, tokens, width]`: what the fusion attends to."""
    vectors: Any
    """`[n, queries, dim]`, unit: what the contrastive head compares; one query but for BLIP-2."""


class Texts(NamedTuple):
    """What can be computed of texts before they meet a picture."""

    inputs: Any
    """`[n, tokens, …]`: token numbers, or the text layers' output where the architecture has such layers."""
    mask: Any
    vectors: Any
    """`[n, dim]`, unit."""


class Matcher(Protocol):
    """One architecture: its two towers and their meeting."""

    def pictures(self, pixels: Any) -> Pictures:
        """The vision tower, once per picture."""
        ...

    def texts(self, ids: Any, mask: Any) -> Texts:
        """The text-only part, once per text."""
        ...

    def match(self, states: Any, inputs: Any, mask: Any) -> Any:
        """`[n, 2]`: the head's logits (no match, match) for one picture's states `[1, …]` and n texts."""
        ...

    def plain(self, pixels: Any, ids: Any, mask: Any) -> tuple[Any, Any]:
        """The library's own forward pass for one pair: the head's logits and the cosine."""
        ...


class TextReading(NamedTuple):
    """How a prompt becomes tokens."""

    tokenizer: Any
    max_length: int
    clean: Callable[[str], str] = str


class MatchingScorer:
    """Matching logits and contrastive cosines of every picture with every prompt."""

    channels: tuple[str, ...] = CHANNELS

    def __init__(
        self,
        matcher: Matcher,
        image_processor: Any,
        reading: TextReading,
        spec: ModelSpec,
        *,
        device: str,
        batch_size: int | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        kind = device.partition(":")[0]
        self.spec = spec
        self.batch_size = batch_size or BATCH_SIZES.get(kind, 8)
        self.block_size = BLOCK_SIZES.get(kind, 32)
        self._matcher, self._image_processor, self._reading = matcher, image_processor, reading
        self._device, self._dtype = device, getattr(torch, spec.precision)
        self._cut, self._loader_notes = CutTexts(reading.max_length), list(notes)
        self._last_texts: tuple[tuple[str, ...], Texts] | None = None

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know: the loader's remarks, texts that were cut."""
        return [*self._loader_notes, *self._cut.notes]

    def prepare(self, image: Image.Image) -> Any:
        """The checkpoint's own preprocessing: float32 `[channel, height, width]`."""
        batch = self._image_processor(images=image.convert("RGB"), return_tensors="np")
        return np.ascontiguousarray(batch["pixel_values"][0], dtype=np.float32)

    def score_prepared(self, prepared: Sequence[Any], prompts: Sequence[str]) -> Floats:
        """`[n_images, n_prompts, 3]`; the order of the channels is that of `channels`."""
        cells = np.zeros((len(prepared), len(prompts), len(self.channels)), dtype=np.float32)
        if not cells.size:
            return cells
        texts, done = self._texts(tuple(prompts)), 0
        for part in batches(prepared, self.batch_size):
            cells[done : done + len(part)] = self._score(part, texts)
            done += len(part)
        bad = np.flatnonzero(~np.isfinite(cells).all(axis=(1, 2)))
        if len(bad):
            raise UnusableScore("image", bad.tolist())
        return cells

    def verify(self) -> None:
        """Raise unless our scores of one pair are those of the model's own forward pass."""
        prepared, text = self.prepare(sample_picture()), "a photo of a person"
        ours = self.score_prepared([prepared], [text])[0, 0]
        with running():
            logits, cosine = self._matcher.plain(self._pixels([prepared]), *self._tokens([text]))
            theirs = torch.cat([logits.float().flatten().flip(0), cosine.float().flatten()]).cpu().numpy()
        allowed = TOLERANCE[self.spec.precision] * np.maximum(1, np.abs(theirs))
        if not (np.abs(ours - theirs) <= allowed).all():
            raise ModelError(
                f"{self.spec.name} is not scored rightly by Beholder: its own forward pass gives "
                f"{theirs.tolist()} ({', '.join(self.channels)}) where its parts give {ours.tolist()}."
            )

    def _score(self, prepared: Sequence[Any], texts: Texts) -> Floats:
        with running():
            pictures = self._matcher.pictures(self._pixels(prepared))
            cosines = torch.einsum("iqd,td->iqt", pictures.vectors, texts.vectors).amax(dim=1)
            logits = torch.stack([self._match(states[None], texts) for states in pictures.states])
            return np.asarray(torch.cat([logits.flip(-1), cosines[..., None]], dim=-1).cpu().numpy())

    def _match(self, states: Any, texts: Texts) -> Any:
        """`[n_texts, 2]` for one picture; when memory runs out the block is halved, down to a single pair."""
        parts, done = [], 0
        while done < len(texts.mask):
            block = slice(done, done + self.block_size)
            try:
                with running():
                    logits = self._matcher.match(states, texts.inputs[block], texts.mask[block])
            except OutOfMemory:
                if self.block_size == 1:
                    raise
                self.block_size = max(1, self.block_size // 2)
                continue
            parts.append(logits.float())
            done += len(logits)
        return torch.cat(parts)

    def _texts(self, prompts: tuple[str, ...]) -> Texts:
        """The prompts as far as they can be computed alone; kept for the next batch of pictures."""
        if self._last_texts is None or self._last_texts[0] != prompts:
            ids, mask = self._tokens(prompts)
            with running():
                parts = [
                    self._matcher.texts(
                        ids[start : start + self.block_size], mask[start : start + self.block_size]
                    )
                    for start in range(0, len(ids), self.block_size)
                ]
            joined = Texts(*(torch.cat(field) for field in zip(*parts, strict=True)))
            self._last_texts = prompts, joined
        return self._last_texts[1]

    def _pixels(self, arrays: Sequence[Any]) -> Any:
        return torch.from_numpy(np.stack(arrays)).to(self._device, self._dtype)

    def _tokens(self, prompts: Sequence[str]) -> tuple[Any, Any]:
        tokenizer, limit, clean = self._reading
        texts = [clean(prompt) for prompt in prompts]
        untruncated = tokenizer(texts, padding=False, truncation=False, verbose=False)["input_ids"]
        self._cut.record(prompts, [len(ids) for ids in untruncated])
        tokens = tokenizer(
            texts,
            padding="longest",
            padding_side="right",
            truncation=True,
            max_length=limit,
            return_tensors="pt",
        )
        return tokens["input_ids"].to(self._device), tokens["attention_mask"].to(self._device)


def unit(vectors: Any) -> Any:
    """Rows of length 1 in float32."""
    return torch.nn.functional.normalize(vectors.float(), dim=-1)
