"""Open a served model: find out, with one question about a grey picture, which model answers and in which form.

The result goes into the spec, so that all cells of a run are filled in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from PIL import Image

from beholder.core.errors import ModelError
from beholder.models.served.address import Address, Asking, Limits, key_for, read_address
from beholder.models.served.answers import SPELLINGS, choices, first_tokens, mapping, prompt_word, text_of
from beholder.models.served.client import Client, Declined
from beholder.models.served.scorer import (
    CHAT,
    GUIDED,
    TOP,
    WORDS,
    RequestForm,
    ServedScorer,
    data_url,
    ending,
    messages_of,
)
from beholder.models.spec import LoadOptions, ModelSpec

MODELS = "/models"
BATCHED = 256  # pictures in one batch of a hosted API
FEWER = 5  # the most tokens that older servers return
UNKNOWN = "unknown"
STRANGE = ("zebra", "quartz")  # answers that no one would give unless only they are allowed
NOT_OF_THE_FORM = (401, 402, 403, 404, 413, 429)  # errors that another form of the request does not fix


def open_served(text: str, options: LoadOptions) -> ServedScorer:
    """The scorer of `MODEL@URL`."""
    address = read_address(text)
    limits = Limits.from_environment(os.environ)
    client = Client(address.url, key_for(address.url, os.environ), limits)
    listed = _listed(client)
    form, reply = _probe(client, address, listed)
    revision = address.revision or options.revision or _revision(reply, listed, address.model)
    spec = ModelSpec(address.name, "openai", address.model, revision, "as served", _settings(address, form))
    scorer = ServedScorer(spec, client, form, address.asking)
    scorer.batch_size = options.batch_size or (BATCHED if limits.batch else scorer.batch_size)
    scorer.start_notes = list(_notes(address, form, listed, revision, options))
    return scorer


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
    grey = data_url(Image.new("RGB", (64, 64), (128, 128, 128)), address.asking)
    messages = messages_of(grey, "Is this picture grey? Answer with Yes or No.")
    refused: Declined | None = None
    understood: str | None = None
    for form in _forms(address.asking):
        if understood and not (form.sampled and form.limit == understood):
            continue
        more = {"n": 2} if form.sampled and form.many else {}
        try:
            body = {**form.question(address.model, messages, *STRANGE), **more}
            reply = client.ask("POST", CHAT, body, _with_choices)
        except Declined as error:
            if error.status in NOT_OF_THE_FORM or error.status >= 500:
                raise _explained(error, address, listed) from None
            refused = error
            continue
        if form.guided and text_of(choices(reply)[0]).strip() not in STRANGE:
            continue  # it took the list of answers and did not keep to it
        if form.sampled:
            return form._replace(many=len(choices(reply)) > 1), reply
        if first_tokens(choices(reply)[0]):
            return form._replace(prompted=_prompted(client, body)), reply
        understood = form.limit  # it omits log-probabilities: no other form will return them
    if address.asking.answers == "logprobs":
        why = f": {refused.message}" if refused else "."
        raise ModelError(
            f"{client.where} gives no log-probabilities{why}\nRemove ?answers=logprobs to sample answers instead."
        )
    if address.asking.answers == "guided":
        raise ModelError(
            f"{client.where} does not keep to a list of allowed answers.\nRemove ?answers=guided to ask it freely."
        )
    assert refused
    raise _explained(refused, address, listed)


def _prompted(client: Client, body: dict[str, object]) -> bool:
    """Whether the server reports the probability of a word at the end of the prompt."""
    try:
        reply = client.ask("POST", CHAT, ending(body, "Yes"), mapping, attempts=1)
    except ModelError:
        return False
    return prompt_word(reply, "Yes") is not None


def _with_choices(body: Any) -> Mapping[str, object]:
    choices(body)
    return body  # type: ignore[no-any-return]


def _forms(asking: Asking) -> Iterator[RequestForm]:
    """Forms of the request, the most informative first."""
    limits = ("max_tokens", "max_completion_tokens")
    if asking.answers == "guided":
        for guided, limit in product(GUIDED, limits):
            yield RequestForm(sampled=True, limit=limit, guided=guided)
        return
    if asking.answers != "sampled":
        yield from (RequestForm(sampled=False, limit=limit, top=top) for limit, top in product(limits, (TOP, FEWER)))
    if asking.answers != "logprobs":
        yield from (RequestForm(sampled=True, limit=limit, many=many) for limit, many in product(limits, (True, False)))


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
    decoding: dict[str, object] = (
        {"temperature": 1, "top_p": 1, "max_tokens": WORDS, "draws": address.asking.draws}
        | ({"guided": form.guided} if form.guided else {})
        if form.sampled
        else {"temperature": 0, "max_tokens": 1, "top_logprobs": form.top, "spellings": SPELLINGS}
        | ({"unseen": "prompt_logprobs"} if form.prompted else {})
    )
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
    if form.guided:
        yield "The server allows only the two words as answers: refusals are not seen."
    if form.sampled:
        yield (
            f"Answers are sampled, {address.asking.draws} draws per cell, and differ from run to run: "
            "the counts are stored, with exact 95 % bounds."
        )
    elif form.top < TOP:
        yield f"The server returns only the {form.top} likeliest tokens, so bounds are wider."
    if options.precision != "auto":
        yield f"The server decides the precision of a served model: {options.precision} was not applied."
