"""Asking a loaded model: questions about one picture become batches, batches become first-token logits.

Nothing here knows which token means what. Questions are batched by length; a batch that does not fit into memory
is halved down to one question before anyone is told.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from beholder.errors import OutOfMemory
from beholder.models.checkpoint import Checkpoint, torch, transformers
from beholder.models.contrastive import running, sample_picture
from beholder.models.embedding import batches
from beholder.models.generative_processor import Picture, PictureProcessor, build_processor
from beholder.models.generative_prompts import PromptForm
from beholder.models.scorer import Floats

LOG = logging.getLogger(__name__)
QUESTIONS = {"cpu": 8, "cuda": 32, "mps": 8}
"""Questions about one picture at once."""
PADDED = {
    "blip-2", "gemma3", "idefics3", "internvl", "llava", "llava_next", "llava_onevision", "paligemma",
    "phi4_multimodal", "qwen2_5_vl", "qwen2_vl", "qwen3_vl", "smolvlm",
}  # fmt: skip
"""Families of which it was shown that padding before a shorter question moves no score; of any other, only
questions of one length go together."""
NOT_ANSWERING = 0.5
Encoded = dict[str, Any]


@dataclass
class Asked:
    """A model and its processor, shared by all the ways it is asked."""

    model: Any
    processor: Any
    form: PromptForm
    notes: list[str]
    questions: int
    """How many at once; becomes smaller when memory runs out."""

    @classmethod
    def of(cls, folder: Path, checkpoint: Checkpoint, *, questions: int | None) -> Asked:
        """Around a checkpoint just loaded; one picture is processed to learn how its processor does it."""
        model, processor = checkpoint.model, build_processor(folder, checkpoint)
        form = PromptForm(processor, model.config.model_type)
        count = questions or QUESTIONS.get(model.device.type, 8)
        asked = cls(model, processor, form, checkpoint.notes, count)
        asked._encode(sample_picture(), form.write("?"))
        return asked

    @property
    def pictures(self) -> PictureProcessor:
        """The part of the processor that reads pictures."""
        part: PictureProcessor = self.processor.image_processor
        return part

    @property
    def padded(self) -> bool:
        """Whether questions of different lengths may go together."""
        return self.model.config.model_type in PADDED

    def first_tokens(self, picture: Picture, questions: Sequence[str]) -> Iterator[tuple[list[int], Any]]:
        """Float32 logits over the vocabulary at the first place of the answer, with whose they are."""
        with self.pictures.showing(picture):
            encoded = [self._encode(picture.image, self.form.write(question)) for question in questions]
        for places in self._batches([_length(one) for one in encoded]):
            yield from self._halving(places, encoded)

    def _batches(self, lengths: Sequence[int]) -> Iterator[Sequence[int]]:
        """Places in batches of near lengths, or of one length where the model cannot be padded."""
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        if self.padded:
            yield from batches(order, self.questions)
            return
        for _, equal in groupby(order, key=lengths.__getitem__):
            yield from batches(list(equal), self.questions)

    def _halving(self, places: Sequence[int], encoded: Sequence[Encoded]) -> Iterator[tuple[list[int], Any]]:
        waiting = list(places)
        while waiting:
            part = waiting[: self.questions]
            try:
                logits = self._logits([encoded[place] for place in part])
            except OutOfMemory:
                if len(part) == 1:
                    raise
                self.questions = len(part) // 2
                continue
            yield part, logits
            waiting = waiting[len(part) :]

    def _encode(self, image: Any, text: str) -> Encoded:
        """What the processor makes of picture and text, as a batch of one."""
        options = {"add_special_tokens": False} if self.form.opens_itself(text) else {}
        inputs = self.processor(text=[text], images=[image], return_tensors="np", **options)
        known = {name: np.asarray(values) for name, values in inputs.items() if name in self._understood}
        return {name: torch.from_numpy(values) for name, values in known.items()}

    def _logits(self, part: Sequence[Encoded]) -> Any:
        inputs = transformers.BatchFeature(stacked(part, padding=self._padding_token))
        inputs = inputs.to(self.model.device, dtype=self.model.dtype)
        with running():
            # The model's own way to its first token: masks, positions and decoder start are as it has them.
            answer = self.model.generate(**inputs, generation_config=self._one_token)
            return answer.logits[0].float()

    @cached_property
    def _understood(self) -> set[str]:
        """What the model can be told; processors also give what only training or other parts use."""
        forward, generate = (
            inspect.signature(call).parameters for call in (self.model.forward, self.model.generate)
        )
        return {*forward, *generate} - {"labels"}

    @cached_property
    def _padding_token(self) -> int:
        tokenizer = self.processor.tokenizer
        known = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        return next(number for number in known if number is not None)

    @cached_property
    def _one_token(self) -> Any:
        return transformers.GenerationConfig(
            max_new_tokens=1, do_sample=False, num_beams=1, use_cache=False,
            return_dict_in_generate=True, output_logits=True, pad_token_id=self._padding_token,
        )  # fmt: skip


class Elsewhere:
    """Watches how much of its mass a model puts on neither answer."""

    def __init__(self, name: str) -> None:
        self._name, self._sum, self._cells, self._warned = name, 0.0, 0, False

    def count(self, log_mass: Floats) -> None:
        """Add the cells just scored; warn once when most of the mass so far lies elsewhere."""
        self._sum += float(np.exp(log_mass.astype(np.float64)).sum())
        self._cells += log_mass.size
        if self.notes and not self._warned:
            self._warned = True
            LOG.warning("%s: %s", self._name, self.notes[0])

    @property
    def notes(self) -> list[str]:
        """One note if the model is not answering."""
        mean = self._sum / self._cells if self._cells else 0.0
        if mean <= NOT_ANSWERING:
            return []
        return [
            f"the model is not answering: on average {mean:.0%} of its probability lies on words that are neither "
            "answer, so what it says of yes and no means little"
        ]


def stacked(part: Sequence[Encoded], *, padding: int) -> Encoded:
    """Batches of one as one batch: what runs along the text is padded on the left, all else is put end to end."""
    longest = max(_length(one) for one in part)
    fill = {"input_ids": padding}

    def joined(name: str) -> Any:
        rows = [one[name] for one in part]
        if rows[0].shape[:2] == part[0]["input_ids"].shape:
            rows = [_padded(row, longest, fill.get(name, 0)) for row in rows]
        return torch.cat(rows)

    return {name: joined(name) for name in part[0]}


def _padded(row: Any, length: int, value: int) -> Any:
    return torch.nn.functional.pad(row, (length - row.shape[1], 0), value=value)


def _length(one: Encoded) -> int:
    return int(one["input_ids"].shape[1])
