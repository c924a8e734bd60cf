"""Ray fills the store as the local engine does, whichever workers are killed, hang or are stopped meanwhile.

One real cluster on this machine, with room for six workers, for the whole module.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from faults.disk import Disk
from faults.test_failing_disk import failing

from beholder.core import catalog
from beholder.core.errors import BadImage, BeholderError, DataError, MissingExtra, ModelError, UnknownName, UsageError
from beholder.datasets import load_dataset
from beholder.models.catalog import FAMILIES
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder
from beholder.prompts.prompt_set import Instruction, prompt_set
from beholder.scores import fill as filling
from beholder.scores import ray_pool, scoring
from beholder.scores.fill import FillOptions, fill
from beholder.scores.ray_pool import RayOptions, connect, ray_map, ray_options
from beholder.scores.reading import nothing_stored
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.scoring import Asked, RayScorer, Scored, on_ray
from beholder.scores.store import Store

PROMPTS = prompt_set("toy", [{"text": "a photo of a doctor"}, {"text": "a photo of a dog"}])
SKIP = FillOptions(skip_bad_images=True)
TOY = '''
"""Vectors that depend on what else is in the batch, by a hair; a black picture ends the process."""

import hashlib, os, time
import numpy as np
from beholder.models.catalog import FAMILIES, Family
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec


class Slow(ContrastiveScorer):
    batch_size = 4

    def __init__(self, pause):
        self.spec = ModelSpec("slow", "test", "none", "1", settings={"logit_scale": 5.0})
        self.pause = float(pause)
        if self.pause < 0:
            os.kill(os.getpid(), 9)

    def prepare(self, image):
        return image.tobytes()

    def embed_prepared(self, prepared):
        time.sleep(self.pause * len(prepared))
        with open(__file__ + ".batches", "ab") as file:
            file.write(b".")
        if any(not any(item) for item in prepared):
            os.kill(os.getpid(), 9)
        return self.embed_texts(prepared) + len(b"".join(prepared)) * 1e-9 + prepared[0][0] * 1e-9

    def embed_texts(self, texts):
        items = [hashlib.sha256(item if isinstance(item, bytes) else item.encode()).digest() for item in texts]
        seeds = [int.from_bytes(item[:4], "little") for item in items]
        return unit_rows(np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds]))


FAMILIES.add("slow", Family("slow", "contrastive", "a test", lambda rest, options: Slow(rest), form="slow:SECONDS"))
'''


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "BLOCK_ROWS", 8)
    monkeypatch.setattr(filling, "BLOCK_SECONDS", 600.0)
    monkeypatch.setattr(scoring, "BATCHES_AT_ONCE", 2)


@pytest.fixture(scope="module")
def slow(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayScorer]:
    """Four workers with a toy model of a plug-in, 4 ms per image."""
    plugin = tmp_path_factory.mktemp("plugin") / "slow_toy.py"
    plugin.write_text(TOY)
    catalog.load_plugins([str(plugin)])
    with on_ray("slow:0.004", LoadOptions(), RayOptions(workers=4)) as scorer:
        yield scorer
    del FAMILIES._things["slow"], sys.modules["slow_toy"]
    FAMILIES._added.remove("slow")
    catalog.loaded_plugins.clear()


@pytest.fixture
def task(people: Callable[..., Path]) -> Task:
    return Task("toy", load_dataset(f"folder:{people(240)}"), PROMPTS)


@contextmanager
def counting(label: str, total: int, done: int, later: int):
    counted.append(done)

    def advance(count: int, note: str = "") -> None:
        counted.append(count)
        notes.add(note)

    yield advance


counted: list[int] = []
notes: set[str] = set()


def blocks(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.glob("*/**/*.parquet")}


def twin(store: Path, name: str) -> Path:
    """An empty store beside it."""
    other = store.with_name(name)
    other.mkdir()
    return other


def here() -> Any:
    """The toy model in this process."""
    return sys.modules["slow_toy"].Slow(0)


def all_up(scorer: RayScorer) -> list[int]:
    """The workers' processes, once all are there."""
    deadline = time.monotonic() + 600
    while len(scorer.pool.ready) < 4 and time.monotonic() < deadline:
        list(scorer.pool.map(lambda model, job: None, range(4)))
    return [scorer.pool.ray.get(each.run.remote(lambda model, job: os.getpid(), 0)) for each in scorer.pool.ready]


