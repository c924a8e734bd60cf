"""Served models: any OpenAI-compatible server (vLLM, SGLang, llama.cpp, a hosted API) with one question per cell.

`openai:MODEL@URL`. A cell is the first token's log-probability on the two words of the study's instruction, with
the bounds that the server's short list of tokens leaves; or, if the server gives no log-probabilities, the counts
of repeated answers. Needs no library beyond Python's own. See docs/served.md.
"""

from __future__ import annotations

import base64
import io
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from PIL import Image

from beholder.core.digests import digest
from beholder.core.errors import ModelError, UnusableScore, UsageError
from beholder.core.files import write_whole
from beholder.models.scorer import Floats
from beholder.models.served.address import PREFIX, Asking
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
    mapping,
    prompt_word,
    read_draws,
    read_tokens,
    text_of,
)
from beholder.models.served.client import CONTENT, Client, Declined, Line, Upload
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction

TOP = 20  # requested tokens: the most that hosted APIs return
WORDS = 8  # tokens of a sampled answer: enough for a first word
MANY = 32  # answers per request at most; hosted APIs refuse more than about a hundred
CHAT = "/chat/completions"
GUIDED: dict[str, Callable[[list[str]], object]] = {
    "structured_outputs": lambda words: {"choice": words},
    "guided_choice": lambda words: words,
}
"""How vLLM is given the only answers allowed: since version 0.12, and before."""
PLAIN = Instruction("{}", yes="Yes", no="No")  # used when no study gives a wording
Answer = TypeVar("Answer")
Body = dict[str, object]
Messages = list[dict[str, object]]
Job = tuple[int, str, str]  # the row of a picture, the picture, a prompt


class RequestForm(NamedTuple):
    """The form of request that a server accepts, determined by one trial request."""

    sampled: bool
    limit: str = "max_tokens"
    """What it calls the length of an answer; newer hosted models know only `max_completion_tokens`."""
    top: int = TOP
    many: bool = True
    """Whether it gives several answers to one request."""
    prompted: bool = False
    """Whether it reports the probability of a word at the end of the prompt, so that no wanted word is unseen."""
    guided: str = ""
    """What it calls the list of allowed answers, if answers are to be only these."""

    def question(self, model: str, messages: Messages, *words: str) -> Body:
        """The body of a request; only these words are allowed as answers where the form has that.

        One greedy token with the likeliest others, or a few tokens drawn from the model's own distribution.
        """
        body: Body = {"model": model, "messages": messages, "stream": False}
        if self.guided:
            body[self.guided] = GUIDED[self.guided](list(words))
        if self.sampled:
            return {**body, "temperature": 1, "top_p": 1, self.limit: WORDS}
        return {**body, "temperature": 0, self.limit: 1, "logprobs": True, "top_logprobs": self.top}


