"""What particular servers do beyond the common protocol: vLLM, `transformers serve`, the batches of hosted APIs.

The answers are as their documentation and sources show them, and as `transformers serve` 5.22 gave them here.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import threading
from collections.abc import Callable, Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder import audit
from beholder.core.errors import ModelError, UnknownName, UsageError
from beholder.datasets.dataset import Dataset
from beholder.models.load import load_model
from beholder.models.served import scorer as batch
from beholder.models.served.address import Limits
from beholder.models.served.protocol import prompt_word
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import Task

Answer = Callable[[str, str, Any], tuple[int, Any]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], str]]:
    """Starts a server whose answers a function gives."""
    for name in [name for name in os.environ if name.startswith("BEHOLDER_SERVED_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(Limits, "wait_before", lambda self, attempt: 0.01)
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(*answer("GET", self.path, None))

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                kind = self.headers["Content-Type"]
                body = json.loads(data) if kind == "application/json" else (kind, data)
                self._send(*answer("POST", self.path, body))

            def _send(self, status: int, body: Any) -> None:
                data = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"openai:m@http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def reply(text: str, tokens: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """A chat completion, with log-probabilities where tokens are given."""
    top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in (tokens or {}).items()]
    content = [{"token": text, "logprob": top[0]["logprob"], "top_logprobs": top}] if top else None
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    usage = {"prompt_tokens": 100, "completion_tokens": 1}
    return {"choices": [choice | {"logprobs": {"content": content} if top else None}], "usage": usage, **more}


def picture() -> Image.Image:
    return Image.fromarray(np.zeros((8, 8, 3), np.uint8))


def words_of(body: Any) -> str:
    return str(body["messages"][0]["content"][1]["text"])


@pytest.mark.parametrize("answer", [(500, "Internal Server Error"), (200, "<html>"), (403, {"error": "no"}), (200, [])])
def test_a_list_of_models_that_fails_ends_nothing(serve: Any, answer: tuple[int, Any]) -> None:
    """`transformers serve` without a hub cache answers 500 to GET /models, and questions as ever."""
    asked: list[str] = []

    def server(method: str, path: str, body: Any) -> tuple[int, Any]:
        asked.append(path)
        return answer if method == "GET" else (200, reply("Yes", {"Yes": 0.7, "No": 0.2}))

    scorer = load_model(serve(server))
    cells = scorer.score_prepared([scorer.prepare(picture())], ["a"])
    assert cells[0, 0, 1] == pytest.approx(math.log(0.7))
    assert asked.count("/v1/models") == 1, "an optional question is not repeated"


def test_one_pictures_questions_follow_its_first(serve: Any) -> None:
    """The first question of each picture warms the server's memory; the others come picture by picture."""
    asked: list[tuple[str, str]] = []

    def server(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "POST" and "prompt_logprobs" not in body:
            asked.append((body["messages"][0]["content"][0]["image_url"]["url"][-20:], words_of(body)))
        return 200, reply("Yes", {"Yes": 0.7, "No": 0.2})

    os.environ["BEHOLDER_SERVED_CONCURRENCY"] = "1"
    try:
        scorer = load_model(serve(server))
    finally:
        del os.environ["BEHOLDER_SERVED_CONCURRENCY"]
    del asked[:]
    pictures = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    scorer.score_prepared([scorer.prepare(each) for each in pictures], ["a", "b", "c"])
    one, two = dict.fromkeys(place for place, _ in asked)
    assert [place for place, _ in asked] == [one, two, one, one, two, two]
    assert [words[-1] for _, words in asked] == ["a", "a", "b", "c", "b", "c"]


def vllm(method: str, path: str, body: Any) -> tuple[int, Any]:
    """A model that says Maybe: Yes has 0.001 and No 0.0005, neither among the tokens that are told."""
    if method == "GET":
        return 200, {"object": "list", "data": [{"id": "m", "root": "weights/m", "object": "model"}]}
    if choice := (body.get("structured_outputs") or {}).get("choice"):
        texts = [choice[0], choice[1]] * body.get("n", 1)
        drawn = [reply(text)["choices"][0] for text in texts[: body.get("n", 1)]]
        return 200, reply("") | {"choices": drawn}
    if "prompt_logprobs" in body:
        assert body["continue_final_message"] is True
        assert body["add_generation_prompt"] is False
        word = body["messages"][-1]["content"]
        p = {"Yes": 0.001, "No": 0.0005}.get(word, 1e-9)
        last = {"9642": {"logprob": math.log(p), "rank": 812, "decoded_token": word}}
        first = {"1": {"logprob": -3.0, "rank": 2, "decoded_token": ":"}}
        return 200, reply("x", prompt_logprobs=[None, first, last])
    return 200, reply("Maybe", {"Maybe": 0.9, "Perhaps": 0.09})


def test_vllm_is_asked_for_the_words_that_it_did_not_tell(serve: Any) -> None:
    scorer = load_model(serve(vllm))
    assert scorer.spec.settings["decoding"]["unseen"] == "prompt_logprobs"
    cells = dict(zip(scorer.channels, scorer.score_prepared([scorer.prepare(picture())], ["a"])[0, 0], strict=True))
    assert math.exp(cells["log_p_yes"]) == pytest.approx(0.001, rel=1e-4)
    assert math.exp(cells["log_p_no"]) == pytest.approx(0.0005, rel=1e-4)
    assert math.exp(cells["log_p_yes_low"]) == pytest.approx(0.001, rel=1e-4)


def test_a_word_of_several_tokens_is_put_together() -> None:
    def token(text: str, value: float) -> dict[str, Any]:
        return {"5": {"logprob": value, "rank": 1, "decoded_token": text}}

    body = {"prompt_logprobs": [None, token("model", -9), token(" Tr", -1.0), token("ue", -0.5)]}
    assert prompt_word(body, "True") == -1.5
    assert prompt_word(body, "False") is None
    assert prompt_word({}, "True") is None


def test_vllm_can_be_held_to_the_two_words(serve: Any) -> None:
    scorer = load_model(serve(vllm) + "?answers=guided&draws=4")
    assert scorer.spec.settings["decoding"]["guided"] == "structured_outputs"
    cells = dict(zip(scorer.channels, scorer.score_prepared([scorer.prepare(picture())], ["a"])[0, 0], strict=True))
    assert (cells["yes_draws"], cells["no_draws"], cells["refused"]) == (2, 2, 0)
    assert any("refusals are not seen" in note for note in scorer.notes)


def test_a_server_that_ignores_the_list_of_answers_is_not_trusted_with_it(serve: Any) -> None:
    address = serve(lambda method, path, body: (200, reply("Maybe")))
    with pytest.raises(ModelError, match="does not keep to a list of allowed answers"):
        load_model(address + "?answers=guided")


class Hosted:
    """Files and batches as hosted APIs have them; a batch is ready at the second look."""

    def __init__(self, end: str = "completed") -> None:
        self.end, self.looks, self.uploads, self.orders = end, 0, [], []

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        place = path.removeprefix("/v1")
        if place == "/models":
            return 404, {"error": {"message": "none"}}
        if place == "/chat/completions":
            return 200, reply("Yes", {"Yes": 0.7, "No": 0.2})
        if place == "/files":
            kind, data = body
            form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + data)
            parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
            assert parts["purpose"].get_payload().strip() == "batch"
            self.uploads.append([json.loads(line) for line in parts["file"].get_payload().strip().splitlines()])
            return 200, {"id": "file-1", "object": "file"}
        if place == "/batches":
            self.orders.append(body)
            return 200, {"id": "batch-1", "status": "validating"}
        if place == "/batches/batch-1":
            self.looks += 1
            status = self.end if self.looks > 1 else "in_progress"
            errors = {"data": [{"message": "no money"}]} if status == "failed" else None
            return 200, {"id": "batch-1", "status": status, "output_file_id": "out", "errors": errors}
        assert place == "/files/out/content"
        lines = [
            {
                "custom_id": line["custom_id"],
                "response": {
                    "status_code": 200,
                    "body": reply("Yes", {"Yes": 0.7 if "good" in words_of(line["body"]) else 0.1, "No": 0.2}),
                },
            }
            for line in reversed(self.uploads[-1])
        ]
        return 200, "\n".join(map(json.dumps, lines))


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    monkeypatch.setattr(batch, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("BEHOLDER_SERVED_BATCH_FOLDER", str(tmp_path / "batches"))
    return lambda step: monkeypatch.setenv("BEHOLDER_SERVED_BATCH", step)


def test_a_batch_is_estimated_submitted_once_and_collected(
    serve: Any, hosted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Hosted()
    address = serve(server)
    monkeypatch.setenv("BEHOLDER_SERVED_PRICE_IN", "2")
    hosted("estimate")
    scorer = load_model(address)
    shown = [scorer.prepare(Image.new("RGB", (8, 8), colour)) for colour in ("red", "blue")]
    with pytest.raises(UsageError, match=r"4 requests, about 400 tokens in and 4 out; about 0\.0008(?s:.)*=submit"):
        scorer.score_prepared(shown, ["good", "bad"])
    assert not server.uploads
    hosted("submit")
    for _ in range(2):  # the second time, as after Ctrl-C: nothing is submitted again
        cells = load_model(address).score_prepared(shown, ["good", "bad"])
        assert np.exp(cells[..., 1]) == pytest.approx(np.array([[0.7, 0.1], [0.7, 0.1]]), rel=1e-4)
    assert len(server.uploads) == len(server.orders) == 1
    assert server.orders[0]["endpoint"] == "/v1/chat/completions"
    assert server.uploads[0][0]["url"] == "/v1/chat/completions"


def test_a_batch_that_fails_says_why_and_can_be_submitted_anew(serve: Any, hosted: Any) -> None:
    server = Hosted(end="failed")
    hosted("submit")
    scorer = load_model(serve(server))
    for count in (1, 2):
        with pytest.raises(ModelError, match="batch batch-1 ended as 'failed': no money"):
            scorer.score_prepared([scorer.prepare(picture())], ["a"])
        assert len(server.uploads) == count


def test_an_unknown_step_is_refused(serve: Any, hosted: Any) -> None:
    hosted("now")
    with pytest.raises(UnknownName, match="estimate"):
        load_model(serve(Hosted()))


# Servers that differ from the common protocol, think aloud or say little, each as people have met it

SURE = {"Yes": 0.7, "No": 0.2}


def cells(name: str, query: str = "") -> tuple[Any, dict[str, float]]:
    """The scorer, and one cell by channel."""
    scorer: Any = load_model(name + query)
    values = scorer.score_prepared([scorer.prepare(picture())], ["a"])[0, 0]
    return scorer, dict(zip(scorer.channels, values.tolist(), strict=True))


def test_an_unlisted_word_does_not_beat_a_listed_one(serve: Any) -> None:
    name = serve(lambda *_: (200, reply(" ", {" ": 0.97, "Yes": 0.02, "Sure": 0.005})))
    scorer, cell = cells(name)
    assert cell["refused"] == 0
    assert cell["log_p_no_high"] > cell["log_p_yes_low"]  # nothing tells which is likelier
    table = pl.DataFrame({"image_id": ["a"], "uri": ["a.png"]})
    prompts = prompt_set("own", [{"prompt_id": "a", "text": "a"}])
    values = np.array([[list(cell.values())]], np.float32)
    task = Task("t", Dataset("d", "1", "none", table), prompts)
    matrix = task.matrix(values.copy(), scorer.channels)
    assert np.isnan(matrix.quantity("probability").cells).all()
    assert np.isfinite(matrix.channel("log_p_yes_high")).all()
    decided = cells(serve(lambda *_: (200, reply("Yes", {"Yes": 0.9, "Sure": 0.05}))))[1]
    values = np.array([[list(decided.values())]], np.float32)
    matrix = task.matrix(values, scorer.channels)
    assert matrix.quantity("probability").cells[0, 0] == pytest.approx(0.9)


THOUGHTS = "<think>\nThe person seems to be"


def thinker(room: int) -> Any:
    """A server whose model needs so many tokens before it answers."""

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 404, {}
        asked = body.get("max_tokens") or body["max_completion_tokens"]
        if asked < room:
            tokens = {"<think>": 0.999} if body.get("logprobs") else None
            return 200, reply("<think>" if asked == 1 else THOUGHTS, tokens)
        done = reply(f"{THOUGHTS} a nurse.</think>\n\nNo")
        done["choices"][0]["finish_reason"] = "stop"
        return 200, done

    return answer


@pytest.mark.parametrize("query", ["?draws=3", "?draws=3&answers=sampled"])
def test_a_model_that_thinks_is_given_room_and_only_its_answer_counts(serve: Any, query: str) -> None:
    scorer, cell = cells(serve(thinker(500)), query)
    assert (cell["refused"], cell["no_draws"]) == (0, 3)
    assert any("thinks before it answers" in note for note in scorer.notes)
    assert scorer.spec.settings["decoding"]["max_tokens"] == 4096


@pytest.mark.parametrize(("room", "query"), [(10**6, ""), (500, "?answers=logprobs")])
def test_a_model_that_only_thinks_ends_with_a_sentence(serve: Any, room: int, query: str) -> None:
    with pytest.raises(ModelError, match=r"thinks before it answers.*\n.*Turn thinking off at the server"):
        load_model(serve(thinker(room)) + query)


def test_an_empty_answer_cut_off_by_hidden_thoughts_is_no_refusal(serve: Any) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET" or "logprobs" in body:
            return 400, {"error": {"message": "logprobs are not supported with this model"}}
        done = reply("Yes" if body["max_tokens"] > 100 or words_of(body) != "a" else "")
        return 200, done

    _scorer, cell = cells(serve(answer), "?draws=2")
    assert (cell["refused"], cell["yes_draws"]) == (0, 2)


def strict(*, without: tuple[str, ...] = (), least: int = 1, status: int = 400, words: str = "") -> Any:
    """A server that refuses some settings, one at a time, in its own words."""
    seen: list[Any] = []

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 404, {}
        seen.append(body)
        for name in without:
            if name in body:
                text = words or f"Unsupported parameter: '{name}' is not supported with this model."
                return status, {"error": {"message": text}}
        if body["max_tokens"] < least:
            return 400, {"error": {"message": f"Invalid 'max_tokens': expected a value >= {least}, but got 1 instead."}}
        return 200, reply("Yes", SURE if body.get("logprobs") else None)

    answer.seen = seen  # type: ignore[attr-defined]
    return answer


def test_what_a_server_refuses_is_dropped_and_remembered(serve: Any) -> None:
    server = strict(without=("temperature", "top_p"))
    scorer, cell = cells(serve(server), "?answers=sampled&draws=2")
    assert cell["yes_draws"] == 2
    assert not {"temperature", "top_p"} & set(server.seen[-1])
    asked = len(server.seen)
    scorer.score_prepared([scorer.prepare(picture())], ["b"])
    assert len(server.seen) == asked + 2, "nothing is tried anew"
    assert not {"temperature", "top_p"} & set(scorer.spec.settings["decoding"])
    assert any("refuses temperature and top_p" in note for note in scorer.notes)


def test_a_minimum_of_tokens_is_kept_to(serve: Any) -> None:
    server = strict(least=16)
    _, cell = cells(serve(server))
    assert cell["log_p_yes"] == pytest.approx(math.log(0.7))
    assert server.seen[-1]["max_tokens"] == 16


@pytest.mark.parametrize("status", [400, 403])
def test_a_server_that_forbids_log_probabilities_is_sampled(serve: Any, status: int) -> None:
    server = strict(
        without=("logprobs",), status=status, words="You are not allowed to request logprobs from this model"
    )
    scorer, cell = cells(serve(server), "?draws=2")
    assert scorer.spec.settings["answers"] == "sampled"
    assert cell["yes_draws"] == 2


def test_a_key_that_is_not_allowed_is_still_named(serve: Any) -> None:
    with pytest.raises(ModelError, match=r"answers 403: no\nThe key in BEHOLDER_API_KEY"):
        load_model(serve(lambda *_: (403, {"error": {"message": "no"}})))


def test_content_in_parts_is_read(serve: Any) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        done = reply("Yes")
        done["choices"][0]["message"]["content"] = [{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}]
        return 200, done

    assert cells(serve(answer), "?draws=2")[1]["yes_draws"] == 2


def test_an_error_in_a_good_reply_is_shown(serve: Any) -> None:
    body = {"error": {"message": "No endpoints support image input", "code": 404}}
    with pytest.raises(ModelError, match="answers 404: No endpoints support image input"):
        load_model(serve(lambda method, *_: (200, body)))


def test_a_picture_that_is_too_large_is_told_how_to_be_smaller(serve: Any) -> None:
    body = {"error": {"message": "image too large: 5316 x 3544 exceeds the limit"}}
    with pytest.raises(ModelError, match=r"image too large.*\n.*add \?side=512"):
        load_model(serve(lambda method, *_: (400, body)))


def side_of(body: Any) -> int:
    url = body["messages"][0]["content"][0]["image_url"]["url"]
    return max(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("status", [400, 413])
def test_pictures_that_are_too_large_are_all_sent_smaller(
    serve: Any, people: Callable[..., Path], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, error = list[int](), {"error": {"message": "image too large: it exceeds 100 pixels"}}

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET" or side_of(body) <= 100:
            sides.extend([side_of(body)] if body else [])
            return 200, reply("Yes", SURE)
        return status, error

    monkeypatch.setattr("beholder._steps.write_page", lambda report, folder: folder)  # no page is looked at
    folder, name = people(10), serve(answer)
    Image.new("RGB", (300, 200), (200, 10, 10)).save(folder / "00007.png")
    asked = {"dataset": folder, "prompts": ["a kind person"], "by": "gender", "draws": 100, "store": tmp_path / "store"}
    run = audit(name, **asked, out=tmp_path / "run")
    (model,) = run.record.models
    assert model["settings"]["image"]["longest_side"] == 64
    assert [note for note in model["notes"] if "?side=" in note][-1].endswith("the same as ?side=64.")
    assert sides.count(64) == 3, "two trial requests and the large picture"
    sides.clear()
    again = audit(f"{name}?side=64", **asked, out=tmp_path / "again")
    assert again.record.models[0]["digest"] == model["digest"]
    assert sides == [64, 64], "the trial requests: all the rest is in the store, under the side that was sent"


@pytest.mark.parametrize("asked", ["now", "before"])
def test_log_probabilities_of_the_older_form_are_read(serve: Any, asked: str) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if asked == "before" and body and body.get("logprobs") is True:
            return 400, {"error": {"message": "logprobs: must be an integer"}}
        done = reply("Yes")
        tokens = {token: math.log(p) for token, p in SURE.items()}
        older = {"tokens": ["Yes"], "token_logprobs": [tokens["Yes"]], "top_logprobs": [tokens]}
        done["choices"][0]["logprobs"] = older
        return 200, done

    _, cell = cells(serve(answer))
    assert cell["log_p_no"] == pytest.approx(math.log(0.2))


def test_a_null_log_probability_says_nothing_of_its_token(serve: Any) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        done = reply("Yes", SURE)
        done["choices"][0]["logprobs"]["content"][0]["top_logprobs"].append({"token": "no", "logprob": None})
        return 200, done

    _, cell = cells(serve(answer))
    assert cell["log_p_no"] == pytest.approx(math.log(0.2))
    gone = {
        "choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [{"top_logprobs": [{"token": "Yes"}]}]}}]
    }
    with pytest.raises(ModelError, match="log-probabilities cannot be read"):
        load_model(serve(lambda *_: (200, gone)) + "?answers=logprobs")
