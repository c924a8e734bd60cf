"""`beholder replicate --run`: data and weights of printed models are fetched, run and compared; on a stand-in hub."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import polars as pl
import pytest
from PIL import Image

from beholder.core.errors import UnknownName, UsageError

COMMIT = "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed"


def listed(file: Path) -> dict[str, Any]:
    """A file as the hub lists it: its size, and git's digest of its content."""
    content = file.read_bytes()
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"type": "file", "oid": oid, "size": len(content), "path": file.name}


class Hub(BaseHTTPRequestHandler):
    """One repository, whatever its name: what the hub answers about its files, and the files."""

    folder: ClassVar[Path]
    fetched: ClassVar[list[str]]

    def log_message(self, *about: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if "/tree/" in path:
            self._send(json.dumps([listed(each) for each in sorted(self.folder.iterdir())]).encode())
            return
        if path.startswith("/api/models/"):
            files = [{"rfilename": each.name} for each in sorted(self.folder.iterdir())]
            about = {"id": path.split("/revision/")[0].removeprefix("/api/models/"), "sha": COMMIT, "siblings": files}
            self._send(json.dumps({**about, "private": False, "tags": [], "downloads": 0}).encode())
            return
        file = self.folder / path.rpartition("/")[2]
        if not file.is_file():
            self.send_error(404)
            return
        if self.command == "GET":
            self.fetched.append(path)
        content = file.read_bytes()
        self._send(content, **{"X-Repo-Commit": COMMIT, "ETag": f'"{listed(file)["oid"]}"'})

    def _send(self, content: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def hub(tiny_model: Callable[[str], Path]) -> Iterator[str]:
    Hub.folder, Hub.fetched = tiny_model("siglip"), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def senators(data: Path, tmp_path: Path) -> Path:
    """The senate's own table, with a small picture for each."""
    home = tmp_path / "data" / "apa" / "benchmark-data-v1"
    (home / "senate").mkdir(parents=True)
    (home / "senate.txt").write_bytes((data / "apa" / "benchmark-data-v1" / "senate.txt").read_bytes())
    for number in range(100):
        Image.new("RGB", (32, 32), (number * 2, 255 - number, 90)).save(home / "senate" / f"{number:03d}.jpg")
    return tmp_path / "data"


def replicate(hub: str, senators: Path, tmp_path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub,
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    start = "from beholder.cli import app; app()"
    command = [sys.executable, "-c", start, "replicate", "--run", "SigLIP-p16-224", "--data", str(senators)]
    command += ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"), "--device", "cpu", *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.real
@pytest.mark.slow
def test_a_printed_model_is_fetched_run_and_compared(hub: str, senators: Path, tmp_path: Path):
    done = replicate(hub, senators, tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(path.startswith("/google/siglip-base-patch16-224/resolve/") for path in Hub.fetched)
    cells = pl.read_parquet(tmp_path / "out" / "ledger.parquet").filter(model="SigLIP-p16-224", study="apa")
    ours = cells.filter(pl.col("origin") == "run", metric="apa.identity_given_image")
    senate = ours.filter(subset="senate").row(0, named=True)
    assert senate["verdict"] == "differs"  # a tiny random model is compared over the same 100 people, and is not it
    assert senate["value"] == pytest.approx(0.01, abs=0.005)
    pooled = cells.filter(metric="apa.bias_ratio", subset="politicians")["verdict"].to_list()
    assert pooled == ["not measured"]  # a third of the pool is no replication of it
    assert "SigLIP-p16-224" in done.stdout
    assert "differs" in done.stdout


def test_a_dry_run_says_what_would_be_fetched(invoke: Callable[..., str], tmp_path: Path):
    options = ("--run", "ViT-B/32", "Phi-4-multimodal-instruct", "--dry-run", "--data", tmp_path, "--json")
    rows = json.loads(invoke("replicate", *options))
    found = {(row["model"], row["study"]): row for row in rows}
    apa = found["ViT-B/32", "apa"]
    assert (apa["data"], apa["images"], apa["weights"]) == ("fetch", 845, "openai/clip-vit-base-patch32")
    assert apa["weight_bytes"] == pytest.approx(605e6, rel=0.01)
    assert apa["seconds"] is None  # of data that is not here, nothing is known
    assert found["Phi-4-multimodal-instruct", "gras"]["weights"].startswith("bring them: ")
    assert found["ViT-B/32", "perception"]["data"].startswith("bring it: ")


@pytest.mark.real
def test_a_dry_run_counts_bytes_and_time_of_data_that_is_here(invoke: Callable[..., str], data: Path):
    (row,) = json.loads(invoke("replicate", "--run", "SigLIP-p16-224", "--dry-run", "--data", data, "--json"))
    assert row["data"] == "here"
    assert row["image_bytes"] == pytest.approx(25e6, rel=0.05)
    assert 0 < row["seconds"] < 60


def test_only_printed_models_are_run(invoke: Callable[..., str], tmp_path: Path):
    with pytest.raises(UsageError, match="No study prints numbers of SigLIP2-p16-224"):
        invoke("replicate", "--run", "SigLIP2-p16-224", "--dry-run")
    with pytest.raises(UnknownName, match="SigLIP-p16-225"):
        invoke("replicate", "--run", "SigLIP-p16-225", "--dry-run")
    with pytest.raises(UsageError, match="--dry-run goes with --run"):
        invoke("replicate", "--dry-run")
    with pytest.raises(UsageError, match="Names of models go with --run"):
        invoke("replicate", "one", "two")
    with pytest.raises(UsageError, match="Nothing could be run:\nPhi-4-multimodal-instruct, gras: "):
        invoke("replicate", "--run", "Phi-4-multimodal-instruct", "--data", tmp_path, "--out", tmp_path / "out")