class ServedScorer:
    """A chat model behind a URL."""

    def __init__(
        self, spec: ModelSpec, client: Client, form: RequestForm, asking: Asking, *, instruction: Instruction = PLAIN
    ) -> None:
        self._bare, self._client, self._form, self._asking = spec, client, form, asking
        self._instruction = instruction
        words = {"template": instruction.template, "yes": instruction.yes, "no": instruction.no}
        self.spec = replace(spec, settings={**spec.settings, "instruction": words})
        self.channels: tuple[str, ...] = (*CHANNELS, *COUNTS) if form.sampled else CHANNELS
        self.batch_size = 4
        self.start_notes: list[str] = []
        self.uploads_to = client.elsewhere
        """The server that pictures are sent to; empty if it is on this machine."""

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
        """One request per picture and prompt (or per draw), several under way at once; or all of them in a batch."""
        jobs = [(row, picture, prompt) for row, picture in enumerate(prepared) for prompt in prompts]
        batched = bool(self._client.limits.batch and jobs)
        cells = self._batched(jobs) if batched else self._asked(jobs, len(prompts))
        for cell in cells:
            self._client.tally.cell(width=cell.width, refused=cell.refused > 0.5, unseen=not cell.seen)
        values = np.array([cell.channels() for cell in cells], dtype=np.float32)
        return values.reshape(len(prepared), len(prompts), len(self.channels))

    def _asked(self, jobs: Sequence[Job], each: int) -> list[Cell]:
        """The cells of the jobs, `each` of them about one picture.

        The first question about every picture goes ahead, so that a server that remembers prompts has read the
        picture when the others come; these come picture by picture.
        """
        if not jobs:
            return []
        first = iter(self._client.each(jobs[::each], self._cell))
        rest = iter(self._client.each([job for number, job in enumerate(jobs) if number % each], self._cell))
        return [next(rest if number % each else first) for number in range(len(jobs))]

    def _batched(self, jobs: Sequence[Job]) -> list[Cell]:
        """The cells by way of the server's batches; one question is asked first, to estimate the cost of all."""
        client = self._client
        if client.limits.batch == "estimate":
            before = dict(client.tally.counts)
            client.each(jobs[:1], self._cell)
            names = ("prompt_tokens", "completion_tokens")
            tokens = [len(jobs) * (client.tally.counts[name] - before.get(name, 0)) for name in names]
            raise UsageError(
                f"A batch of {len(jobs):,} requests, about {tokens[0]:,} tokens in and {tokens[1]:,} out; "
                f"{_priced(client.limits.money(*tokens))}. Nothing was submitted.\n"
                f"To submit it, and those that follow, run the same command with {PREFIX}BATCH=submit."
            )
        draws = {"n": self._asking.draws} if self._form.sampled else {}
        bodies = [{**self._question(job), **draws} for job in jobs]
        replies = answered(client, CHAT, bodies, Path(client.limits.batch_folder))
        return [self._read(job, reply) for job, reply in zip(jobs, replies, strict=True)]

    def _question(self, job: Job) -> Body:
        messages = messages_of(job[1], self._instruction.ask(job[2]))
        return self._form.question(self._bare.weights, messages, self._instruction.yes, self._instruction.no)

    def _read(self, job: Job, reply: Mapping[str, object] | None) -> Cell:
        """A cell of one reply; None is a refusal by policy."""
        try:
            if self._form.sampled:
                return self._counted([""] * self._asking.draws if reply is None else _texts(reply))
            return self._cell_of(None if reply is None else _first_choice(reply))
        except NotProbabilities:
            raise UnusableScore("image", [job[0]]) from None
        except Garbled as error:
            raise ModelError(f"{self._client.where}: {error}.") from None

    def _cell(self, line: Line, job: Job) -> Cell:
        body = self._question(job)
        try:
            return self._draws(line, body) if self._form.sampled else self._tokens(line, body)
        except NotProbabilities:
            raise UnusableScore("image", [job[0]]) from None

    def _tokens(self, line: Line, body: Body) -> Cell:
        answer = _ask(line, body, _first_choice)
        cell = self._cell_of(answer)
        if cell.seen or not self._form.prompted or answer is None:
            return cell
        # The probabilities of both words in three casings, each put at the end of the prompt.
        words = [cased for word in (self._instruction.yes, self._instruction.no) for cased in casings(word)]
        asked = [(word, _ask(line, ending(body, word), mapping)) for word in words]
        found = [(word, prompt_word(reply, word)) for word, reply in asked if reply is not None]
        return self._cell_of(answer, [(word, value) for word, value in found if value is not None])

    def _cell_of(self, answer: Mapping[str, object] | None, more: Sequence[tuple[str, float]] = ()) -> Cell:
        tokens = first_tokens(answer) if answer else None
        if not answer or tokens is None:
            return REFUSED
        known = {token for token, _ in tokens}
        tokens = [*tokens, *(pair for pair in more if pair[0] not in known)]
        cell = read_tokens(tokens, self._instruction, text_of(answer), top=self._form.top)
        return cell._replace(refused=1.0) if is_policy(answer) else cell

    def _draws(self, line: Line, body: Body) -> Cell:
        answers: list[str] = []
        while (lacking := self._asking.draws - len(answers)) > 0:
            more = {"n": min(lacking, MANY)} if self._form.many and lacking > 1 else {}
            texts = _ask(line, {**body, **more}, _texts)
            answers += ([""] * more.get("n", 1) if texts is None else texts)[:lacking]
        return self._counted(answers)

    def _counted(self, answers: Sequence[str]) -> Cell:
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


def messages_of(picture: str, words: str) -> Messages:
    parts = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": words}]
    return [{"role": "user", "content": parts}]


