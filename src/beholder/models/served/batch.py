"""Batches of hosted APIs: many questions in one file, answered within a day at a lower price.

A batch is submitted once: what was sent and the server's name for it are kept in a folder, so that the same command
finds it again, waits on, and collects. Nothing is submitted before its cost was shown (`BEHOLDER_SERVED_BATCH`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from beholder.core.digests import digest
from beholder.core.errors import ModelError, UsageError
from beholder.core.files import write_whole
from beholder.models.served.answers import Garbled, mapping
from beholder.models.served.client import CONTENT, Client, Upload
from beholder.models.served.limits import PREFIX

FILES, BATCHES = "/files", "/batches"
WAITING = ("validating", "in_progress", "finalizing")
POLL_SECONDS = 30.0
Body = dict[str, object]
Read = TypeVar("Read")
Answered = Mapping[str, Any] | None  # the reply's body; None where the server's policy forbade an answer


def estimate(client: Client, requests: int, usage: Mapping[str, int]) -> str:
    """What so many requests like the one asked will take, in words."""
    tokens = {name: usage.get(name, 0) * requests for name in ("prompt_tokens", "completion_tokens")}
    text = f"{requests:,} requests, about {tokens['prompt_tokens']:,} tokens in and {tokens['completion_tokens']:,} out"
    limits = client.limits
    if limits.price_in is None and limits.price_out is None:
        return f"{text}; {PREFIX}PRICE_IN and {PREFIX}PRICE_OUT would give the cost"
    spent = tokens["prompt_tokens"] * (limits.price_in or 0) + tokens["completion_tokens"] * (limits.price_out or 0)
    return f"{text}; about {spent / 1e6:,.4f} at the prices given"


def refuse_unconfirmed(client: Client, requests: int, usage: Mapping[str, int]) -> None:
    """Raise with the estimate unless the user has confirmed it."""
    if client.limits.batch == "estimate":
        raise UsageError(
            f"A batch of {estimate(client, requests, usage)}. Nothing was submitted.\n"
            f"To submit it, and those that follow, run the same command with {PREFIX}BATCH=submit."
        )


def answered(client: Client, path: str, bodies: Sequence[Body], folder: Path) -> list[Answered]:
    """The replies to all requests, in order: submitted if that has not happened yet, waited for, and collected."""
    lines = [
        {"custom_id": str(number), "method": "POST", "url": f"/v1{path}", "body": body}
        for number, body in enumerate(bodies)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    state = folder / f"{digest(text)}.json"
    if not state.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(state, json.dumps({"batch": _submitted(client, text, f"/v1{path}")}).encode())
    name = json.loads(state.read_text())["batch"]
    done = _finished(client, name, state)
    files = [done[key] for key in ("output_file_id", "error_file_id") if done.get(key)]
    lines_of = (_ask(client, "GET", f"{FILES}/{file}{CONTENT}", read=_lines) for file in files)
    replies = {str(reply.get("custom_id")): reply for lines in lines_of for reply in lines}
    return [_body(replies.get(str(number)), name) for number in range(len(bodies))]


def _submitted(client: Client, text: str, endpoint: str) -> str:
    """Upload the questions and start the batch; the server's name for it."""
    file = _ask(client, "POST", FILES, _form(text), read=_named)
    order = {"input_file_id": file, "endpoint": endpoint, "completion_window": "24h"}
    return _ask(client, "POST", BATCHES, order, read=_named)


def _finished(client: Client, name: str, state: Path) -> Mapping[str, Any]:
    """The batch when it is done; Ctrl-C ends the wait, not the batch."""
    while True:
        batch = _ask(client, "GET", f"{BATCHES}/{name}", read=mapping)
        status = batch.get("status")
        if status == "completed":
            return batch
        if status not in WAITING:
            state.unlink(missing_ok=True)  # the same command submits it anew
            errors = _part(batch, "errors").get("data")
            told = [each for each in errors if isinstance(each, Mapping)] if isinstance(errors, list) else []
            why = "; ".join(client.clipped(str(error.get("message"))) for error in told[:3])
            raise ModelError(f"{client.where}: batch {name} ended as '{status}'{f': {why}' if why else ''}.")
        time.sleep(POLL_SECONDS)


def _body(reply: Mapping[str, Any] | None, name: str) -> Answered:
    """The body of one reply; None for a refusal by policy."""
    response = _part(reply or {}, "response")
    body = _part(response, "body")
    if response.get("status_code") == 200:
        return body
    error = _part(reply or {}, "error") or _part(body, "error")
    if error.get("code") in ("content_filter", "content_policy_violation"):
        return None
    told = error.get("message") or "no answer came back"
    raise ModelError(f"Batch {name}: a request failed: {told}.\nThe same command asks for the batch again.")


def _form(text: str) -> Upload:
    """The questions as a form with a file, as the protocol has it."""
    edge = uuid.uuid4().hex
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
        f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="questions.jsonl"\r\n',
        f"Content-Type: application/jsonl\r\n\r\n{text}\r\n--{edge}--\r\n",
    ]
    return Upload("".join(parts).encode(), f"multipart/form-data; boundary={edge}")


def _ask(client: Client, method: str, path: str, body: object = None, *, read: Callable[[object], Read]) -> Read:
    return client.each([path], lambda line, path: line.ask(method, path, body, read))[0]


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
