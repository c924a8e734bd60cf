"""Generative models of transformers: LLaVA, Qwen-VL, Gemma 3, PaliGemma, BLIP-2, SmolVLM, InternVL, Phi-4 …

A model gets one picture and one question, through its own processor and chat template; what is kept is
its distribution over the first token of the answer: the raw logit and the log-probability of the study's own
answer, and the log-mass on tokens that begin yes, that begin no, and on all others. Questions about one picture go
through the model together and never change one another's scores.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from beholder.core.errors import BeholderError, UnusableScore
from beholder.models.checkpoint.checkpoint import model_settings
from beholder.models.checkpoint.files import Origin, find_files, read_config
from beholder.models.generative.answers import Elsewhere, resolve_answers
from beholder.models.generative.loaded_model import LoadedModel, load_placed, precision_of, refuse_unserved
from beholder.models.generative.model_types import Reuse
from beholder.models.generative.processor import Picture
from beholder.models.generative.sharing import Sharing
from beholder.models.scorer import Floats
from beholder.models.spec import LoadOptions, ModelSpec, Tensor
from beholder.models.torch_scorer import as_model_error, refuse_unusable, running, sample_picture, torch
from beholder.prompts.prompt_set import PLAIN, Instruction

PICTURES = {"cpu": 4, "cuda": 16}  # handed over at once; the questions about each are what fills a batch
ROWS_AT_ONCE = 512  # distributions over the vocabulary that are read at once


class GenerativeScorer:
    """The first token of a model's answer to a question about a picture."""

    channels: tuple[str, ...] = ("logit_true", "log_p_yes", "log_p_no", "log_p_other", "log_p_true")

    def __init__(self, sharing: Sharing, spec: ModelSpec, *, batch_size: int, instruction: Instruction) -> None:
        loaded = sharing.loaded
        self.batch_size, self._sharing, self._loaded, self._instruction = batch_size, sharing, loaded, instruction
        tokenizer = loaded.processor.tokenizer
        around = loaded.form.write(instruction.ask(""))
        self._answers = resolve_answers(
            tokenizer, around, yes=instruction.yes, no=instruction.no, measure=instruction.measure
        )
        self.spec = spec.having(
            instruction=instruction.template,
            answers={"yes": instruction.yes, "no": instruction.no, **self._answers.as_settings(tokenizer)},
            example=loaded.form.write(instruction.ask("…")),
            channels=list(self.channels),
        )
        self._others: dict[Instruction, GenerativeScorer] = {instruction: self}
        self._elsewhere = Elsewhere(spec.name)

    @classmethod
    def from_folder(
        cls, folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None
    ) -> "GenerativeScorer":
        """Load a checkpoint's folder; `origin` says where it came from if that is not the folder itself."""
        refuse_unserved(read_config(folder), folder)
        files = find_files(folder, allow_pickle=options.allow_pickle)
        loaded = LoadedModel.of(folder, load_placed(files, options), questions=options.batch_size)
        spec = ModelSpec(name, "generative", *(origin or files.origin), precision_of(options), settings_of(loaded))
        sharing = Sharing(loaded, reuse=None if options.shared_prefix else Reuse.NOTHING)
        pictures = options.batch_size or PICTURES.get(loaded.model.device.type, 4)
        scorer = cls(sharing, spec, batch_size=pictures, instruction=PLAIN)
        with as_model_error(folder):
            scorer.verify()
        return scorer

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know, whatever the wording of the questions."""
        own = [note for one in self._others.values() for note in (*one._answers.notes, *one._elsewhere.notes)]
        return list(dict.fromkeys([*self._loaded.notes, *self._sharing.notes, *own]))

    def instructed(self, instruction: Instruction) -> "GenerativeScorer":
        """The same model with this wording; template and answers are in its spec."""
        if instruction not in self._others:
            made = GenerativeScorer(self._sharing, self.spec, batch_size=self.batch_size, instruction=instruction)
            self._others[instruction] = made
        return self._others[instruction]

    def prepare(self, image: Image.Image) -> Picture:
        """The checkpoint's own preprocessing."""
        return self._loaded.pictures.develop(image)

    def score_prepared(self, prepared: Sequence[Picture], prompts: Sequence[str]) -> Floats:
        """One row per picture, one column per prompt, one layer per channel."""
        try:
            cells = refuse_unusable(self._cells(prepared, prompts))
        except BeholderError:
            raise
        except Exception as error:  # of the model's own code: which picture does it stop at?
            if len(prepared) > 1:
                return np.concatenate([self._of_one(row, each, prompts) for row, each in enumerate(prepared)])
            reason = " ".join(str(error).split())[:200]
            raise UnusableScore("image", [0], f"its own code stops with {type(error).__name__}: {reason}") from error
        self._elsewhere.count(cells[:, :, self.channels.index("log_p_other")])
        return cells

    def _of_one(self, row: int, prepared: Picture, prompts: Sequence[str]) -> Floats:
        try:
            return self.score_prepared([prepared], prompts)
        except UnusableScore as error:
            raise UnusableScore(error.kind, [row], error.fault) from error

    def verify(self) -> None:
        """Raise before the run begins if the model cannot answer or its proof fails."""
        refuse_unusable(self._cells([self.prepare(sample_picture())], ["Is there a person in the image?"]))
        self._sharing.prove()

    def _cells(self, prepared: Sequence[Picture], prompts: Sequence[str]) -> Floats:
        questions = [self._instruction.ask(prompt) for prompt in prompts]
        cells = np.zeros((len(prepared), len(prompts), len(self.channels)), dtype=np.float32)
        with running(self._loaded.model):
            answered = self._sharing.first_tokens(prepared, questions)
            # Read back only when all is under way: reading waits for the GPU.
            parts = [(one.rows, one.indices, self._channels(one.logits)) for one in answered]
        for rows, indices, channels in parts:
            cells[np.ix_(rows, indices)] = channels.cpu().numpy()
        return cells

    def _channels(self, answers: Tensor) -> Tensor:
        """The channels of each distribution over the vocabulary, some pictures and questions at a time."""
        yes, no, parts = list(self._answers.yes), list(self._answers.no), []
        for part in answers.flatten(0, -2).split(ROWS_AT_ONCE):
            logits = part.float()
            study = logits[:, self._answers.study].clone()
            of_yes, of_no = (logits[:, tokens].logsumexp(dim=-1) for tokens in (yes, no))
            logits[:, yes + no] = -torch.inf  # without a copy: the array is vocabulary × questions
            masses = torch.stack([of_yes, of_no, logits.logsumexp(dim=-1)], dim=-1)
            of_study = study - masses.logsumexp(dim=-1)
            parts.append(torch.cat([study[:, None], masses.log_softmax(dim=-1), of_study[:, None]], dim=-1))
        return torch.cat(parts).unflatten(0, answers.shape[:-1])


def settings_of(loaded: LoadedModel) -> dict[str, object]:
    """Everything beside weights, instruction and answers that can move a score."""
    shared = model_settings(loaded.model, loaded.pictures.image_processor)
    return {
        **shared,
        "image_processor": {**shared["image_processor"], "asked": loaded.pictures.asked_for},
        "processor": type(loaded.processor).__name__,
        "prompt_form": loaded.form.name,
        "padding": "left" if loaded.kind.padded else "none: questions of one length go together",
    }
