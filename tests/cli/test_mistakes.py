"""Typical mistakes and the exact words that answer them: what was asked, what there is, what to do."""

from __future__ import annotations

import http.server
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import ModelError

PROMPTS = ["--prompts", "moods.csv", "-q"]
DATASETS = (
    "apa, causalface, coco, fairface, fairface-adults, glasshouse, glasshouse-design, glasshouse-faces, "
    "glasshouse-objects, glasshouse-pairs, gras, ieat, omi, pairs, utkface, utkface-adults, visual-genome"
)
FORMS = (
    "DIR, OWNER/NAME[@REVISION], anthropic:MODEL, gemini:MODEL, glasshouse/contrastive, glasshouse/generative, null, "
    "null:SEED, onnx:DIR, openai:MODEL@URL, openclip:ARCH/TAG, predictions:PATH"
)
COLUMNS = "image, file_name, filename, file, path, image_path, file_path, filepath, image_id"
MISTAKES = {
    "wrong data folder": (
        "audit null -s gras --data nowhere",
        "MissingData: There is no folder nowhere, so the data set 'gras' is not there.\n"
        "Get it from the GRAS paper's repository (lists), FairFace and AI-Face (images) and put it at nowhere/gras "
        "(selected_images_fairface.csv, selected_images_aiface.csv; images in ../fairface and ../aiface), then pass "
        "the folder above it as --data (or set BEHOLDER_DATA).",
    ),
    "misspelt study": (
        "audit null -s perceptoin",
        "UnknownName: Beholder has no study 'perceptoin'.\n"
        "It has: apa, classics, custom, disparity, exposure, gras, pairs, perception, pfi, ratings. "
        "Did you mean 'perception'?",
    ),
    "misspelt model": (
        "audit nul -s apa",
        f"UnknownName: Beholder has no model 'nul'.\nIt has: {FORMS}. Did you mean 'null'?",
    ),
    "misspelt data set": (
        "data check fairfase",
        f"UnknownName: Beholder has no data set 'fairfase'.\nIt has: {DATASETS}. Did you mean 'fairface'?",
    ),
    "no such folder": (
        "data check folder:photoes",
        "MissingData: There is no folder and no table at photoes.\n"
        "Name the folder of your images: --dataset folder:PATH",
    ),
    "no column names the images": (
        "data check folder:unnamed",
        f"DataError: unnamed/people.csv: no column names the images. Expected one of: {COLUMNS}.\n"
        "The table has: picture, gender. Name the column: --image-column picture",
    ),
    "wrong separator": (
        "data check folder:pipes",
        f"DataError: pipes/people.csv: no column names the images. Expected one of: {COLUMNS}.\n"
        "The table has: image|gender. Separate the cells with commas, semicolons or tabs.",
    ),
    "empty table": ("data check folder:empty", "DataError: empty/people.csv: the table is empty."),
    "table without rows": (
        "data check folder:header",
        "DataError: header/people.csv: the table has a header and no rows.",
    ),
    "uneven row": ("data check folder:uneven", "DataError: uneven/people.csv: line 2 has 3 cells, the header has 2."),
    "no table": (
        "data check folder:bare",
        "DataError: bare has 2 images and no table of attributes (.csv, .tsv, .jsonl, .parquet).\n"
        "Write one, such as bare/people.csv: a column 'image' with the names of the image files, and a column for each "
        "attribute to tell people apart by (gender, age …). Or put the images of each group into a folder of their "
        "own.",
    ),
    "misspelt attribute": (
        "audit null --dataset folder:staff --by genders",
        "UnknownName: folder:staff has no attribute 'genders'.\nIt has: gender. Did you mean 'gender'?",
    ),
    "missing image": (
        "audit null --dataset folder:gone --by gender",
        "DataError: 1 of 2 images cannot be read:\n  gone/7.png: the file does not exist\n"
        "Replace them, or continue without them: --skip-bad-images.",
    ),
    "one group only": (
        "audit null --dataset folder:alike --by gender",
        "custom: by gender nothing was compared: every image has the same value",
    ),
    "no groups for the study": (
        "audit glasshouse/generative -s gras --dataset folder:cities -q",
        "gras: no two groups of folder:cities were compared: it compares people by gender or race or age or "
        "skin_tone, and the columns are: city.",
    ),
    "a study that needs its own data": (
        "audit null -s apa --dataset folder:staff",
        "DataError: folder:staff has no attribute 'branch' that is known, and declares no people to ask about.\n"
        "Add one or more of the columns occupation (with occupations), specialty (with specialties) and name. It has: "
        "gender.",
    ),
    "numbers asked of words": (
        "audit null --dataset folder:staff --bins gender=1,2",
        "UsageError: --bins gender: the values of 'gender' in folder:staff are not numbers.",
    ),
    "prompts without data": (
        "audit null --prompts moods.csv",
        "UsageError: --prompts defines its own study: add --dataset NAME or folder:PATH, and remove --study.",
    ),
    "prompts without texts": (
        "audit null --dataset folder:staff --prompts staff/people.csv",
        "DataError: staff/people.csv: the column 'text' is missing.\nThe table has: image, gender.",
    ),
    "an option of another study": (
        "audit null -s apa --traits moods.csv",
        "UsageError: --traits goes with --study gras.",
    ),
    "unknown precision": (
        "audit null -s apa --precision float8",
        "UnknownName: Beholder has no precision 'float8'.\n"
        "It has: auto, bf16, bfloat16, float16, float32, fp16, fp32, int4, int8. Did you mean 'float32'?",
    ),
    "a file where a folder should be": (
        "audit null -s apa --out moods.csv",
        "UsageError: --out moods.csv: moods.csv is a file, not a folder. Name another one.",
    ),
    "not a run": (
        "report bare",
        "MissingData: bare is not a run folder: it has no run.json. Make one with: beholder audit --out bare",
    ),
    "wrong setting": (
        "audit null --dataset wds:bare --set split=train",
        "UnknownName: The data set 'wds:bare' has no setting 'split'.\nIt has: outside, photographs.",
    ),
    "no tars": ("data check wds:bare", "MissingData: There is no .tar in bare."),
}


