"""A loaded model: questions about one picture become batches, batches become first-token logits.

Nothing here knows which token means what. Questions are batched by length; a batch that does not fit into memory
is halved, down to a single question, before an error is raised.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image

from beholder.core.errors import OutOfMemory
from beholder.models.checkpoint.checkpoint import Checkpoint, as_model_error, torch, transformers
from beholder.models.checkpoint.torch_scorer import running, sample_picture
from beholder.models.contrastive.embedding import batches
from beholder.models.generative.processor import Picture, PictureProcessor, build_processor
from beholder.models.generative.texts import Encoded, PromptForm
from beholder.models.scorer import Floats
from beholder.models.torch_types import Config, Module, Processor, Tensor

LOG = logging.getLogger(__name__)
QUESTIONS = {"cpu": 8, "cuda": 32, "mps": 8}
"""Questions about one picture at once."""
PADDED = {
    "blip-2",
    "gemma3",
    "idefics3",
    "internvl",
    "llava",
    "llava_next",
    "llava_onevision",
    "paligemma",
    "phi4_multimodal",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_vl",
    "smolvlm",
}
"""Families of which it was shown that padding before a shorter question moves no score; of any other, only
questions of one length go together."""
PACKED = dict.fromkeys(["minicpmv4_6", "minicpmv4_7", "minicpm_ocr"], "pixel_values")
"""Families that write pictures behind one another, along the last axis, and the input that holds them."""
NOT_ANSWERING = 0.5


@dataclass
class LoadedModel:
    """A model and its processor, shared by all wordings of the questions."""

    model: Module
    processor: Processor
    form: PromptForm
    notes: list[str]
    questions: int
    """How many at once; becomes smaller when memory runs out."""

    @classmethod
    def of(cls, folder: Path, checkpoint: Checkpoint, *, questions: int | None) -> LoadedModel:
        """Around a checkpoint just loaded; one picture is processed to learn how its processor does it."""
        model, processor = checkpoint.model, build_processor(folder, checkpoint)
        form = PromptForm(processor, model.config.model_type)
        count = questions or QUESTIONS.get(model.device.type, 8)
        loaded = cls(model, processor, form, checkpoint.notes, count)
        with as_model_error(folder):
            loaded._encode(sample_picture(), form.write("?"))
        return loaded

    @property
    def pictures(self) -> PictureProcessor:
        """The part of the processor that reads pictures."""
        part: PictureProcessor = self.processor.image_processor
        return part

    @property
    def padded(self) -> bool:
        """Whether questions of different lengths may go together."""
        return self.model.config.model_type in PADDED

    def encode(self, picture: Picture, question: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of a question about a picture."""
        with self.pictures.showing(picture):
            return self._encode(picture.image, self.form.write(question))

    def encode_alone(self, image: Image.Image, question: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of both with nothing remembered."""
        return self._encode(image, self.form.write(question))

    def one_by_one(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Iterator[tuple[list[int], Tensor]]:
        """Float32 logits, `[pictures, texts, vocabulary]`, of the answers' first tokens, with the texts' indices."""
        for indices in self._batches(texts):
            yield from self._halving(indices, texts, pictures)

    def _batches(self, texts: Sequence[Encoded]) -> Iterator[Sequence[int]]:
        """Indices in batches of similar lengths, or of one length where the model cannot be padded."""
        lengths = [(_length(text), *(tuple(text[name].shape) for name in sorted(text))) for text in texts]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        if self.padded:
            yield from batches(order, self.questions)
            return
        for _, equal in groupby(order, key=lengths.__getitem__):
            yield from batches(list(equal), self.questions)

    def _halving(
        self, indices: Sequence[int], texts: Sequence[Encoded], pictures: Sequence[Encoded]
    ) -> Iterator[tuple[list[int], Tensor]]:
        waiting = list(indices)
        while waiting:
            part = waiting[: self.questions]
            try:
                logits = self.answers([texts[index] for index in part], pictures)
            except OutOfMemory:
                if len(part) == 1 or len(pictures) > 1:
                    raise
                self.questions = len(part) // 2
                continue
            yield part, logits
            waiting = waiting[len(part) :]

    def _encode(self, image: Image.Image, text: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of text and picture, and apart from it, what is made of the picture alone."""
        options = {"add_special_tokens": False} if self.form.opens_itself(text) else {}
        inputs = self.processor(text=[text], images=[image], return_tensors=self.pictures.tensors, **options)
        tensors = {name: _tensor(values) for name, values in inputs.items() if name in self._understood}
        made = self.pictures.made
        return (
            {name: values for name, values in tensors.items() if name not in made},
            {name: values for name, values in tensors.items() if name in made},
        )

    def logits(self, texts: Sequence[Encoded], seen: Encoded) -> Tensor:
        """The plain way: each text with the picture, as the model would begin to answer it."""
        return self.answers(texts, [seen])[0]

    def answers(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Tensor:
        """The same for each of several pictures that take up as many tokens."""
        batch = stacked([*texts] * len(pictures), padding=self._padding_token)
        batch |= self.joined([seen for seen in pictures for _ in texts])
        with running():
            inputs = transformers.BatchFeature(batch).to(self.model.device, dtype=self.model.dtype)
            # The model's own way to its first token: masks, positions and decoder start are as it has them.
            answer = self.model.generate(**inputs, generation_config=self._one_token)
            return answer.logits[0].float().unflatten(0, (len(pictures), len(texts)))

    def joined(self, pictures: Sequence[Encoded]) -> Encoded:
        """Several pictures as one batch."""
        packed = PACKED.get(self.model.config.model_type)
        return {
            name: torch.cat([seen[name] for seen in pictures], dim=-1 if name == packed else 0) for name in pictures[0]
        }

    @cached_property
    def _understood(self) -> set[str]:
        """The inputs that the model accepts; processors also return inputs for training and other parts."""
        forward, generate = (inspect.signature(call).parameters for call in (self.model.forward, self.model.generate))
        return {*forward, *generate} - {"labels"}

    @cached_property
    def _padding_token(self) -> int:
        tokenizer = self.processor.tokenizer
        known = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        return next(number for number in known if number is not None)

    @cached_property
    def _one_token(self) -> Config:
        return transformers.GenerationConfig(
            max_new_tokens=1,
            do_sample=False,
            num_beams=1,
            use_cache=False,
            return_dict_in_generate=True,
            output_logits=True,
            pad_token_id=self._padding_token,
        )


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


def stacked(texts: Sequence[Encoded], *, padding: int) -> Encoded:
    """Batches of one as one batch, shorter texts padded on the left."""

    def joined(name: str) -> Tensor:
        value = padding if name == "input_ids" else 0
        longest = max(text[name].shape[1] for text in texts)
        return torch.cat([_padded(text[name], longest, value) for text in texts])

    return {name: joined(name) for name in texts[0]}


def _padded(row: Tensor, length: int, value: int) -> Tensor:
    """Longer along the text, which is the second of its axes; torch counts them from the last."""
    behind = (0, 0) * (row.ndim - 2)
    return torch.nn.functional.pad(row, (*behind, length - row.shape[1], 0), value=value)


def _tensor(values: object) -> Tensor:
    return values if torch.is_tensor(values) else torch.from_numpy(np.asarray(values))


def _length(one: Encoded) -> int:
    return int(one["input_ids"].shape[1])
