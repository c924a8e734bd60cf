"""Generative models of transformers: LLaVA, Qwen-VL, Gemma 3, PaliGemma, BLIP-2, SmolVLM, InternVL, Phi-4 …

A model is shown one picture and asked one question, through its own processor and chat template; what is kept is
its distribution over the first token of the answer: the raw logit of the study's own answer, and the log-mass on
tokens that begin yes, that begin no, and on all others. Questions about one picture go through the model together
and never change one another's scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beholder.errors import UnusableScore
from beholder.models.answers import resolve_answers
from beholder.models.checkpoint import told_as_model_error, torch
from beholder.models.checkpoint_files import Origin, find_files
from beholder.models.contrastive import image_settings, sample_picture
from beholder.models.folder import read_config
from beholder.models.generative_asking import Asked, Elsewhere
from beholder.models.generative_placement import load_placed, precision_of, refuse_unserved
from beholder.models.generative_processor import Picture
from beholder.models.load import LoadOptions
from beholder.models.scorer import Floats, Instruction
from beholder.models.spec import ModelSpec

PLAIN = Instruction("{}", yes="Yes", no="No")
"""How a model is asked when no benchmark says how: the prompt is the question."""
PICTURES = 4
"""Pictures handed over at once; the questions about each are what fills a batch."""


class GenerativeScorer:
    """What a model says first when it is asked about a picture."""

    channels: tuple[str, ...] = ("logit_true", "log_p_yes", "log_p_no", "log_p_other")

    def __init__(self, asked: Asked, spec: ModelSpec, *, batch_size: int, instruction: Instruction) -> None:
        self.batch_size = batch_size
        self._asked, self._instruction, self._uninstructed = asked, instruction, spec
        tokenizer = asked.processor.tokenizer
        around = asked.form.write(instruction.ask(""))
        self._answers = resolve_answers(tokenizer, around, yes=instruction.yes, no=instruction.no)
        asked_with = {
            "instruction": instruction.template,
            "answers": {"yes": instruction.yes, "no": instruction.no, **self._answers.as_settings(tokenizer)},
            "example": asked.form.write(instruction.ask("…")),
        }
        self.spec = replace(spec, settings={**spec.settings, **asked_with})
        self._others: dict[Instruction, GenerativeScorer] = {instruction: self}
        self._elsewhere = Elsewhere(spec.name)

    @classmethod
    def from_folder(
        cls, folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None
    ) -> GenerativeScorer:
        """Load a checkpoint's folder; `origin` says where it came from if that is not the folder itself."""
        refuse_unserved(read_config(folder).get("model_type"), folder)
        files = find_files(folder, allow_pickle=options.allow_pickle)
        asked = Asked.of(folder, load_placed(files, options), questions=options.batch_size)
        origin = origin or files.origin
        precision, settings = precision_of(options), settings_of(asked)
        spec = ModelSpec(name, "generative", origin.weights, origin.revision, precision, settings)
        scorer = cls(asked, spec, batch_size=options.batch_size or PICTURES, instruction=PLAIN)
        with told_as_model_error(folder):
            scorer.verify()
        return scorer

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know, of all the ways this model was asked."""
        own = [note for scorer in self._others.values() for note in scorer._own_notes()]
        return list(dict.fromkeys([*self._asked.notes, *own]))

    def instructed(self, instruction: Instruction) -> GenerativeScorer:
        """The same model, asked this way; template and answers are in its spec."""
        if instruction not in self._others:
            other = GenerativeScorer(
                self._asked, self._uninstructed, batch_size=self.batch_size, instruction=instruction
            )
            self._others[instruction] = other
        return self._others[instruction]

    def prepare(self, image: Image.Image) -> Picture:
        """The checkpoint's own preprocessing."""
        return self._asked.pictures.develop(image)

    def score_prepared(self, prepared: Sequence[Picture], prompts: Sequence[str]) -> Floats:
        """One row per picture, one column per prompt: the four channels."""
        cells = self._cells(prepared, prompts)
        bad = np.flatnonzero(~np.isfinite(cells).all(axis=(1, 2)))
        if bad.size:
            raise UnusableScore("image", bad.tolist())
        self._elsewhere.count(cells[:, :, self.channels.index("log_p_other")])
        return cells

    def verify(self) -> None:
        """Ask once, so that what cannot work is told before the work begins."""
        cells = self._cells([self.prepare(sample_picture())], ["Is there a person in the image?"])
        if not np.isfinite(cells).all():
            raise UnusableScore("image", [0])

    def _cells(self, prepared: Sequence[Picture], prompts: Sequence[str]) -> Floats:
        questions = [self._instruction.ask(prompt) for prompt in prompts]
        cells = np.zeros((len(prepared), len(prompts), len(self.channels)), dtype=np.float32)
        for row, picture in enumerate(prepared):
            for places, logits in self._asked.first_tokens(picture, questions):
                cells[row, places] = self._channels(logits)
        return cells

    def _channels(self, logits: Any) -> Floats:
        """The channels of each row of logits over the vocabulary."""
        masses = torch.log_softmax(logits, dim=-1)
        yes, no = list(self._answers.yes), list(self._answers.no)
        other = masses.clone()
        other[:, yes + no] = -torch.inf
        parts = [masses[:, yes], masses[:, no], other]
        channels = [logits[:, self._answers.study], *(part.logsumexp(dim=-1) for part in parts)]
        return np.asarray(torch.stack(channels, dim=-1).cpu().numpy())

    def _own_notes(self) -> list[str]:
        return [*self._answers.notes, *self._elsewhere.notes]


def settings_of(asked: Asked) -> dict[str, Any]:
    """Everything beside weights, instruction and answers that can move a score."""
    config = asked.model.config
    return {
        "model_type": config.model_type,
        "architecture": type(asked.model).__name__,
        "attention": getattr(config, "_attn_implementation", None),
        "processor": type(asked.processor).__name__,
        "image_processor": image_settings(asked.pictures.image_processor)
        | {"asked": asked.pictures.asked_for},
        "prompt_form": asked.form.name,
        "padding": "left" if asked.padded else "none: questions of one length go together",
    }
