"""Served models: any OpenAI-compatible server (vLLM, SGLang, llama.cpp, a hosted API) with one question per cell.

`openai:MODEL@URL`. A cell is the first token's log-probability on the two words of the study's instruction, with
the bounds that the server's short list of tokens leaves; or, if the server gives no log-probabilities, the counts
of repeated answers. Needs no library beyond Python's own. See docs/served.md.
"""

import copy
import json
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from beholder.core.digests import digest
from beholder.core.errors import ModelError, UnusableScore, UsageError
from beholder.core.files import write_whole
from beholder.models.scorer import Floats, PictureTooLarge
from beholder.models.served import protocol
from beholder.models.served.address import PREFIX, Address, Asking, Limits, key_for, read_address
from beholder.models.served.client import CONTENT, Client, Declined, Line, Upload
from beholder.models.served.protocol import Body, Cell, Json, RequestForm
from beholder.models.spec import AS_SERVED, LoadOptions, ModelSpec
from beholder.prompts.prompt_set import PLAIN, Instruction

SMALLEST = 64  # pixels of a longest side: a server that refuses such a picture wants none
MANY = 32  # answers per request at most; hosted APIs refuse more than about a hundred
CHAT = "/chat/completions"
CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
Answer = TypeVar("Answer")
Job = tuple[int, str, str]  # the row of a picture, the picture, a prompt


