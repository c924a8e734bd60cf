"""A `transformers` folder behind an OpenAI-compatible address, for trials on one machine: serve_folder.py DIR [PORT].

One answer token, with the twenty likeliest and their log-probabilities; with --no-logprobs only the likeliest token.
"""

import base64
import io
import json
import sys
import threading
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

FLAGS = [argument for argument in sys.argv[1:] if argument.startswith("--")]
FOLDER, PORT = ([argument for argument in sys.argv[1:] if argument not in FLAGS] + ["8077"])[:2]
LOCK = threading.Lock()
PROCESSOR: Any = AutoProcessor.from_pretrained(FOLDER, use_fast=False)
MODEL = AutoModelForImageTextToText.from_pretrained(FOLDER, dtype=torch.float32).eval()


@lru_cache(maxsize=100_000)
def top(data: bytes, text: str) -> list[tuple[str, float]]:
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    parts = [{"type": "image"}, {"type": "text", "text": text}]
    words = PROCESSOR.apply_chat_template([{"role": "user", "content": parts}], add_generation_prompt=True)
    inputs = PROCESSOR(images=[picture], text=[words], return_tensors="pt")
    with torch.no_grad():
        logs = torch.log_softmax(MODEL(**inputs).logits[0, -1].float(), dim=-1)
    values, numbers = logs.topk(20)
    names = [PROCESSOR.tokenizer.decode([number]) for number in numbers.tolist()]
    return list(zip(names, values.tolist(), strict=True))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": [{"id": "tiny", "object": "model", "root": FOLDER}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][-1]["content"]
        url = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
        text = next(part["text"] for part in content if part["type"] == "text")
        with LOCK:
            tokens = top(base64.b64decode(url.partition(",")[2]), text)
        word = tokens[0]
        listed = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in tokens]
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": word[0]}, "finish_reason": "stop"}
        if body.get("logprobs") and "--no-logprobs" not in FLAGS:
            choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
        choices = [{**choice, "index": number} for number in range(body.get("n") or 1)]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny"}
        self.reply({**head, "choices": choices, "usage": usage})

    def reply(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    print(f"http://127.0.0.1:{PORT}/v1", flush=True)
    ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler).serve_forever()
