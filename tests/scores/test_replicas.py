"""Several devices fill the store as one does; a device that dies ends the run by name, and nothing scored is lost."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import DataError, ModelError
from beholder.datasets import load_dataset
from beholder.models.load import LoadOptions, load_model, replicas_of
from beholder.models.spec import device_names
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import fill as filling
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store

PROMPTS = prompt_set("toy", [{"text": "a photo of a doctor"}, {"text": "a photo of a dog"}])


@pytest.fixture
def task(people: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setattr(filling, "BATCHES_AT_ONCE", 1)
    monkeypatch.setattr(filling, "BLOCK_ROWS", 4)
    return Task("toy", load_dataset(f"folder:{people(300)}"), PROMPTS)


def blocks(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.glob("*/scores/*/*.parquet")}


@pytest.mark.slow
def test_two_devices_store_the_bytes_of_one_and_a_killed_one_costs_only_time(task: Task, tmp_path: Path):
    one, two = load_model("null"), load_model("null", LoadOptions(device="cpu,cpu"))
    one.batch_size = two.batch_size = 8  # many jobs, so that some are left when a device is killed
    assert [replica.options.device for replica in replicas_of(two)] == ["cpu", "cpu"]
    assert (one.spec.digest, replicas_of(one)) == (two.spec.digest, [])
    Path(task.dataset.table["uri"][13]).write_bytes(b"not a picture")
    skip = FillOptions(skip_bad_images=True)
    alone = fill([task], one, Store(tmp_path / "one"), skip)
    together = fill([task], two, Store(tmp_path / "two"), skip)
    np.testing.assert_array_equal(alone.matrices[0].values, together.matrices[0].values)
    assert list(alone.bad_images) == list(together.bad_images) == [task.dataset.table["uri"][13]]
    assert blocks(tmp_path / "one") == blocks(tmp_path / "two")

    @contextmanager
    def killing(label: str, total: int, done: int, later: int):
        def advance(count: int) -> None:
            for child in multiprocessing.active_children():
                with suppress(ProcessLookupError):
                    os.kill(child.pid or 0, signal.SIGKILL)

        yield advance

    message, store = "", tmp_path / "killed"
    for attempt in range(6):  # quick workers may finish everything before they are killed: then once more
        store = tmp_path / f"killed-{attempt}"
        try:
            fill([task], two, Store(store), replace(skip, progress=killing))
        except DataError as error:
            message = str(error)
            break
    assert re.search(r"(?s)runs the model on a device died.*same command continues", message)
    assert len(blocks(store)) < len(blocks(tmp_path / "one"))
    resumed = fill([task], one, Store(store), skip)
    np.testing.assert_array_equal(resumed.matrices[0].values, alone.matrices[0].values)


def test_devices_are_named_by_commas_or_all_at_once(monkeypatch: pytest.MonkeyPatch):
    assert (device_names("auto"), device_names("cuda:0,cuda:2")) == (["auto"], ["cuda:0", "cuda:2"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,7")
    assert device_names("cuda:all") == ["cuda:0", "cuda:1", "cuda:2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert device_names("cuda:all") == ["cuda"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr("beholder.models.spec._asked_driver", lambda *_: "GPU 0: X (UUID: a)\nGPU 1: X (UUID: b)\n")
    assert device_names("cuda:all") == ["cuda:0", "cuda:1"]


def test_a_model_that_is_told_how_to_answer_takes_one_device():
    pytest.importorskip("torch")
    with pytest.raises(ModelError, match="several devices at once are not for such models"):
        load_model("glasshouse/generative", LoadOptions(device="cpu,cpu"))