class ServedScorer:
    """A chat model behind a URL."""

    def __init__(self, spec: ModelSpec, client: Client, form: RequestForm, asking: Asking) -> None:
        self.spec, self._client, self._form, self._asking, self._instruction = spec, client, form, asking, PLAIN
        self.channels: tuple[str, ...] = (*protocol.CHANNELS, *protocol.COUNTS) if form.sampled else protocol.CHANNELS
        self.batch_size = 4
        self.start_notes: list[str] = []
        self.uploads_to = client.elsewhere  # the server that pictures are sent to; empty if it is on this machine

    @property
    def notes(self) -> list[str]:
        """Notes from the start, then requests, tokens, cost, refusals and bounds up to now."""
        return [*self.start_notes, *self._client.tally.notes(self._client.limits)]

    def instructed(self, instruction: Instruction) -> "ServedScorer":
        """The same model with a study's wording; requests are counted together."""
        made = copy.copy(self)
        words = {"template": instruction.template, "yes": instruction.yes, "no": instruction.no}
        made._instruction, made.spec = instruction, self.spec.having(instruction=words)
        return made

    def send_smaller(self) -> bool:
        """From now on send pictures of half the side, if that leaves one; it is in the spec, as if asked for."""
        before, side = self._asking.side, self._asking.side // 2
        if side < SMALLEST:
            return False
        self._asking = replace(self._asking, side=side)
        self.spec = self.spec.having(image=self._asking.encoding())
        told = (
            f"The server found a picture of up to {before} pixels too large: from then on, all were sent with at most"
        )
        self.start_notes = [*self.start_notes, f"{told} {side} on the longest side, the same as ?side={side}."]
        return True

    def prepare(self, image: Image.Image) -> str:
        """The picture as a data URL."""
        return protocol.data_url(image, self._asking)

    def score_prepared(self, prepared: Sequence[str], prompts: Sequence[str]) -> Floats:
        """One request per picture and prompt (or per draw), several under way at once; or all of them in a batch."""
        jobs = [(row, picture, prompt) for row, picture in enumerate(prepared) for prompt in prompts]
        batched = bool(self._client.limits.batch and jobs)
        cells = self._batched(jobs) if batched else self._asked(jobs, len(prompts))
        for cell in cells:
            self._client.tally.cell(
                width=cell.width, refused=cell.refused > 0.5, unseen=not (cell.seen or cell.undecided)
            )
        values = np.array([cell.channels() for cell in cells], dtype=np.float32)
        return values.reshape(len(prepared), len(prompts), len(self.channels))

    def _asked(self, jobs: Sequence[Job], each: int) -> list[Cell]:
        """The cells of the jobs, `each` of them about one picture."""
        if not jobs:
            return []
        # The first about every picture goes ahead: a server that remembers prompts has then read the picture.
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
            money, unknown = client.limits.money(*tokens), f"{PREFIX}PRICE_IN and {PREFIX}PRICE_OUT would give the cost"
            raise UsageError(
                f"A batch of {len(jobs):,} requests, about {tokens[0]:,} tokens in and {tokens[1]:,} out; "
                f"{unknown if money is None else f'about {money:,.4f} at the prices given'}. Nothing was submitted.\n"
                f"To submit it, and those that follow, run the same command with {PREFIX}BATCH=submit."
            )
        draws = {"n": self._asking.draws} if self._form.sampled else {}
        bodies = [{**self._question(job), **draws} for job in jobs]
        replies = answered(client, CHAT, bodies, Path(client.limits.batch_folder))
        return [self._read(job, reply) for job, reply in zip(jobs, replies, strict=True)]

    def _question(self, job: Job) -> Body:
        asked = self._instruction
        return self._form.question(self.spec.weights, job[1], asked.ask(job[2]), asked.yes, asked.no)

    def _read(self, job: Job, reply: Mapping[str, object] | None) -> Cell:
        """A cell of one reply; None is a refusal by policy."""
        with self._faults(job):
            if self._form.sampled:
                return self._counted([""] * self._asking.draws if reply is None else protocol.texts_of(reply))
            return self._cell_of(None if reply is None else protocol.first_choice(reply))

    def _cell(self, line: Line, job: Job) -> Cell:
        body = self._question(job)
        with self._faults(job):
            return self._draws(line, body) if self._form.sampled else self._tokens(line, body)

    @contextmanager
    def _faults(self, job: Job) -> Iterator[None]:
        """What is wrong with an answer, reported with its picture or with the server."""
        try:
            yield
        except protocol.NotProbabilities:
            raise UnusableScore("image", [job[0]]) from None
        except (protocol.Thinks, protocol.Garbled) as error:
            told = THINKS if isinstance(error, protocol.Thinks) else f"{error}."
            raise ModelError(f"{self._client.where}: {told}") from None

    def _tokens(self, line: Line, body: Body) -> Cell:
        answer = _ask(line, body, protocol.first_choice)
        cell = self._cell_of(answer)
        if cell.seen or not self._form.prompted or answer is None:
            return cell
        # The probabilities of both words in three casings, each put at the end of the prompt.
        words = [case(word) for word in (self._instruction.yes, self._instruction.no) for case in CASES]
        asked = [(word, _ask(line, protocol.ending(body, word), protocol.mapping)) for word in dict.fromkeys(words)]
        found = [(word, protocol.prompt_word(reply, word)) for word, reply in asked if reply is not None]
        return self._cell_of(answer, [(word, value) for word, value in found if value is not None])

    def _cell_of(self, answer: Mapping[str, object] | None, more: Sequence[tuple[str, float]] = ()) -> Cell:
        tokens = protocol.first_tokens(answer) if answer else None
        if not answer or tokens is None:
            return protocol.REFUSED
        known = {token for token, _ in tokens}
        tokens = [*tokens, *(pair for pair in more if pair[0] not in known)]
        cell = protocol.read_tokens(tokens, self._instruction, protocol.text_of(answer), top=self._form.top)
        return cell._replace(refused=1.0) if protocol.is_policy(answer) else cell

    def _draws(self, line: Line, body: Body) -> Cell:
        answers: list[str] = []
        while (lacking := self._asking.draws - len(answers)) > 0:
            more = {"n": min(lacking, MANY)} if self._form.many and lacking > 1 else {}
            try:
                texts = _ask(line, {**body, **more}, protocol.texts_of)
            except protocol.Thinks:
                if body[self._form.limit] == protocol.ROOM:
                    raise
                body = {**body, self._form.limit: protocol.ROOM}  # once more, with room to think and to answer
                continue
            answers += ([""] * more.get("n", 1) if texts is None else texts)[:lacking]
        return self._counted(answers)

    def _counted(self, answers: Sequence[str]) -> Cell:
        self._client.tally.drawn(answers)
        return protocol.read_draws(answers, self._instruction)


def _ask(line: Line, body: dict[str, object], read: Callable[[object], Answer]) -> Answer | None:
    """The reply as `read` reads it; None where the server's policy forbade one."""
    try:
        return line.ask("POST", CHAT, body, read)
    except Declined as error:
        if error.code in protocol.POLICY_CODES:
            return None
        raise PictureTooLarge(str(error)) if error.too_large else error from None


# Opening: one question about a grey picture shows which model answers and in which form; both go into the spec, so that
# all cells of a run are filled in the same way.

MODELS = "/models"
BATCHED = 256  # pictures in one batch of a hosted API
FEWER = 5  # the most tokens that older servers return
UNKNOWN = "unknown"
THINKS = (
    f"the model thinks before it answers, and had not answered after {protocol.ROOM:,} tokens, or the tokens of its "
    "thoughts are all that the server gives probabilities of.\nTurn thinking off at the server (for Qwen3: "
    "--chat-template-kwargs '{\"enable_thinking\": false}'), or sample its answers: add ?answers=sampled."
)
STRANGE = ("zebra", "quartz")  # answers that no one would give unless only they are allowed
NOT_OF_THE_FORM = (401, 402, 404, 413, 429)  # errors that another form of the request does not fix