def make(name: str, table: str | None) -> None:
    folder = Path(name)
    folder.mkdir()
    for i in range(2):
        Image.fromarray(np.random.default_rng(i).integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    if table is not None:
        (folder / "people.csv").write_text(table)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEHOLDER_STORE", "store")
    Path("moods.csv").write_text("text\na warm person\na cold person\n")
    make("staff", "image,gender\n0.png,woman\n1.png,man\n")
    make("unnamed", "picture,gender\n0.png,woman\n")
    make("pipes", "image|gender\n0.png|woman\n")
    make("empty", "")
    make("header", "image,gender\n")
    make("uneven", "image,gender\n0.png,woman,3\n")
    make("bare", None)
    make("gone", "image,gender\n0.png,woman\n7.png,man\n")
    make("alike", "image,gender\n0.png,woman\n1.png,woman\n")
    make("cities", "image,city\n0.png,Rome\n1.png,Lima\n")
    return tmp_path


@pytest.fixture
def told(desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """What a command says that does not end well."""
    from beholder.cli import main

    def run(command: str) -> str:
        words = command.split()
        own = PROMPTS if words[0] == "audit" and "-s" not in words and "--prompts" not in words else []
        monkeypatch.setattr(sys, "argv", ["beholder", *words, *own])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code in (1, 2)
        return capsys.readouterr().err.strip()

    return run


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_in_these_words(mistake: str, told: Callable[[str], str], undrawn: list[Any]):
    command, words = MISTAKES[mistake]
    assert told(command) == words


def test_a_missing_card_is_told(monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch")
    from beholder.models.torch_scorer import resolve_device

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ModelError) as caught:
        resolve_device("cuda")
    assert str(caught.value) == "This machine has no device 'cuda'.\nIt has: auto, cpu."


@pytest.fixture
def forbidding() -> Iterator[int]:
    """A server of models that knows no key; its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(401)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "Incorrect API key provided"}}')

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_wrong_key_is_told(told: Callable[[str], str], forbidding: int):
    message = told(f"audit openai:gpt@http://127.0.0.1:{forbidding}/v1 --dataset folder:staff --by gender")

    assert message == (
        f"Declined: http://127.0.0.1:{forbidding}/v1 answers 401: Incorrect API key provided\n"
        "Put the server's key into the environment variable BEHOLDER_API_KEY or OPENAI_API_KEY."
    )


def test_a_taken_port_is_told(told: Callable[[str], str], undrawn: list[Any]):
    pytest.importorskip("uvicorn")
    made = ["audit", "null", "--dataset", "folder:staff", *PROMPTS, "--out", "run"]
    assert CliRunner().invoke(app, made, catch_exceptions=False).exit_code == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = told(f"view run --port {port}")
    assert message == (
        f"UsageError: Port {port} of 127.0.0.1 cannot be used: Address already in use. Name another one: --port."
    )


def test_a_missing_extra_is_named(told: Callable[[str], str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert told("data check folder:s3://bucket/faces") == (
        "MissingExtra: s3://bucket/faces needs an optional part of Beholder.\nInstall it with: "
        "pip install 'beholder-audit[remote]' (in a clone: pip install -c constraints.txt '.[remote]')"
    )
