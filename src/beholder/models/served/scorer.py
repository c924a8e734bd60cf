"""Served models: any OpenAI-compatible server (vLLM, SGLang, llama.cpp, a hosted API) with one question per cell.

`openai:MODEL@URL`. A cell is the first token's log-probability on the two words of the study's instruction, with
the bounds that the server's short list of tokens leaves; or, if the server gives no log-probabilities, the counts
of repeated answers. Needs no library beyond Python's own. See docs/served.md.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from PIL import Image

from beholder.core.errors import UnusableScore
from beholder.models.scorer import Floats
from beholder.models.served.address import Asking
from beholder.models.served.answers import (
    CHANNELS,
    COUNTS,
    POLICY_CODES,
    REFUSED,
    Cell,
    Garbled,
    NotProbabilities,
    choices,
    first_tokens,
    is_policy,
    read_draws,
    read_tokens,
    text_of,
)
from beholder.models.served.client import Client, Declined, Line
from beholder.models.spec import ModelSpec
from beholder.prompts.instruction import Instruction

TOP = 20
"""Requested tokens: the most that hosted APIs return."""
WORDS = 8
"""Tokens of a sampled answer: enough for a first word."""
MANY = 32
"""The most answers per request; hosted APIs refuse more than about a hundred."""
CHAT = "/chat/completions"
PLAIN = Instruction("{}", yes="Yes", no="No")
"""The wording used when no study gives one."""
Answer = TypeVar("Answer")


class RequestForm(NamedTuple):
    """The form of request that a server accepts, determined by one trial request."""

    sampled: bool
    limit: str = "max_tokens"
    """What it calls the length of an answer; newer hosted models know only `max_completion_tokens`."""
    top: int = TOP
    many: bool = True
    """Whether it gives several answers to one request."""

    def decoding(self) -> dict[str, object]:
        """One greedy token with the likeliest others, or a few tokens drawn from the model's own distribution."""
        if self.sampled:
            return {"temperature": 1, "top_p": 1, self.limit: WORDS}
        return {"temperature": 0, self.limit: 1, "logprobs": True, "top_logprobs": self.top}


class ServedScorer:
    """A chat model behind a URL."""

    def __init__(
        self, spec: ModelSpec, client: Client, form: RequestForm, asking: Asking, *, instruction: Instruction = PLAIN
    ) -> None:
        self._bare, self._client, self._form, self._asking = spec, client, form, asking
        self._instruction = instruction
        self.spec = _instructed(spec, instruction)
        self.channels: tuple[str, ...] = (*CHANNELS, *COUNTS) if form.sampled else CHANNELS
        self.batch_size = 4
        self.start_notes: list[str] = []

    @property
    def notes(self) -> list[str]:
        """Notes from the start, then requests, tokens, cost, refusals and bounds up to now."""
        return [*self.start_notes, *self._client.tally.notes(self._client.limits)]

    def instructed(self, instruction: Instruction) -> ServedScorer:
        """The same model with a study's wording; requests are counted together."""
        made = ServedScorer(self._bare, self._client, self._form, self._asking, instruction=instruction)
        made.batch_size, made.start_notes = self.batch_size, self.start_notes
        return made

    def prepare(self, image: Image.Image) -> str:
        """The picture as a data URL."""
        return data_url(image, self._asking)

    def score_prepared(self, prepared: Sequence[str], prompts: Sequence[str]) -> Floats:
        """One request per picture and prompt (or per draw), several under way at once."""
        jobs = [(row, picture, prompt) for row, picture in enumerate(prepared) for prompt in prompts]
        cells = self._client.each(jobs, self._cell)
        for cell in cells:
            self._client.tally.cell(width=cell.width, refused=cell.refused > 0.5, unseen=not cell.seen)
        values = np.array([cell.channels() for cell in cells], dtype=np.float32)
        return values.reshape(len(prepared), len(prompts), len(self.channels))

    def _cell(self, line: Line, job: tuple[int, str, str]) -> Cell:
        row, picture, prompt = job
        messages = messages_of(picture, self._instruction.ask(prompt))
        try:
            return self._draws(line, messages) if self._form.sampled else self._tokens(line, messages)
        except NotProbabilities:
            raise UnusableScore("image", [row]) from None

    def _tokens(self, line: Line, messages: list[dict[str, object]]) -> Cell:
        answer = _ask(line, question(self._bare.weights, messages, self._form), _first_choice)
        tokens = first_tokens(answer) if answer else None
        if not answer or tokens is None:
            return REFUSED
        cell = read_tokens(tokens, self._instruction, text_of(answer), top=self._form.top)
        return cell._replace(refused=1.0) if is_policy(answer) else cell

    def _draws(self, line: Line, messages: list[dict[str, object]]) -> Cell:
        body = question(self._bare.weights, messages, self._form)
        answers: list[str] = []
        while (lacking := self._asking.draws - len(answers)) > 0:
            more = {"n": min(lacking, MANY)} if self._form.many and lacking > 1 else {}
            texts = _ask(line, {**body, **more}, _texts)
            answers += ([""] * more.get("n", 1) if texts is None else texts)[:lacking]
        self._client.tally.drawn(answers)
        return read_draws(answers, self._instruction)


# What is sent


def data_url(image: Image.Image, asking: Asking) -> str:
    """A picture as the server gets it: RGB, at most so many pixels on its longest side, lossless by default."""
    picture = image.convert("RGB")
    if max(picture.size) > asking.side:
        scale = asking.side / max(picture.size)
        width, height = (max(1, round(length * scale)) for length in picture.size)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    options = {"quality": asking.quality, "subsampling": 0} if asking.image == "jpeg" else {}
    picture.save(buffer, asking.image.upper(), **options)
    return f"data:image/{asking.image};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def messages_of(picture: str, words: str) -> list[dict[str, object]]:
    parts = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": words}]
    return [{"role": "user", "content": parts}]


def question(model: str, messages: list[dict[str, object]], form: RequestForm) -> dict[str, object]:
    """The body of a request."""
    return {"model": model, "messages": messages, "stream": False, **form.decoding()}


# What comes back


def _first_choice(reply: object) -> Mapping[str, object]:
    """The answer, which has log-probabilities or is a refusal."""
    answer = choices(reply)[0]
    if first_tokens(answer) is None and not is_policy(answer):
        raise Garbled("the reply lacks the log-probabilities that the server gave before")
    text_of(answer)
    return answer


def _texts(reply: object) -> list[str]:
    """The answers, draw by draw; a refusal is an empty text."""
    return ["" if is_policy(choice) else text_of(choice) for choice in choices(reply)]


def _ask(line: Line, body: dict[str, object], read: Callable[[object], Answer]) -> Answer | None:
    """The reply as `read` reads it; None where the server's policy forbade one."""
    try:
        return line.ask("POST", CHAT, body, read)
    except Declined as error:
        if error.code in POLICY_CODES:
            return None
        raise


def _instructed(spec: ModelSpec, instruction: Instruction) -> ModelSpec:
    words = {"template": instruction.template, "yes": instruction.yes, "no": instruction.no}
    return replace(spec, settings={**spec.settings, "instruction": words})