@pytest.mark.slow
def test_a_function_is_mapped_in_order_and_its_errors_arrive(cluster: Any):
    assert list(ray_map(str.upper, iter("abcdefghij"), RayOptions(workers=2))) == list("ABCDEFGHIJ")
    with pytest.raises(BeholderError, match="no model 'nix:none'"):
        list(ray_map(load_model, ["null", "nix:none"], RayOptions(workers=1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glasshouse/contrastive", "glasshouse/generative"])
def test_reference_models_store_the_bytes_of_the_local_engine(
    name: str, cluster: Any, people: Callable[..., Path], tmp_path: Path
):
    torch = pytest.importorskip("torch")
    task = Task("toy", load_dataset(f"folder:{people(24)}"), PROMPTS)
    load, threads = LoadOptions(device="cpu", batch_size=4), torch.get_num_threads()

    def filled(scorer: Any, store: Path) -> ScoreMatrix:
        assert isinstance(scorer, Embedder) == (name == "glasshouse/contrastive")
        if isinstance(scorer, Answerer):
            scorer = scorer.instructed(Instruction("Is this true? {}", "Yes", "No"))
        return fill([task], scorer, Store(store)).matrices[0]

    with on_ray(name, load, RayOptions(workers=1)) as scorer:
        by_ray = filled(scorer, tmp_path / "ray")
        (theirs,) = scorer.pool.map(lambda model, job: torch.get_num_threads(), [0], workers=1)
    torch.set_num_threads(theirs)
    try:
        local = filled(load_model(name, load), twin(tmp_path / "ray", "local"))
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(local.values, by_ray.values)
    assert local.settings == by_ray.settings
    assert blocks(tmp_path / "local") == blocks(tmp_path / "ray") != {}


@pytest.fixture
def local(task: Task, slow: RayScorer, tmp_path: Path) -> tuple[Path, np.ndarray]:
    """The store and the scores of the local engine."""
    store = tmp_path / "local"
    return store, fill([task], here(), Store(store), SKIP).matrices[0].values


@pytest.mark.slow
def test_one_of_four_workers_killed_in_each_of_four_runs_costs_nothing(
    task: Task, slow: RayScorer, local: tuple[Path, np.ndarray], monkeypatch: pytest.MonkeyPatch
):
    store, right = local
    lost, told = [], slow.pool.lost
    monkeypatch.setattr(slow.pool, "lost", lambda worker: (lost.append(worker), told(worker)))
    for seed in range(4):
        rng = random.Random(seed)
        processes = all_up(slow)
        assert len(processes) == 4
        killer = threading.Timer(rng.uniform(0, 0.2), os.kill, (rng.choice(processes), signal.SIGKILL))
        other = twin(store, f"killed-{seed}")
        counted.clear()
        notes.clear()
        killer.start()
        result = fill([task], slow, Store(other), replace(SKIP, progress=counting))
        killer.join()
        assert np.array_equal(result.matrices[0].values, right), seed
        assert blocks(other) == blocks(store), seed
        assert sum(counted) == 240, seed
        assert notes <= {"3 of 4 workers", "4 of 4 workers"}
    assert len(lost) >= 2  # one may die when it has done its part


@pytest.mark.slow
def test_what_hangs_is_done_by_another_worker(
    task: Task, slow: RayScorer, local: tuple[Path, np.ndarray], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ray_pool, "SLOW_SECONDS", 0.2)
    store, right = local
    hanging = all_up(slow)[2]
    os.kill(hanging, signal.SIGSTOP)
    try:
        other = twin(store, "hung")
        assert np.array_equal(fill([task], slow, Store(other), SKIP).matrices[0].values, right)
        assert blocks(other) == blocks(store)
    finally:
        os.kill(hanging, signal.SIGCONT)


@pytest.mark.slow
def test_a_picture_that_ends_every_worker_is_named_and_the_others_are_kept(
    task: Task, slow: RayScorer, local: tuple[Path, np.ndarray]
):
    from PIL import Image

    store, right = local
    all_up(slow)
    deadly = Path(task.dataset.table["uri"][101])
    content = deadly.read_bytes()
    Image.new("RGB", (16, 16)).save(deadly)
    other = twin(store, "deadly")
    with pytest.raises(DataError, match=rf"(?s)4 Ray workers died.*{deadly.name}.*the same command continues there"):
        fill([task], slow, Store(other), SKIP)
    assert len(blocks(other)) >= 101 // 8
    deadly.write_bytes(content)
    assert np.array_equal(fill([task], here(), Store(other), SKIP).matrices[0].values, right)


@pytest.mark.slow
def test_workers_that_die_while_they_load_end_the_run(slow: RayScorer):
    deadly = on_ray("slow:-1", LoadOptions(), RayOptions(workers=6))
    with pytest.raises(ModelError, match="The Ray workers die while they start"), deadly:
        pass


@pytest.mark.slow
def test_a_full_disk_and_bad_images_are_told_as_by_the_local_engine(
    task: Task, slow: RayScorer, local: tuple[Path, np.ndarray]
):
    store, right = local
    other = twin(store, "full")
    with Disk(other, failing(errno.ENOSPC), 6, "write"), pytest.raises(OSError, match="No space left") as full:
        fill([task], slow, Store(other), SKIP)
    assert str(full.value.filename).startswith(str(other))
    assert 0 < len(blocks(other)) < len(blocks(store))
    assert np.array_equal(fill([task], slow, Store(other), SKIP).matrices[0].values, right)

    bad = task.dataset.table["uri"].to_list()[13:15]
    Path(bad[0]).write_bytes(b"not a picture")
    Path(bad[1]).unlink()
    told = []
    for scorer, name in ((here(), "bad-local"), (slow, "bad-ray")):
        other = twin(store, name)
        with pytest.raises(DataError, match="2 of 240 images cannot be read") as error:
            fill([task], scorer, Store(other))
        told.append((str(error.value), fill([task], scorer, Store(other), SKIP).bad_images))
    assert told[0] == told[1]


@pytest.mark.slow
def test_a_truncated_shard_is_told_as_by_the_local_engine_and_completed_later(
    slow: RayScorer, people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, shard = people(40), tmp_path / "shards" / "a.tar"
    shard.parent.mkdir()
    with tarfile.open(shard, "w") as tar:
        for picture in sorted(folder.glob("*.png")):
            tar.add(picture, picture.name)
    task, content = Task("toy", load_dataset(f"wds:{shard.parent}"), PROMPTS), shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    stores = {"local": here(), "ray": slow}
    local, by_ray = (fill([task], scorer, Store(tmp_path / name), SKIP) for name, scorer in stores.items())
    assert local.bad_images == by_ray.bad_images
    assert 15 < len(local.bad_images) < 25
    assert np.array_equal(local.matrices[0].values, by_ray.matrices[0].values)
    shard.write_bytes(content)
    whole = fill([task], slow, Store(tmp_path / "ray")).matrices[0]
    assert whole.images.height == 40


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_scored_and_the_rest_is_scored_later(
    task: Task, slow: RayScorer, local: tuple[Path, np.ndarray], tmp_path: Path
):
    (tmp_path / "words.csv").write_text("text\nkind\ncold\n")
    folder = Path(task.dataset.table["uri"][0]).parent
    plugin = str(sys.modules["slow_toy"].__file__)
    command = [
        *(sys.executable, "-c", "from beholder.cli import main; main()", "--plugin", plugin, "audit", "slow:0.02"),
        *("--prompts", tmp_path / "words.csv", "--by", "gender", "--dataset", f"folder:{folder}", "--draws", "100"),
        *("--store", tmp_path / "store", "--out", tmp_path / "run"),
    ]
    address = slow.pool.ray.get_runtime_context().gcs_address
    by_ray = [*command, "--engine", "ray", "--workers", "6"]  # for four of them there is no room
    scored = Path(f"{plugin}.batches")
    scored.write_bytes(b"")
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            by_ray, stdout=said, stderr=said, env={**os.environ, "RAY_ADDRESS": address}, start_new_session=True
        )
        while process.poll() is None and scored.stat().st_size < 20:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) == 130, (tmp_path / "said").read_text()
    assert "ray" not in (tmp_path / "said").read_text().lower().replace("--engine ray", "")
    kept, whole = rows(tmp_path / "store"), rows(local[0])
    assert 0 < len(kept) < len(whole) == 240
    assert all(np.array_equal(vector, whole[key]) for key, vector in kept.items())
    resumed = fill([task], slow, Store(tmp_path / "store"), SKIP)
    assert np.array_equal(resumed.matrices[0].values, local[1])


def rows(store: Path) -> dict[str, Any]:
    """The stored vectors of images, by the images' contents."""
    tables = map(pq.read_table, store.glob("*/images/*.parquet"))
    return {row["key"]: row["vector"] for table in tables for row in table.to_pylist()}


def test_a_file_that_only_the_driver_has_is_not_a_bad_image(people: Callable[..., Path]):
    fault = BadImage(str(people(1) / "00000.png"), "the file does not exist")
    scorer = answering(load_model("null").spec.digest, [Scored(1, [], {}, [fault], {})])
    with pytest.raises(DataError, match=r"can be read here, but not by a Ray worker on node7: the file does not exist"):
        list(scorer.scored([[fault.uri]], Asked(), lambda uri: "", nothing_stored))


def answering(digest: str, scored: list[Scored]) -> RayScorer:
    """The null model on a Ray worker, on node7, that gives this answer."""
    pool = object.__new__(ray_pool.RayPool)
    pool.fleet, pool.machines = ray_pool._Fleet(1, 1, 0), {}
    pool.map = lambda *_, **__: iter([("node7", digest, scored)])
    return RayScorer(pool, None, load_model("null").spec, ("cosine",), 8, ["a note"], "")


def test_what_cannot_run_on_ray_is_refused_with_words(monkeypatch: pytest.MonkeyPatch):
    for model, device, message in (
        (load_model("null"), "auto", "null is an object in this process"),
        ("null", "cpu,cpu", "leave out --device cpu,cpu"),
    ):
        with pytest.raises(UsageError, match=message), on_ray(model, LoadOptions(device), RayOptions()):
            pass
    with pytest.raises(UnknownName, match=r"no engine 'spark'.\nIt has: local, ray, ray://HOST:PORT"):
        ray_options("spark")
    with pytest.raises(UsageError, match="are for --engine ray"):
        ray_options("local", workers=2)
    assert ray_options("local") is None
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"\[ray\]"):
        connect()


def test_a_worker_with_another_model_is_refused_and_other_libraries_are_noted():
    scorer = answering("another digest", [])
    scorer.pool.machines = {
        name: ray_pool.Started(name, "1", {"torch": torch, "numpy": "2.4"})
        for name, torch in (("a", "2.9"), ("b", "2.8"))
    }
    assert scorer.notes == ["a note", "Ray's machines have different versions of torch: 2.8, 2.9"]
    with pytest.raises(ModelError, match="null on node7 is another model than the one that began"):
        list(scorer.scored([["a.png"]], Asked(), lambda uri: "", nothing_stored))


@pytest.mark.slow
def test_nobody_at_an_address_is_told_at_once():
    pytest.importorskip("ray")
    code = "from beholder.scores.ray_pool import connect; connect('ray://127.0.0.1:9')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "There is no Ray cluster at ray://127.0.0.1:9" in done.stderr


def node(cpus: int, gpus: int = 0) -> dict[str, Any]:
    return {"Alive": True, "Resources": {"CPU": cpus, "GPU": gpus} if gpus else {"CPU": cpus}}


@pytest.mark.parametrize(
    ("options", "nodes", "needs_gpu", "fleet"),
    [
        (RayOptions(), [node(16, 8), node(16, 8)], None, (16, 1, 1)),
        (RayOptions(gpus_per_worker=0.5), [node(16, 2), node(4)], None, (4, 1, 0.5)),
        (RayOptions(gpus_per_worker=2), [node(16, 3), node(16, 3)], True, (2, 1, 2)),
        (RayOptions(workers=5), [node(16, 8)], None, (5, 1, 1)),
        (RayOptions(), [node(16, 8)], False, (4, 4, 0)),
        (RayOptions(), [node(6), node(6)], None, (2, 4, 0)),
        (RayOptions(), [node(2)], None, (1, 2, 0)),
        (RayOptions(workers=4), [node(4)], None, (4, 1, 0)),
        (RayOptions(), [node(2)], True, (1, 1, 1)),  # Ray waits for a machine with a GPU
    ],
)
def test_workers_take_one_gpu_each_or_four_cores(
    options: RayOptions, nodes: list[dict[str, Any]], needs_gpu: bool | None, fleet: tuple[int, float, float]
):
    assert ray_pool._fleet(options, nodes, ray_pool.CPUS, needs_gpu=needs_gpu) == fleet
