"""A small server that speaks the OpenAI protocol over a real (tiny, random) LLaVA model, and misbehaves on request.

Its log-probabilities are those of the model's forward pass. Everything a test can turn is in `Mood`.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

SIDE, PATCH = 32, 8
ONE_AT_A_TIME = threading.Lock()
MODEL = "tiny-llava"
WORDS = ["Yes", "▁Yes", "yes", "No", "no", "True", "false", "▁true", "Y", "Sorry", "the", "is", "a", "doctor", "?"]
VOCABULARY = ["<unk>", "<s>", "</s>", "<image>", *WORDS]


@cache
def tiny_llava() -> tuple[Any, Any]:
    """Model and processor: 19 tokens, so that a list of 20 tells everything and a list of 3 little."""
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.Metaspace()
    words = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        additional_special_tokens=["<image>"],
    )
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**tower, image_size=SIDE, patch_size=PATCH),
        text_config=LlamaConfig(**tower, vocab_size=len(VOCABULARY), max_position_embeddings=128),
        image_token_index=VOCABULARY.index("<image>"),
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = LlavaForConditionalGeneration(config).eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape, generator=generator) * 0.25)
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    processor = LlavaProcessor(
        CLIPImageProcessorPil(**size),
        words,
        patch_size=PATCH,
        num_additional_image_tokens=1,
        vision_feature_select_strategy="default",
    )
    return model, processor


def log_probabilities(picture: Image.Image, words: str) -> torch.Tensor:
    """Of every token of the vocabulary to be the first of the answer."""
    with ONE_AT_A_TIME:
        return _forward(picture.tobytes(), picture.size, words)


@cache
def _forward(pixels: bytes, size: tuple[int, int], words: str) -> torch.Tensor:
    model, processor = tiny_llava()
    picture = Image.frombytes("RGB", size, pixels)
    inputs = processor(images=picture, text=f"<image> {words}", return_tensors="pt")
    with torch.no_grad():
        return torch.log_softmax(model(**inputs).logits[0, -1], dim=-1)


@dataclass
class Mood:
    """How the server behaves; a test changes it while the server runs."""

    top: int = 20
    """At most so many log-probabilities."""
    strict_top: int | None = None
    """Refuse a question for more than so many."""
    logprobs: bool | str = True
    """Tell them, leave them out (False) or refuse the question (`refuse`)."""
    many: bool = True
    newer: bool = False
    """Knows only max_completion_tokens."""
    text: str | None = None
    refusal: str | None = None
    """`message`, `filter` or `policy`: three ways of a server to refuse."""
    first: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    """Replies given before any proper one: status, headers, body; status 0 hangs up."""
    always: tuple[int, dict[str, str], str] | None = None
    hang: float = 0.0
    hang_after: int = 0
    """With `hang`: so many questions are answered first."""
    key: str | None = None
    models: bool = True
    fingerprint: str | None = None
    weight: float = 1.0
    """Log-probabilities are multiplied by this: NaN or nonsense on request."""
    # what the server saw
    times: list[float] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    mood: Mood

    def log_message(self, *_: Any) -> None:
        """Tests are silent."""

    def do_GET(self) -> None:
        self._noted()
        if self._misbehaves():
            return
        if not self.mood.models:
            self._send(404, {"error": {"message": "no such page"}})
        else:
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "root": "random/llava"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._noted(body)
        with self.mood.lock:
            self.mood.under_way += 1
            self.mood.most = max(self.mood.most, self.mood.under_way)
        try:
            if self.mood.hang and len(self.mood.bodies) > self.mood.hang_after:
                time.sleep(self.mood.hang)
            if not self._misbehaves():
                self._send(*self._answer(body))
        finally:
            with self.mood.lock:
                self.mood.under_way -= 1

    def _noted(self, body: dict[str, Any] | None = None) -> None:
        with self.mood.lock:
            self.mood.times.append(time.monotonic())
            self.mood.headers.append(dict(self.headers))
            if body:
                self.mood.bodies.append(body)

    def _misbehaves(self) -> bool:
        mood = self.mood
        if mood.key and self.headers.get("Authorization") != f"Bearer {mood.key}":
            echo = " ".join(f"{name}: {value}" for name, value in self.headers.items())
            self._send(401, {"error": {"message": f"wrong key in {echo}"}})
            return True
        with mood.lock:
            reply = mood.first.pop(0) if mood.first else mood.always
        if reply is None:
            return False
        status, headers, text = reply
        if not status:
            self.close_connection = True
            return True
        echo = " ".join(f"{name}: {value}" for name, value in self.headers.items())
        self._send(status, text.replace("{headers}", echo), headers)
        return True

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client has left
            self.close_connection = True

    def _answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body["model"] != MODEL:
            return 404, {"error": {"message": f"there is no {body['model']}", "code": "model_not_found"}}
        if problem := self._objection(body):
            return 400, {"error": problem}
        picture, words = _read(body["messages"])
        logs = log_probabilities(picture, words) * self.mood.weight
        choices = [self._choice(body, logs, index) for index in range(body.get("n", 1))]
        usage = {"prompt_tokens": 10, "completion_tokens": len(choices)}
        reply = {"object": "chat.completion", "model": body["model"], "choices": choices, "usage": usage}
        return 200, {**reply, "system_fingerprint": self.mood.fingerprint}

    def _objection(self, body: dict[str, Any]) -> dict[str, str] | None:
        mood = self.mood
        if mood.refusal == "policy":
            return {"message": "not allowed", "code": "content_policy_violation"}
        if mood.newer and "max_tokens" in body:
            return {"message": "use max_completion_tokens", "code": "unsupported_parameter"}
        if body.get("n", 1) > 1 and not mood.many:
            return {"message": "only one choice is allowed"}
        if body.get("logprobs") and (
            mood.logprobs == "refuse" or (mood.strict_top and body["top_logprobs"] > mood.strict_top)
        ):
            return {"message": "logprobs: not so many"}
        return None

    def _choice(self, body: dict[str, Any], logs: torch.Tensor, index: int) -> dict[str, Any]:
        mood = self.mood
        token = int(logs.argmax()) if not body["temperature"] else int(torch.multinomial(logs.exp(), 1))
        message: dict[str, Any] = {"role": "assistant", "content": mood.text or spoken(token)}
        choice: dict[str, Any] = {"index": index, "message": message, "finish_reason": "length"}
        if body.get("logprobs") and mood.logprobs is True and not mood.refusal:
            choice["logprobs"] = {"content": [self._tokens(logs, body["top_logprobs"], token)]}
        if mood.refusal == "message":
            message |= {"content": None, "refusal": "I can't help with that."}
        if mood.refusal == "filter":
            choice |= {"finish_reason": "content_filter"}
            message["content"] = ""
        return choice

    def _tokens(self, logs: torch.Tensor, asked: int, token: int) -> dict[str, Any]:
        top = logs.nan_to_num(0.0).topk(min(asked, self.mood.top, len(logs))).indices.tolist()
        listed = [{"token": spoken(n), "logprob": float(logs[n])} for n in top]
        return {"token": spoken(token), "logprob": float(logs[token]), "top_logprobs": listed}


def spoken(token: int) -> str:
    """A token as a server writes it."""
    return VOCABULARY[token].replace("▁", " ")


def _read(messages: list[dict[str, Any]]) -> tuple[Image.Image, str]:
    parts = {part["type"]: part for part in messages[0]["content"]}
    head, data = parts["image_url"]["image_url"]["url"].split(",", 1)
    assert head.startswith("data:image/")
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"), parts["text"]["text"]


class Server(ThreadingHTTPServer):
    """Ends with its test, whatever its threads are doing."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that left."""


@contextmanager
def serving(mood: Mood) -> Iterator[str]:
    """A running server; gives its address."""
    server = Server(("127.0.0.1", 0), type("MoodyHandler", (Handler,), {"mood": mood}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
