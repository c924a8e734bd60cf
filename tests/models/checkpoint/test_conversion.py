"""Pickled weights on `main`, safetensors on a pull request: tried on a hub of our own, over HTTP on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model
from beholder.models.torch_scorer import sample_picture

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

NAME = "openai/clip-tiny"
MAIN, PULL = "a" * 40, "b" * 40
TITLE = "Adding `safetensors` variant of this model"


class FakeHub:
    """One repository: what each revision holds, and its pull requests."""

    def __init__(self, files: dict[str, bytes]) -> None:
        pickled = {name: data for name, data in files.items() if name != "model.safetensors"}
        pickled["pytorch_model.bin"] = b"pickled"
        self.files = {MAIN: pickled, PULL: {**pickled, "model.safetensors": files["model.safetensors"]}}
        self.revisions = {"main": MAIN, MAIN: MAIN, "refs/pr/5": PULL, PULL: PULL}
        self.author, self.title, self.status = "SFconvertbot", TITLE, "open"

    def get(self, path: str, query: dict[str, list[str]]) -> object:
        """The JSON that the hub answers, or the bytes of a file."""
        if path.startswith(f"/{NAME}/resolve/"):
            revision, _, name = path.removeprefix(f"/{NAME}/resolve/").partition("/")
            return self.files[self.revisions[revision]][name]
        what, _, revision = path.removeprefix(f"/api/models/{NAME}/").partition("/")
        if what == "discussions":
            requests = self._requests(query)
            return {"discussions": requests, "count": len(requests), "start": 0}
        commit = self.revisions[revision]
        if what == "revision":
            return {"id": NAME, "sha": commit, "siblings": [{"rfilename": name} for name in self.files[commit]]}
        assert what == "tree"
        return [
            {"type": "file", "path": name, "oid": hashlib.sha1(data).hexdigest(), "size": len(data)}
            for name, data in self.files[commit].items()
        ]

    def _requests(self, query: dict[str, list[str]]) -> list[dict[str, object]]:
        if query.get("author", [self.author]) != [self.author] or query.get("p", ["0"]) != ["0"]:
            return []
        author, made = {"name": self.author}, "2023-01-01T00:00:00.000Z"
        return [
            {"num": 5, "title": self.title, "status": self.status, "isPullRequest": True, "author": author}
            | {"createdAt": made, "repo": {"name": NAME, "type": "model"}}
        ]


@pytest.fixture
def fake_hub(tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    folder = tiny_model("clip")
    fake = FakeHub({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(send=True)

        def do_HEAD(self) -> None:
            self._answer(send=False)

        def _answer(self, *, send: bool) -> None:
            address = urlsplit(self.path)
            path = unquote(address.path)
            try:
                answer: Any = fake.get(path, parse_qs(address.query))
            except KeyError:
                self.send_error(404)
                return
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", fake.revisions.get(path.split("/resolve/")[-1].split("/")[0], MAIN))
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if send:
                self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(
        hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    yield fake
    server.shutdown()
    server.server_close()


def test_the_hubs_conversion_is_used_and_its_commit_recorded(
    fake_hub: FakeHub, tiny_model: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer, folder = load_model(NAME), load_model(str(tiny_model("clip")))
    assert (scorer.spec.weights, scorer.spec.revision) == (NAME, PULL)
    picture = sample_picture()
    ours, theirs = (each.score_prepared([each.prepare(picture)], ["a nurse"]) for each in (scorer, folder))
    assert np.array_equal(ours, theirs)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    assert load_model(NAME).spec.revision == PULL, "what was fetched once needs no network"


@pytest.mark.parametrize("other", [{"author": "someone"}, {"title": "Better weights"}, {"status": "closed"}])
def test_other_pull_requests_are_not_trusted(fake_hub: FakeHub, other: dict[str, str]) -> None:
    vars(fake_hub).update(other)
    with pytest.raises(
        ModelError, match=r"no safetensors weights, and no conversion by the hub was found(?s:.)*--allow-pickle"
    ):
        load_model(NAME)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "preprocessor_config.json"])
def test_a_conversion_of_other_files_is_not_used(fake_hub: FakeHub, file: str) -> None:
    fake_hub.files[PULL][file] = b"another"
    with pytest.raises(ModelError, match="no conversion by the hub was found"):
        load_model(NAME)


def test_pickled_weights_are_read_when_they_are_allowed(fake_hub: FakeHub) -> None:
    with pytest.raises(ModelError, match=r"cannot be (read|loaded)"):
        load_model(NAME, LoadOptions(allow_pickle=True))  # the stand-in's are no weights
