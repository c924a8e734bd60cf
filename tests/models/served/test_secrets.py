"""A server that gives the key back everywhere finds it nowhere; pictures leave this machine only with permission."""

from __future__ import annotations

import base64
import html
import json
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beholder._run import load_run
from beholder.cli import app, main
from beholder.core.errors import ModelError
from beholder.models.load import load_model
from beholder.models.served import client
from beholder.models.served import scorer as batch
from beholder.models.served.address import Key, Limits

KEY = "sk-Canary+0123/456789=abcdef&ZYX~w"


def forms(key: str) -> list[str]:
    """The ways in which a key can come back."""
    data = key.encode()
    inside = [base64.b64encode(b"Bearer "[:k] + data + b"!" * k) for k in range(4)]
    safe = [text.translate(bytes.maketrans(b"+/", b"-_")) for text in inside]
    escaped = "".join(f"\\u{ord(one):04x}" for one in key)
    coded = [quote(key, safe=""), quote_plus(key), quote(quote(key, safe=""), safe=""), quote(key, safe="").lower()]
    plain = [key, f"Bearer {key}", key.lower(), key[: len(key) * 2 // 3], html.escape(key), escaped, data.hex()]
    tail, back = key[5:], key[::-1]
    runs = [tail, key[len(key) // 2 :], key[7:20], back, back[3:], quote(back, safe=""), tail.encode().hex().upper()]
    runs += [data.hex()[::-1], back.encode().hex(), base64.b64encode(tail.encode()).decode()]
    runs += [base64.b64encode(back.encode()).decode(), json.dumps(json.dumps(tail)), html.escape(html.escape(tail))]
    runs += [
        quote(escaped),
        "".join(f"&#x{ord(one):x};" for one in tail),
        "".join(f"\\x{ord(one):02x}" for one in tail),
    ]
    return [*plain, *coded, *(text.decode() for text in (*inside, *safe)), *runs]


@cache
def traces(key: str) -> set[str]:
    """What no file and no message may hold, in lower case: pieces of every form that are long enough to be telling."""
    every = {form[9:23].lower() for form in forms(key) if len(form) > 16}
    return every | {each[i : i + 8].lower() for each in (key, key[::-1]) for i in range(len(key) - 7)}


def assert_clean(text: str) -> None:
    lower = text.lower()
    assert not [trace for trace in traces(KEY) if trace in lower], text[:2000]


class Reflecting(BaseHTTPRequestHandler):
    """Puts the key, in all forms, wherever the protocol has room for text."""

    protocol_version = "HTTP/1.1"
    status, raw, location = 200, "", ""
    seen: list[Any]

    def do_GET(self) -> None:
        entry = {"id": "m", "root": self.echo, "owned_by": self.echo, self.echo: self.echo}
        self._send({"data": [entry, {"id": self.echo}], "object": self.echo})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(body)
        path = self.path.removeprefix("/v1")
        if path == "/files":
            self._send({"id": f"file-{self.echo}"})
            return
        if path == "/batches":
            self._send({"id": f"batch-{self.echo}", "status": self.echo})
            return
        top = [{"token": word, "logprob": -0.9} for word in ("Yes", "No", self.echo[:9])][:2]
        choice = {"message": {"content": self.echo}, "logprobs": {"content": [{"top_logprobs": top}]}}
        told = {"model": self.echo, "system_fingerprint": self.echo, "id": self.echo, "usage": {self.echo: 1}}
        self._send({"choices": [choice], **told})

    @property
    def echo(self) -> str:
        return " ".join(forms(self.headers.get("Authorization", "").removeprefix("Bearer ")))

    def _send(self, body: Any) -> None:
        data = json.dumps(body).encode()
        if self.status != 200 or self.raw:
            error = {"error": {"message": self.echo, "code": self.echo, "type": self.echo}}
            data = (self.raw.replace("{echo}", self.echo) or json.dumps(error)).encode()
        self.send_response(self.status, self.echo)
        for name, value in {"X-Echo": self.echo, "Server-Timing": self.echo, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        if self.location:
            self.send_header("Location", self.location.replace("{echo}", quote(self.echo)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> type[Reflecting]:
    monkeypatch.setenv("BEHOLDER_API_KEY", KEY)
    monkeypatch.setenv("BEHOLDER_SERVED_RETRIES", "0")
    monkeypatch.setattr(Limits, "wait_before", lambda self, attempt: 0.01)
    return type("Server", (Reflecting,), {"seen": []})


@pytest.fixture
def server(handler: type[Reflecting]) -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def name(server: ThreadingHTTPServer) -> str:
    return f"openai:m@http://127.0.0.1:{server.server_port}/v1"


@pytest.fixture
def audit(name: str, people: Callable[..., Path], tmp_path: Path) -> list[str]:
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("text,concept\na kind person,kind\na cold person,cold\n")
    words = ["audit", name, "--prompts", prompts, "--dataset", f"folder:{people(20)}", "--by", "gender", "--verbose"]
    return [*map(str, words), *map(str, ["--out", tmp_path / "run", "--store", tmp_path / "store", "--draws", 100])]


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=24, max_size=80))
@settings(max_examples=25, deadline=None)
def test_a_key_is_cut_out_in_every_form(key: str):
    known = Key(key)
    for form in forms(key):
        left = known.cut_from({"a": [f"before {form} after", {form: 1.5}]})
        assert len(form) < 20 or form[4:20].lower() not in json.dumps(left).lower(), (key, form)
        assert left["a"][0].startswith("before ")
        assert left["a"][0].endswith(" after")


@pytest.mark.parametrize("said", [KEY[-31:], KEY[len(KEY) // 2 :], KEY[::-1], KEY[8:16], quote(KEY[::-1], safe="")])
def test_a_part_of_the_key_is_cut_out_and_the_rest_stays(said: str):
    assert Key(KEY).cut_from(f"Incorrect API key provided: {said}. Ask for another.") == (
        "Incorrect API key provided: [key removed]. Ask for another."
    )


def test_public_prefixes_and_digests_of_ours_stay():
    key = "sk-ant-api03-" + "0123456789abcdef" * 2
    assert Key(key).cut_from("Keys begin with sk-ant-api03-.") == "Keys begin with sk-ant-api03-."
    assert Key(key).cut_from(key[:13] + "*" * 20 + key[-4:]) == key[:13] + "*" * 20 + key[-4:]


@pytest.mark.usefixtures("handler")
def test_scoring_sees_an_answer_uncut(name: str):
    """What an answer says is kept nowhere, so that it is read as it came, whatever the key is."""
    made: Any = load_model(name)
    body = {"choices": [{"message": {"content": KEY}}], "model": KEY, "prompt_logprobs": [KEY]}
    left = {**body, "model": "[key removed]"}
    assert made._client.read(client.Reply(200, {}, json.dumps(body).encode())) == left
    line = json.dumps({"response": {"body": body}, "id": KEY}).encode()
    assert made._client.read(client.Reply(200, {}, line), lines=True) == [
        {"response": {"body": left}, "id": left["model"]}
    ]


def test_words_stay_where_a_key_is_a_word():
    """Servers on a desk are given `EMPTY`, or any word, for a key."""
    assert Key("Yes").cut_from("Yes, EMPTY") == Key("EMPTY").cut_from("Yes, EMPTY") == "Yes, EMPTY"


@pytest.mark.usefixtures("undrawn")
def test_a_key_that_comes_back_is_written_and_shown_nowhere(
    audit: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(sys, "argv", ["beholder", *audit])
    app(standalone_mode=False)
    said = capsys.readouterr()
    assert_clean(said.out + said.err)
    assert load_run(tmp_path / "run").record.models[0]["revision"].startswith("[key removed]")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "report.html", "spec.json"} <= {path.name for path in written}
    for path in written:
        assert_clean(path.read_bytes().decode("latin-1"))


@pytest.mark.parametrize(
    ("status", "raw"), [(400, ""), (401, ""), (404, ""), (500, ""), (400, "{echo}"), (200, "{echo}"), (200, "[" * 9999)]
)
def test_an_error_is_told_without_the_key(
    handler: type[Reflecting], name: str, status: int, raw: str, caplog: pytest.LogCaptureFixture
):
    scorer: Any = load_model(name)
    handler.status, handler.raw = status, raw
    caplog.set_level("DEBUG")
    with pytest.raises(ModelError) as caught:
        scorer.score_prepared(["data:image/png;base64,"], ["a person"])
    assert_clean("".join(traceback.format_exception(caught.value)) + caplog.text + " ".join(scorer.notes))
    with pytest.raises(ModelError) as caught:
        load_model(name)
    assert_clean(str(caught.value))


def test_a_batch_keeps_no_key(handler: type[Reflecting], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BEHOLDER_SERVED_BATCH", "submit")
    monkeypatch.setenv("BEHOLDER_SERVED_BATCH_FOLDER", str(tmp_path / "batches"))
    monkeypatch.setattr(batch, "_finished", lambda client, name, state: {"id": name})
    scorer: Any = load_model(name)
    with pytest.raises(ModelError) as caught:
        scorer.score_prepared(["data:image/png;base64,"], ["a person"])
    assert_clean(str(caught.value) + "".join(path.read_text() for path in (tmp_path / "batches").iterdir()))


@pytest.mark.parametrize("reply", [[], {"id": []}, {"id": "b", "status": [], "errors": 3}, {"id": "b", "errors": [1]}])
def test_a_batch_server_that_breaks_the_protocol_is_told(
    handler: type[Reflecting], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: object
):
    monkeypatch.setenv("BEHOLDER_SERVED_BATCH", "submit")
    monkeypatch.setenv("BEHOLDER_SERVED_BATCH_FOLDER", str(tmp_path / "batches"))
    scorer: Any = load_model(name)
    handler.raw = json.dumps(reply)
    with pytest.raises(ModelError, match=r"the reply (is no object|has no id)|ended as"):
        scorer.score_prepared(["data:image/png;base64,"], ["a person"])


@pytest.mark.parametrize("location", ["http://localhost:{port}/v1", "//{echo}/", "/elsewhere?key={echo}"])
def test_a_redirect_is_not_followed(handler: type[Reflecting], server: ThreadingHTTPServer, name: str, location: str):
    scorer: Any = load_model(name)
    handler.status, handler.location = 307, location.replace("{port}", str(server.server_port))
    handler.seen.clear()
    with pytest.raises(ModelError, match="redirects to") as caught:
        scorer.score_prepared(["data:image/png;base64,"], ["a person"])
    assert len(handler.seen) == 1
    assert_clean(str(caught.value))


def test_a_server_that_signs_for_itself_is_refused(
    handler: type[Reflecting], server: ThreadingHTTPServer, tmp_path: Path
):
    pair = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem", "-subj", "/CN=127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    try:
        subprocess.run([*made, *pair], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with pytest.raises(ModelError, match=r"cannot prove who it is \(self.signed certificate\)(?s:.)*SSL_CERT_FILE"):
        load_model(f"openai:m@https://127.0.0.1:{server.server_port}/v1")
    assert not handler.seen


# Pictures leave this machine


@pytest.fixture
def abroad(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is taken for another machine."""
    monkeypatch.setattr(client, "is_local", lambda host: False)


@pytest.fixture
def outcome(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["beholder", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), capsys.readouterr().err

    return run


@pytest.mark.usefixtures("abroad", "undrawn")
def test_pictures_are_sent_only_after_a_yes(
    audit: list[str], handler: type[Reflecting], outcome: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def pictures() -> int:
        return len({body for body in handler.seen if b"kind person" in body})

    code, said = outcome(*audit)
    assert code == 2
    assert "20 picture(s) will be sent to 127.0.0.1:" in said
    assert "--yes" in said
    assert not pictures()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, err: False)
    assert outcome(*audit)[0] == 2
    assert not pictures()
    code, said = outcome(*audit, "--yes")
    assert code == 0
    assert said.count("20 picture(s) will be sent to") == 1
    assert pictures() == 20
    assert "yes" not in (tmp_path / "run" / "audit.toml").read_text(), "it is said each time"
    code, said = outcome(*audit)
    assert (code, pictures()) == (0, 20), "all is in the store: there is nothing to ask"
    assert "will be sent" not in said


def test_a_file_cannot_say_yes(audit: list[str], outcome: Any, tmp_path: Path):
    (tmp_path / "audit.toml").write_text("yes = true\n")
    code, said = outcome(*audit, "--config", str(tmp_path / "audit.toml"))
    assert code == 2
    assert "'yes' cannot come from a file. Say it each time: --yes" in said
