"""Opening a served model: who is there, which model, and how it takes its questions; asked once, with a grey picture.

What is found goes into the spec, so that all cells of a run are filled in one way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from PIL import Image

from beholder.core.errors import ModelError
from beholder.models.options import LoadOptions
from beholder.models.served.address import Address, Asking, key_for, read_address
from beholder.models.served.answers import SPELLINGS, choices, first_tokens
from beholder.models.served.client import Client, Declined
from beholder.models.served.limits import Limits, Tally
from beholder.models.served.scorer import CHAT, TOP, WORDS, ServedScorer, Ways, data_url, messages_of, question
from beholder.models.spec import ModelSpec

MODELS = "/models"
FEWER = 5
"""Tokens that older servers give at most."""
UNKNOWN = "unknown"
NO_LIST = (404, 405, 501)
NOT_OF_THE_FORM = (401, 402, 403, 404, 413, 429)
"""Errors that another form of the same question does not mend."""


class Found(NamedTuple):
    """A server's first answer."""

    ways: Ways
    reply: Mapping[str, Any]


def open_served(text: str, options: LoadOptions) -> ServedScorer:
    """The scorer of `MODEL@URL`."""
    address = read_address(text)
    limits = Limits.from_environment(os.environ)
    client = Client(address.url, key_for(address.url, os.environ), limits, Tally())
    listed = _listed(client)
    found = _probe(client, address, listed)
    revision = address.revision or options.revision or _revision(found.reply, listed, address.model)
    settings = _settings(address, found.ways)
    spec = ModelSpec(address.name, "openai", address.model, revision, "as served", settings)
    scorer = ServedScorer(spec, client, found.ways, address.asking)
    scorer.batch_size = options.batch_size or scorer.batch_size
    scorer.found = list(_notes(address, found.ways, listed, revision, options))
    return scorer


def _listed(client: Client) -> dict[str, Mapping[str, Any]]:
    """The models that the server says it has, by name; none where it keeps no list."""
    try:
        body = client.each([MODELS], lambda line, path: line.ask("GET", path, None, lambda body: body))[0]
    except Declined as error:
        if error.status in NO_LIST:
            return {}
        raise
    entries = body.get("data") if isinstance(body, Mapping) else None
    found = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return {str(entry.get("id")): entry for entry in found}


def _probe(client: Client, address: Address, listed: Mapping[str, Any]) -> Found:
    """The best form of the question that the server takes."""
    grey = data_url(Image.new("RGB", (64, 64), (128, 128, 128)), address.asking)
    messages = messages_of(grey, "Is this picture grey? Answer with Yes or No.")
    refused: Declined | None = None
    understood: str | None = None
    for ways in _forms(address.asking):
        if understood and not (ways.sampled and ways.limit == understood):
            continue
        body = {**question(address.model, messages, ways), **({"n": 2} if ways.sampled and ways.many else {})}
        try:
            reply = client.each([body], lambda line, body: line.ask("POST", CHAT, body, _with_choices))[0]
        except Declined as error:
            if error.status in NOT_OF_THE_FORM or error.status >= 500:
                raise _told(error, address, listed) from None
            refused = error
            continue
        if ways.sampled:
            return Found(ways._replace(many=len(choices(reply)) > 1), reply)
        if first_tokens(choices(reply)[0]):
            return Found(ways, reply)
        understood = ways.limit  # it leaves log-probabilities out: no other form will bring them
    if address.asking.answers == "logprobs":
        why = f": {refused.said}" if refused else "."
        raise ModelError(f"{client.where} tells no log-probabilities{why}\nLeave ?answers=logprobs away to sample.")
    assert refused
    raise _told(refused, address, listed)


def _with_choices(body: Any) -> Mapping[str, Any]:
    choices(body)
    return body  # type: ignore[no-any-return]


def _forms(asking: Asking) -> Iterator[Ways]:
    """Forms of the question, the most telling first."""
    limits = ("max_tokens", "max_completion_tokens")
    if asking.answers != "sampled":
        yield from (Ways(sampled=False, limit=limit, top=top) for limit, top in product(limits, (TOP, FEWER)))
    if asking.answers != "logprobs":
        yield from (Ways(sampled=True, limit=limit, many=many) for limit, many in product(limits, (True, False)))


def _told(error: Declined, address: Address, listed: Mapping[str, Any]) -> ModelError:
    if error.status == 404 and listed and address.model not in listed:
        return ModelError(f"{error}\nThe server has: {', '.join(sorted(listed)[:20])}.")
    return error


def _revision(reply: Mapping[str, Any], listed: Mapping[str, Mapping[str, Any]], asked: str) -> str:
    """What the server says of itself beyond the name we gave it: dated model name, weights, fingerprint."""
    entry = listed.get(asked, {})
    said = [reply.get("model"), entry.get("root"), reply.get("system_fingerprint")]
    told = [text for text in said if isinstance(text, str) and text and text != asked]
    return " ".join(dict.fromkeys(told)) or (asked if asked in listed else UNKNOWN)


def _settings(address: Address, ways: Ways) -> dict[str, Any]:
    """Everything that moves a score, but for the instruction."""
    decoding: dict[str, Any] = (
        {"temperature": 1, "top_p": 1, "max_tokens": WORDS, "draws": address.asking.draws}
        if ways.sampled
        else {"temperature": 0, "max_tokens": 1, "top_logprobs": ways.top, "spellings": SPELLINGS}
    )
    return {
        "host": f"{address.url.scheme}://{address.url.netloc}{address.url.path}",
        "answers": "sampled" if ways.sampled else "logprobs",
        "decoding": decoding,
        "image": address.asking.encoding(),
        "message": "one user message: picture, then words",
    }


def _notes(
    address: Address, ways: Ways, listed: Mapping[str, Any], revision: str, options: LoadOptions
) -> Iterator[str]:
    if revision == UNKNOWN:
        yield "The server tells nothing of its weights: the revision is unknown, scores are kept under the name alone."
    if listed and address.model not in listed:
        yield f"The server answers to '{address.model}', but lists: {', '.join(sorted(listed)[:10])}."
    if ways.sampled:
        yield (
            f"Answers are sampled, {address.asking.draws} draws a cell, and would not come out the same twice: "
            "the counts are stored, with exact 95 % bounds."
        )
    elif ways.top < TOP:
        yield f"The server tells only the {ways.top} likeliest tokens: bounds are wider."
    if options.precision != "auto":
        yield f"A served model's precision is its server's affair: {options.precision} was not applied."
