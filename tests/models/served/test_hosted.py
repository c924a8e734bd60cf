"""Anthropic's and Gemini's own protocols, by their official libraries, against stand-ins as documented."""

from __future__ import annotations

import base64
import io
import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError
from beholder.models.load import load_model
from beholder.models.served.address import Limits

pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

KEY = "a-key-of-the-test-0123456789"
ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "gemini": "GOOGLE_GEMINI_BASE_URL"}
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
Answer = Callable[[str, dict[str, str], Any], tuple[int, Any]]


@pytest.fixture
def provide(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Answer], str]]:
    """Starts a provider's stand-in on this machine; gives the model's name."""
    monkeypatch.setattr(Limits, "wait_before", lambda self, attempt: 0.01)
    servers: list[ThreadingHTTPServer] = []

    def start(scheme: str, answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, reply = answer(self.path, headers, body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        monkeypatch.setenv(ADDRESSES[scheme], f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv(KEYS[scheme], KEY)
        return f"{scheme}:some-model"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def scored(name: str) -> tuple[Any, dict[str, float]]:
    scorer: Any = load_model(name)
    picture = Image.fromarray(np.full((20, 30, 3), 7, np.uint8))
    values = scorer.score_prepared([scorer.prepare(picture)], ["Is this a nurse?"])[0, 0]
    return scorer, dict(zip(scorer.channels, values.tolist(), strict=True))


def message(text: str, reason: str = "end_turn") -> dict[str, Any]:
    """A reply of the Messages API."""
    content = [{"type": "text", "text": text}] if text else []
    usage = {"input_tokens": 50, "output_tokens": 3}
    fixed = {"id": "msg_1", "type": "message", "role": "assistant", "stop_sequence": None}
    return {**fixed, "model": "some-model-20260101", "content": content, "stop_reason": reason, "usage": usage}


def test_anthropics_messages_are_sampled_without_settings_it_refuses(provide: Any) -> None:
    bodies: list[Any] = []

    def answer(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        sent = headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")  # by the library's version
        assert (path, sent) == ("/v1/messages", KEY)
        if {"temperature", "top_p", "top_k"} & set(body):
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "temperature: no"}}
        bodies.append(body)
        return 200, message("Yes." if len(bodies) % 2 else "No")

    scorer, cell = scored(provide("anthropic", answer) + "?draws=6")
    assert (cell["yes_draws"], cell["no_draws"]) == (3, 3)
    (turn,) = bodies[-1]["messages"]
    picture, words = turn["content"]
    assert Image.open(io.BytesIO(base64.b64decode(picture["source"]["data"]))).size == (30, 20)
    assert (picture["source"]["media_type"], words["text"]) == ("image/png", "Is this a nurse?")
    assert (scorer.spec.adapter, scorer.spec.weights) == ("anthropic", "some-model")
    assert scorer.spec.revision == "some-model-20260101"
    assert KEY not in json.dumps(scorer.spec.as_dict()) + "".join(scorer.notes)
    assert any("6 draws per cell" in note for note in scorer.notes)


def test_a_refusal_by_anthropic_is_an_outcome(provide: Any) -> None:
    said = iter(["Yes"])
    name = provide("anthropic", lambda *_: (200, message(next(said, ""), "end_turn" if said is None else "refusal")))
    assert scored(name + "?draws=2")[1]["refused"] == 1


@pytest.mark.parametrize("scheme", ["anthropic", "gemini"])
def test_a_wrong_key_names_its_own_variable_and_is_not_shown(provide: Any, scheme: str) -> None:
    def answer(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        return 401, {"type": "error", "error": {"type": "authentication_error", "message": f"no such key {KEY}"}}

    with pytest.raises(ModelError, match=f"answers 401.*\n.*{KEYS[scheme]}") as error:
        scored(provide(scheme, answer))
    assert KEY not in str(error.value)


@pytest.mark.parametrize("scheme", ["anthropic", "gemini"])
def test_without_a_key_nothing_is_sent(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=f"needs a key in the environment variable {KEYS[scheme]}"):
        load_model(f"{scheme}:some-model")


def test_a_key_is_not_sent_in_clear_text_over_a_network(provide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = provide("anthropic", lambda *_: (200, message("Yes")))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://example.org")
    with pytest.raises(ModelError, match="must be an address that begins with https"):
        load_model(name)


def test_trouble_that_passes_is_got_over(provide: Any) -> None:
    troubles = [(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})]
    name = provide("anthropic", lambda *_: troubles.pop() if troubles else (200, message("No")))
    assert scored(name + "?draws=2")[1]["no_draws"] == 2


def generated(text: str, tokens: dict[str, float] | None = None, reason: str = "STOP", thoughts: int = 0) -> Any:
    """A reply of generateContent."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}
    if tokens:
        top = [{"token": token, "tokenId": 1, "logProbability": math.log(p)} for token, p in tokens.items()]
        candidate["logprobsResult"] = {"topCandidates": [{"candidates": top}], "chosenCandidates": top[:1]}
    usage = {"promptTokenCount": 260, "candidatesTokenCount": 1, "totalTokenCount": 261, "thoughtsTokenCount": thoughts}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "some-model-002"}


def test_geminis_log_probabilities_are_read(provide: Any) -> None:
    bodies: list[Any] = []

    def answer(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        assert path.endswith("/models/some-model:generateContent")
        assert headers["x-goog-api-key"] == KEY
        bodies.append(body)
        return 200, generated("Yes", {"Yes": 0.7, "No": 0.25, "Maybe": 0.04})

    scorer, cell = scored(provide("gemini", answer))
    assert cell["log_p_no"] == pytest.approx(math.log(0.25))
    config = bodies[-1]["generationConfig"]
    assert (config["responseLogprobs"], config["logprobs"], config["maxOutputTokens"]) == (True, 20, 1)
    picture, words = (bodies[-1]["contents"][0]["parts"][at] for at in (0, 1))
    assert Image.open(io.BytesIO(base64.urlsafe_b64decode(picture["inlineData"]["data"]))).size == (30, 20)
    assert words["text"] == "Is this a nurse?"
    assert (scorer.spec.adapter, scorer.spec.revision) == ("gemini", "some-model-002")


def test_a_gemini_without_log_probabilities_that_thinks_is_given_room(provide: Any) -> None:
    def answer(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        config = body["generationConfig"]
        if config.get("responseLogprobs"):
            return 400, {"error": {"code": 400, "message": "Logprobs is not enabled", "status": "INVALID_ARGUMENT"}}
        if config.get("candidateCount", 1) > 1:
            return 400, {"error": {"code": 400, "message": "one candidate only", "status": "INVALID_ARGUMENT"}}
        if config["maxOutputTokens"] < 1000:
            return 200, generated("", reason="MAX_TOKENS", thoughts=7)
        return 200, generated("No.", thoughts=300)

    scorer, cell = scored(provide("gemini", answer) + "?draws=2")
    assert (cell["no_draws"], cell["refused"]) == (2, 0)
    assert any("thinks before it answers" in note for note in scorer.notes)


def test_a_picture_that_gemini_blocks_is_a_refusal(provide: Any) -> None:
    replies = iter([generated("Yes", {"Yes": 0.7, "No": 0.3})])
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}
    name = provide("gemini", lambda *_: (200, next(replies, blocked)))
    assert scored(name)[1]["refused"] == 1