def ending(body: Body, word: str) -> Body:
    """The body of a request for the probability of a word as the beginning of the answer to this one."""
    started = [*body["messages"], {"role": "assistant", "content": word}]  # type: ignore[misc]
    form = {"add_generation_prompt": False, "continue_final_message": True, "prompt_logprobs": 0}
    return {"model": body["model"], "messages": started, "stream": False, "temperature": 0, "max_tokens": 1, **form}


def casings(word: str) -> list[str]:
    """A word as it may begin an answer.

    >>> casings("Yes")
    ['Yes', 'yes', 'YES']
    """
    return list(dict.fromkeys([word, word.lower(), word.upper()]))


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


def _priced(money: float | None) -> str:
    if money is None:
        return f"{PREFIX}PRICE_IN and {PREFIX}PRICE_OUT would give the cost"
    return f"about {money:,.4f} at the prices given"


# Batches of hosted APIs

FILES, BATCHES = "/files", "/batches"
WAITING = ("validating", "in_progress", "finalizing")
POLL_SECONDS = 30.0
Answered = Mapping[str, Any] | None  # the reply's body; None where the server's policy forbade an answer


def answered(client: Client, path: str, bodies: Sequence[Body], folder: Path) -> list[Answered]:
    """The replies to all requests, in order: submitted if that has not happened yet, waited for, and collected."""
    endpoint = f"/v1{path}"
    lines = [
        {"custom_id": str(number), "method": "POST", "url": endpoint, "body": body}
        for number, body in enumerate(bodies)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    state = folder / f"{digest(text)}.json"
    if not state.is_file():
        file = client.ask("POST", FILES, _form(text), _named)
        order = {"input_file_id": file, "endpoint": endpoint, "completion_window": "24h"}
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(state, json.dumps({"batch": client.ask("POST", BATCHES, order, _named)}).encode())
    name = json.loads(state.read_text())["batch"]
    done = _finished(client, name, state)
    files = [done[key] for key in ("output_file_id", "error_file_id") if done.get(key)]
    lines_of = (client.ask("GET", f"{FILES}/{file}{CONTENT}", None, _lines) for file in files)
    replies = {str(reply.get("custom_id")): reply for lines in lines_of for reply in lines}
    return [_body(replies.get(str(number), {}), name) for number in range(len(bodies))]


def _finished(client: Client, name: str, state: Path) -> Mapping[str, Any]:
    """The batch when it is done; Ctrl-C ends the wait, not the batch."""
    while True:
        batch = client.ask("GET", f"{BATCHES}/{name}", None, mapping)
        status = batch.get("status")
        if status == "completed":
            return batch
        if status not in WAITING:
            state.unlink(missing_ok=True)  # the same command submits it anew
            errors = _part(batch, "errors").get("data")
            reported = [each for each in errors if isinstance(each, Mapping)] if isinstance(errors, list) else []
            why = "; ".join(client.clipped(str(error.get("message"))) for error in reported[:3])
            raise ModelError(f"{client.where}: batch {name} ended as '{status}'{f': {why}' if why else ''}.")
        time.sleep(POLL_SECONDS)


def _body(reply: Mapping[str, Any], name: str) -> Answered:
    """The body of one reply; None for a refusal by policy."""
    response = _part(reply, "response")
    body = _part(response, "body")
    if response.get("status_code") == 200:
        return body
    error = _part(reply, "error") or _part(body, "error")
    if error.get("code") in POLICY_CODES:
        return None
    why = error.get("message") or "no answer came back"
    raise ModelError(f"Batch {name}: a request failed: {why}.\nThe same command asks for the batch again.")


def _form(text: str) -> Upload:
    """The questions as a form with a file, as the protocol has it."""
    edge = uuid.uuid4().hex
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
        f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="questions.jsonl"\r\n',
        f"Content-Type: application/jsonl\r\n\r\n{text}\r\n--{edge}--\r\n",
    ]
    return Upload("".join(parts).encode(), f"multipart/form-data; boundary={edge}")


def _named(reply: object) -> str:
    """The server's name for what it was sent."""
    name = mapping(reply).get("id")
    if not isinstance(name, str) or not name:
        raise Garbled("the reply has no id")
    return name


def _lines(reply: object) -> list[Mapping[str, Any]]:
    """The lines of a file of replies."""
    return [mapping(line) for line in reply] if isinstance(reply, list) else []


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part that is an object; empty if the server left it out."""
    part = of.get(name)
    return part if isinstance(part, Mapping) else {}