def open_served(text: str, options: LoadOptions) -> ServedScorer:
    """The scorer of `MODEL@URL`."""
    address = read_address(text)
    client = Client(address.url, key_for(address.url, os.environ), Limits.from_environment(os.environ))
    return opened(address, client, options)


def opened(address: Address, client: Client, options: LoadOptions, *, adapter: str = "openai") -> ServedScorer:
    """The scorer of an address, once it has answered."""
    listed = _listed(client)
    form, reply = _probe(client, address, listed)
    revision = address.revision or options.revision or _revision(reply, listed, address.model)
    spec = ModelSpec(address.name, adapter, address.model, revision, AS_SERVED, _settings(address, form))
    scorer = ServedScorer(spec, client, form, address.asking)
    scorer.batch_size = options.batch_size or (BATCHED if client.limits.batch else scorer.batch_size)
    scorer.start_notes = list(_notes(address, form, listed, revision, options))
    return scorer.instructed(PLAIN)


def _listed(client: Client) -> dict[str, Mapping[str, object]]:
    """The models that the server lists, by name; empty if it has no list or fails to give it: nothing depends on it."""
    try:
        body = client.ask("GET", MODELS, None, lambda body: body, attempts=1)
    except ModelError:
        return {}
    entries = body.get("data") if isinstance(body, Mapping) else None
    models = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return {str(entry.get("id")): entry for entry in models}


def _probe(client: Client, address: Address, listed: Mapping[str, object]) -> tuple[RequestForm, Mapping[str, object]]:
    """The best form of request that the server accepts, and its first answer."""
    grey = protocol.data_url(Image.new("RGB", (64, 64), (128, 128, 128)), address.asking)
    refused: Declined | None = None
    understood: str | None = None
    waiting, known = deque(_forms(address.asking)), RequestForm(False)
    while waiting:
        form = waiting.popleft()._replace(words=known.words, least=known.least, without=known.without)
        if understood and not (form.sampled and form.limit == understood):
            continue
        more = {"n": 2} if form.sampled and form.many else {}
        try:
            body = form.question(address.model, grey, "Is this picture grey? Answer with Yes or No.", *STRANGE) | more
            answers, reply = client.ask("POST", CHAT, body, partial(_first_answers, form))
        except Declined as error:
            final = error.status in NOT_OF_THE_FORM or (error.status == 403 and form.sampled)
            if final or error.status >= 500 or error.too_large:
                raise _explained(error, address, listed) from None
            refused = error
            if (other := form.mended(error.message)) is not None:
                known = other
                waiting.appendleft(other)
            continue
        except protocol.Thinks:
            # The first token is none of the answer's: only sampling, with room to think, can find one.
            understood, known = form.limit, form._replace(words=protocol.ROOM)
            waiting = deque(each for each in _forms(address.asking) if each.sampled)
            if form.words == protocol.ROOM or not waiting:
                raise ModelError(f"{client.where}: {THINKS}") from None
            continue
        if form.guided and protocol.text_of(answers[0]).strip() not in STRANGE:
            continue  # it took the list of answers and did not keep to it
        if form.sampled:
            return form._replace(many=len(answers) > 1), reply
        if protocol.first_tokens(answers[0]):
            return form._replace(prompted=_prompted(client, body)), reply
        understood = form.limit  # it omits log-probabilities: no other form will return them
    if address.asking.answers == "logprobs":
        why = f"gives no log-probabilities{f': {refused.message}' if refused else '.'}"
        raise ModelError(f"{client.where} {why}\nRemove ?answers=logprobs to sample answers instead.")
    if address.asking.answers == "guided":
        why = "does not keep to a list of allowed answers."
        raise ModelError(f"{client.where} {why}\nRemove ?answers=guided to ask it freely.")
    assert refused
    raise _explained(refused, address, listed)


def _first_answers(form: RequestForm, said: object) -> tuple[list[Json], Json]:
    """The answers to the trial request, which can be read, and the whole reply."""
    answers = protocol.choices(said)
    if any(protocol.thinks(answer, sampled=form.sampled) for answer in answers):
        raise protocol.Thinks
    protocol.first_tokens(answers[0])
    return answers, protocol.mapping(said)


def _prompted(client: Client, body: dict[str, object]) -> bool:
    """Whether the server reports the probability of a word at the end of the prompt."""
    try:
        reply = client.ask("POST", CHAT, protocol.ending(body, "Yes"), protocol.mapping, attempts=1)
    except ModelError:
        return False
    return protocol.prompt_word(reply, "Yes") is not None


