"""Models of Anthropic and Google by their own protocols: `anthropic:MODEL` and `gemini:MODEL`, by their own libraries.

A question travels as one to an OpenAI-compatible server would, and is put into the other protocol at the last step, so
that keys, pace, retries, thinking, draws and bounds are those of every served model. Keys come from the environment
only, and are sent to the address that the libraries have, or that their own environment variable names.
"""

import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from beholder.core.errors import MissingExtra, ModelError
from beholder.models.served.address import Key, Limits, is_local, key_in, read_hosted
from beholder.models.served.client import Client, Line, Reply, Upload
from beholder.models.served.protocol import Body
from beholder.models.served.scorer import CHAT, ServedScorer, opened
from beholder.models.spec import LoadOptions

Call = Callable[[Body], Reply]


class Provider(NamedTuple):
    """One protocol: where its server is and its key, and what puts a question to it."""

    scheme: str
    keys: tuple[str, ...]  # environment variables; the first that is set
    url: str
    elsewhere: str  # the environment variable of its library that names another address
    caller: Callable[[str, Key, Limits], Call]


class HostedClient(Client):
    """A client whose requests a provider's library sends."""

    def __init__(self, url: SplitResult, key: Key, limits: Limits, provider: Provider) -> None:
        super().__init__(url, key, limits)
        self.key_names = " or ".join(provider.keys)
        self._call = provider.caller(url.geturl(), key, limits)

    def exchange(self, line: Line, method: str, path: str, body: Upload | None) -> Reply:
        """One request and its reply, both as an OpenAI-compatible server would have them."""
        if method != "POST" or path != CHAT or body is None:
            return refused(404, "this protocol has no lists of models and no batches here")
        return self._call(json.loads(body.data))


def refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error as a server would send it."""
    return Reply(status, dict(headers or {}), json.dumps({"error": {"message": message}}).encode())


def _asked(body: Any) -> tuple[str, str, str]:
    """The form and the base64 of the picture, and the words."""
    image, text = body["messages"][0]["content"]
    head, data = image["image_url"]["url"].split(",", 1)
    return head.removeprefix("data:").partition(";")[0], data, str(text["text"])


def _reply(model: object, choices: Sequence[Body], tokens_in: object, tokens_out: object) -> Reply:
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
    return Reply(200, {}, json.dumps({"model": model, "choices": list(choices), "usage": usage}).encode())


def _choice(text: str, reason: str, thoughts: object = None) -> Body:
    return {"message": {"content": text, "reasoning": thoughts}, "finish_reason": reason}


def anthropic_caller(url: str, key: Key, limits: Limits) -> Call:
    """Questions by the Messages API: no log-probabilities, one answer a request, the model's own temperature."""
    try:
        import anthropic
    except ImportError as error:
        raise MissingExtra("A model by Anthropic's protocol", "anthropic") from error
    transport = anthropic.DefaultHttpxClient(follow_redirects=False, trust_env=False)
    options = {"base_url": url, "timeout": limits.timeout, "max_retries": 0, "http_client": transport}
    client = anthropic.Anthropic(api_key=key.value, **options)
    reasons = {"max_tokens": "length", "refusal": "content_filter"}

    def call(body: Any) -> Reply:
        if "logprobs" in body or body.get("n", 1) > 1 or "max_tokens" not in body:
            return refused(400, "Anthropic's protocol has no log-probabilities, and one answer to a request")
        kind, picture, words = _asked(body)
        source = {"type": "base64", "media_type": kind, "data": picture}
        content = [{"type": "image", "source": source}, {"type": "text", "text": words}]
        try:
            said = client.messages.create(
                model=body["model"], max_tokens=body["max_tokens"], messages=[{"role": "user", "content": content}]
            )
        except anthropic.APIStatusError as error:
            return refused(error.status_code, str(error.message), dict(error.response.headers))
        except anthropic.APITimeoutError as error:
            raise TimeoutError from error
        except anthropic.APIError as error:
            raise ConnectionError(str(error)) from error
        text = "".join(part.text for part in said.content if part.type == "text")
        thoughts = any(part.type == "thinking" for part in said.content) or None
        answer = _choice(text, reasons.get(str(said.stop_reason), "stop"), thoughts=thoughts)
        return _reply(said.model, [answer], said.usage.input_tokens, said.usage.output_tokens)

    return call


