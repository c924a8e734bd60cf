"""What all tests share: the real data of ../shared, a small folder of pictures, and no network."""

from __future__ import annotations

import fcntl
import gc
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder.comparison import power
from beholder.core.catalog import loaded_plugins
from beholder.datasets import DATASETS, faces
from beholder.datasets.dataset import SCHEMA as OBJECTS
from beholder.datasets.dataset import Dataset
from beholder.datasets.settings import GENDER_WORDS
from beholder.glasshouse import portrait
from beholder.models.catalog import FAMILIES
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies import STUDIES
from beholder.studies.disparity.prompts import disparity_prompts

pytest_plugins = ["made_runs", "model_fixtures"]
ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("BEHOLDER_SHARED", ROOT.parent / "shared"))
CHROMIUM = Path("/usr/bin/chromium")
# Models this small lose time to threads that wait for each other, beside other workers most of all.
os.environ.setdefault("OMP_NUM_THREADS", "1")
LIGHT = str(Path(__file__).parent / "light")  # seen first, by this process and by those that it starts
sys.path.insert(0, LIGHT)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [LIGHT, os.environ.get("PYTHONPATH")]))
gc.disable()  # importing 400 modules leaves little behind, and looking for it took a third of the collection


def pytest_collection_finish() -> None:
    """What was imported stays until the end: the garbage collector need not look at it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that was told to be quiet quiets the whole process; the next test hears everything again."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(autouse=True)
def catalogs_as_they_came(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What plug-ins and examples add to Beholder is there in their own test alone."""
    for catalog in (DATASETS, FAMILIES, STUDIES):
        own = {name: thing for name, thing in catalog._things.items() if name not in catalog._added}
        monkeypatch.setattr(catalog, "_things", own)
        monkeypatch.setattr(catalog, "_added", set())
    before = len(loaded_plugins)
    yield
    del loaded_plugins[before:]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections leave this machine in no test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise ConnectionRefusedError(f"tests have no network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in ("BEHOLDER_DATA", "BEHOLDER_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[Callable[[str], Image.Image]]:
    """A drawn person takes 9 ms, and many tests look at the same people: each is drawn once in a process.

    The value is the true pencil, for tests that measure time.
    """
    draw = portrait.open_uri
    kept = lru_cache(maxsize=1000)(draw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portrait, "open_uri", lambda uri: kept(uri).copy())
        yield draw


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """The labels of faces in ../shared take most of a second, and many tests ask for them: each file is read once."""
    read, kept = faces.read_labels, dict[object, pl.DataFrame]()

    def remembered(path: Path, *asked: Any) -> pl.DataFrame:
        if not path.is_relative_to(SHARED):
            return read(path, *asked)
        if (key := repr((path, asked))) not in kept:
            kept[key] = read(path, *asked)
        return kept[key].clone()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces, "read_labels", remembered)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Pages without pictures, whose drawing takes most of their time, and the list of what would have been drawn."""
    drawn: list[Any] = []
    monkeypatch.setattr("beholder.report.drawing.svg", lambda spec: drawn.append(spec) or "<svg></svg>")
    monkeypatch.setattr("beholder.report.page.png", lambda spec: b"")  # the picture for links to the page
    return drawn


@pytest.fixture
def quick_plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans from the fewest worlds and shuffles, and to a sixteenth: for tests of what is said, not of the size."""
    monkeypatch.setattr(power, "WORK", 1e6)
    monkeypatch.setattr(power, "STEPS", 4)
    power._latent_deviation.cache_clear()
    yield
    power._latent_deviation.cache_clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium; CI fails without it. Not for the whole session: its event loop would stop other tests' loops."""
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{CHROMIUM} is missing, and CI must see the pages in a browser")
        pytest.skip(f"{CHROMIUM} is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and golden files; CI fails without it, a newcomer's tests skip."""
    if not (SHARED / "data").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{SHARED}/data is missing")
        pytest.skip(f"{SHARED}/data is not here")
    return SHARED


@pytest.fixture(scope="session")
def data(shared: Path) -> Path:
    return shared / "data"


@pytest.fixture(scope="session")
def assembled(shared: Path) -> Callable[[str, str], Path]:
    """Puts a real model together with a tool of ../shared, once, and keeps it in `.cache` for all processes."""

    def assemble(tool: str, folder: str) -> Path:
        cache = ROOT / ".cache"
        cache.mkdir(exist_ok=True)
        with (cache / f"{folder}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (cache / folder / "config.json").is_file():  # every tool writes it last
                environment = {**os.environ, "PYTHON": sys.executable, "PIP_NO_COMPILE": "1"}
                subprocess.run(
                    [shared / "tools" / tool, cache / folder], check=True, capture_output=True, env=environment
                )
        return cache / folder

    return assemble


@pytest.fixture(scope="session")
def bridge(assembled: Callable[[str, str], Path]) -> Path:
    """The real open-vocabulary model: a CLIP image tower with a text tower of our own."""
    return assembled("get-bridge-model", "bridge")


@pytest.fixture(scope="session")
def kept_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all workers keep what the real image tower gave."""
    own = tmp_path_factory.getbasetemp()
    kept = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "vectors"
    kept.mkdir(exist_ok=True)
    return kept


@pytest.fixture(scope="session")
def results_of(kept_vectors: Path) -> Callable[..., list[dict[str, Any]]]:
    """`results_of("audit", …)` is what a program of its own printed, to which torch was never loaded."""
    code = (
        f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
        f"from pathlib import Path; import remembered_tower; remembered_tower.remember(Path({str(kept_vectors)!r}))\n"
        "from beholder.cli import app; app(standalone_mode=False); assert 'torch' not in sys.modules"
    )

    def run(*arguments: object) -> list[dict[str, Any]]:
        command = [sys.executable, "-c", code, *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["results"]

    return run


@pytest.fixture(scope="session")
def closed_vocabulary(bridge: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real CLIP ViT-B/16 with the 171 texts whose vectors are known."""
    folder = tmp_path_factory.mktemp("closed")
    (folder / "image.onnx").symlink_to((bridge / "image.onnx").resolve())
    for suffix in ("npy", "json"):
        source = data / "clip_vit_b16_text" / f"coco_stuff_171.{suffix}"
        shutil.copy(source, folder / f"text_table.{suffix}")
    config = json.loads((bridge / "config.json").read_text())
    del config["text"]
    (folder / "config.json").write_text(json.dumps(config | {"logit_scale": 100.0}))
    return folder


@pytest.fixture(scope="session")
def golden(shared: Path) -> Path:
    return shared / "golden" / "apa"


@pytest.fixture(scope="session")
def people_in() -> Callable[..., Path]:
    """Makes a folder of small noisy pictures with a table of attributes, in a place of one's own."""

    def make(place: Path, count: int = 12, name: str = "people", side: int = 16) -> Path:
        folder = place / name
        folder.mkdir()
        rng = np.random.default_rng(count)
        lines = ["image,name,gender"]
        for i in range(count):
            pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{i:05}.png")
            lines.append(f"{i:05}.png,person {i // 2},{'woman' if i % 2 else 'man'}")
        (folder / "people.csv").write_text("\n".join(lines) + "\n")
        return folder

    return make


@pytest.fixture
def people(people_in: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """`people_in` this test's own folder."""
    return partial(people_in, tmp_path)


@pytest.fixture(scope="session")
def object_world() -> Callable[..., Any]:
    """Makes a score matrix of pictures with things in them: who sees what how well is known."""

    def make(
        n: int = 400,
        concepts: tuple[str, ...] = ("tie", "handbag", "dog", "chair"),
        worse: dict[tuple[str, str], float] | None = None,
        *,
        groups: tuple[str, ...] = ("man", "woman"),
        rare: dict[tuple[str, str], float] | None = None,
        channel: str = "presence",
        name: str = "coco",
        seed: int = 1,
    ) -> Any:
        """`worse[group, concept]` is taken off the score of things that are there; `rare` is how often they are."""
        rng = np.random.default_rng(seed)
        who = np.array(groups)[np.arange(n) % len(groups)]
        cells, objects = np.empty((n, len(concepts), 1)), []
        for j, concept in enumerate(concepts):
            often = np.array([(rare or {}).get((group, concept), 0.3) for group in who])
            there = rng.random(n) < often
            lost = np.array([(worse or {}).get((group, concept), 0.0) for group in who])
            cells[:, j, 0] = rng.normal(0.0, 1.0, n) + there * (2.0 - lost)
            for i in np.flatnonzero(there):
                called = concept if who[i] == groups[0] or rng.random() < 0.5 else f"other {concept}"
                objects.append((str(i), concept, int(rng.integers(1, 4)), float(rng.random() / 2), [called]))
        if channel in ("presence", "score"):
            cells = 1 / (1 + np.exp(2.0 - 2 * cells))
        table = pl.DataFrame(
            {"image_id": [str(i) for i in range(n)], "uri": [f"{i}.jpg" for i in range(n)], "gender": who}
        )
        dataset = Dataset(
            name,
            "made up",
            "MIT",
            table,
            objects=pl.DataFrame(objects, schema=OBJECTS, orient="row"),
            group_words=GENDER_WORDS if set(groups) == {"man", "woman"} else None,
        )
        prompts = disparity_prompts(concepts).table
        return ScoreMatrix("disparity", table, prompts, (channel,), cells.astype(np.float32), {}, dataset)

    return make


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real Ray cluster on this machine."""
    ray = pytest.importorskip("ray")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_gcs_server_port_wait_time_s": "300"}
    room = {"num_cpus": 6, "num_gpus": 0, "object_store_memory": 100 * 2**20}
    for left in range(9, -1, -1):
        try:
            ray.init("local", **room, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            break
        except Exception as error:  # Ray waits for 30 seconds, which may be too little on a busy machine
            ray.shutdown()
            if not left or "timed out during startup" not in str(error):
                raise
    yield ray
    ray.shutdown()