def _forms(asking: Asking) -> list[RequestForm]:
    limits = ("max_tokens", "max_completion_tokens")
    if asking.answers == "guided":
        return [RequestForm(True, limit, guided=guided) for guided, limit in product(protocol.GUIDED, limits)]
    tokens = [RequestForm(False, limit, top=top) for limit, top in product(limits, (protocol.TOP, FEWER))]
    tokens.append(RequestForm(False, top=FEWER, older=True))
    drawn = [RequestForm(True, limit, many=many) for limit, many in product(limits, (True, False))]
    return {"logprobs": tokens, "sampled": drawn}.get(asking.answers, [*tokens, *drawn])


def _explained(error: Declined, address: Address, listed: Mapping[str, object]) -> ModelError:
    if error.status == 404 and listed and address.model not in listed:
        return ModelError(f"{error}\nThe server has: {', '.join(sorted(listed)[:20])}.")
    return error


def _revision(reply: Mapping[str, object], listed: Mapping[str, Mapping[str, object]], requested: str) -> str:
    """What the server reports beyond the requested name: dated model name, weights, fingerprint."""
    entry = listed.get(requested, {})
    names = [reply.get("model"), entry.get("root"), reply.get("system_fingerprint")]
    texts = [text for text in names if isinstance(text, str) and text and text != requested]
    return " ".join(dict.fromkeys(texts)) or (requested if requested in listed else UNKNOWN)


def _settings(address: Address, form: RequestForm) -> dict[str, object]:
    """Everything that moves a score, but for the instruction."""
    told = {name: value for name, value in form.decoding.items() if name != "logprobs"}
    decoding = {name.replace("max_completion", "max"): value for name, value in told.items()}
    if form.sampled:
        decoding |= {"draws": address.asking.draws, **({"guided": form.guided} if form.guided else {})}
    else:
        decoding |= {"top_logprobs": form.top, "spellings": protocol.SPELLINGS}
        decoding |= {"unseen": "prompt_logprobs"} if form.prompted else {}
    return {
        "host": f"{address.url.scheme}://{address.url.netloc}{address.url.path}",
        "answers": "sampled" if form.sampled else "logprobs",
        "decoding": decoding,
        "image": address.asking.encoding(),
        "message": "one user message: picture, then words",
    }


def _notes(
    address: Address, form: RequestForm, listed: Mapping[str, object], revision: str, options: LoadOptions
) -> Iterator[str]:
    if revision == UNKNOWN:
        yield "The server does not identify its weights: the revision is unknown, and scores are stored by name alone."
    if listed and address.model not in listed:
        yield f"The server answers to '{address.model}', but lists: {', '.join(sorted(listed)[:10])}."
    if form.words > protocol.WORDS:
        yield "The model thinks before it answers: only what it says after that counts."
    if form.without:
        yield f"The server refuses {' and '.join(form.without)}: its own setting was used."
    if form.guided:
        yield "The server allows only the two words as answers: refusals are not seen."
    if form.sampled:
        yield (
            f"Answers are sampled, {address.asking.draws} draws per cell, and differ from run to run: "
            "the counts are stored, with exact 95 % bounds."
        )
    elif form.top < protocol.TOP:
        yield f"The server returns only the {form.top} likeliest tokens, so bounds are wider."
    if options.precision != "auto":
        yield f"The server decides the precision of a served model: {options.precision} was not applied."


# Batches of hosted APIs

FILES, BATCHES = "/files", "/batches"
WAITING = ("validating", "in_progress", "finalizing")
POLL_SECONDS = 30.0
Answered = Json | None  # the reply's body; None where the server's policy forbade an answer


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


def _finished(client: Client, name: str, state: Path) -> Json:
    """The batch when it is done; Ctrl-C ends the wait, not the batch."""
    while True:
        batch = client.ask("GET", f"{BATCHES}/{name}", None, protocol.mapping)
        status = batch.get("status")
        if status == "completed":
            return batch
        if status not in WAITING:
            state.unlink(missing_ok=True)  # the same command submits it anew
            errors = protocol.part(batch, "errors").get("data")
            reported = [each for each in errors if isinstance(each, Mapping)] if isinstance(errors, list) else []
            why = "; ".join(client.clipped(str(error.get("message"))) for error in reported[:3])
            raise ModelError(f"{client.where}: batch {name} ended as '{status}'{f': {why}' if why else ''}.")
        time.sleep(POLL_SECONDS)


def _body(reply: Json, name: str) -> Answered:
    """The body of one reply; None for a refusal by policy."""
    response = protocol.part(reply, "response")
    body = protocol.part(response, "body")
    if response.get("status_code") == 200:
        return body
    error = protocol.part(reply, "error") or protocol.part(body, "error")
    if error.get("code") in protocol.POLICY_CODES:
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
    name = protocol.mapping(reply).get("id")
    if not isinstance(name, str) or not name:
        raise protocol.Garbled("the reply has no id")
    return name


def _lines(reply: object) -> list[Json]:
    return [protocol.mapping(line) for line in reply] if isinstance(reply, list) else []