def gemini_caller(url: str, key: Key, limits: Limits) -> Call:
    """Questions by generateContent, with log-probabilities where the model gives them."""
    try:
        from google import genai
        from google.genai import errors, types
    except ImportError as error:
        raise MissingExtra("A model by Gemini's protocol", "gemini") from error
    once, transport = types.HttpRetryOptions(attempts=1), {"follow_redirects": False, "trust_env": False}
    http = types.HttpOptions(
        base_url=url, timeout=int(limits.timeout * 1000), retry_options=once, client_args=transport
    )
    client = genai.Client(api_key=key.value, vertexai=False, http_options=http)

    def call(body: Any) -> Reply:
        if "prompt_logprobs" in body or body.get("logprobs") not in (True, None) or "max_tokens" not in body:
            return refused(400, "Gemini's protocol has no such log-probabilities")
        kind, picture, words = _asked(body)
        logprobs = {"response_logprobs": True, "logprobs": body["top_logprobs"]} if "logprobs" in body else {}
        settings: dict[str, Any] = {"max_output_tokens": body["max_tokens"], **logprobs}
        settings |= {"temperature": 0} if body.get("temperature") == 0 else {}  # its own default for draws
        settings |= {"candidate_count": body["n"]} if body.get("n", 1) > 1 else {}
        try:
            contents = [types.Part.from_bytes(data=base64.b64decode(picture), mime_type=kind), words]
            config = types.GenerateContentConfig(**settings)
            said = client.models.generate_content(model=body["model"], contents=contents, config=config)
        except errors.APIError as error:
            return refused(int(error.code), str(error.message), getattr(error.response, "headers", None))
        except Exception as error:
            if not type(error).__module__.startswith("httpx"):
                raise
            raise (TimeoutError if "Timeout" in type(error).__name__ else ConnectionError)(str(error)) from error
        used = said.usage_metadata
        thoughts = (used and used.thoughts_token_count) or None
        choices = [_candidate(each, thoughts) for each in said.candidates or ()]
        tokens = (used.prompt_token_count, used.candidates_token_count) if used else (None, None)
        return _reply(said.model_version, choices or [_choice("", "content_filter")], *tokens)

    return call


FINISHED = {"STOP": "stop", "MAX_TOKENS": "length"}  # any other reason of Gemini's is one not to answer


def _candidate(candidate: Any, thoughts: object) -> Body:
    parts = candidate.content.parts if candidate.content and candidate.content.parts else ()
    text = "".join(part.text or "" for part in parts if not part.thought)
    reason = FINISHED.get(getattr(candidate.finish_reason, "name", "STOP"), "content_filter")
    choice = _choice(text, reason, thoughts=thoughts)
    result = candidate.logprobs_result
    if result and result.top_candidates:
        top = [{"token": one.token, "logprob": one.log_probability} for one in result.top_candidates[0].candidates]
        choice["logprobs"] = {"content": [{"top_logprobs": top}]}
    return choice


def _open(provider: Provider, text: str, options: LoadOptions) -> ServedScorer:
    """The scorer of `anthropic:MODEL` or `gemini:MODEL`."""
    url = urlsplit((os.environ.get(provider.elsewhere) or provider.url).rstrip("/"))
    if url.scheme != "https" and not (url.scheme == "http" and is_local(url.hostname or "")):
        raise ModelError(f"{provider.elsewhere} must be an address that begins with https://.")
    key = next((key for name in provider.keys if (key := key_in(name, os.environ)).value), Key())
    if not key.value:
        raise ModelError(f"{provider.scheme}:MODEL needs a key in the environment variable {provider.keys[0]}.")
    address = read_hosted(provider.scheme, text, url)
    client = HostedClient(url, key, Limits.from_environment(os.environ), provider)
    return opened(address, client, options, adapter=provider.scheme)


open_anthropic = partial(
    _open,
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "https://api.anthropic.com", "ANTHROPIC_BASE_URL", anthropic_caller),
)
GEMINI = "https://generativelanguage.googleapis.com"
open_gemini = partial(
    _open, Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), GEMINI, "GOOGLE_GEMINI_BASE_URL", gemini_caller)
)
