"""Two versions in one store, and damaged digests: scored again or told in words, and never mixed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from faults.toy import Pairs, Towers, scores, toy_task
from made_runs import apa_results, record

from beholder._compare import compare
from beholder._run import Run, load_run, run_folder
from beholder.core.digests import content_digest, digest
from beholder.core.errors import DataError, UsageError
from beholder.core.record import SCHEMA
from beholder.scores import fill as filling
from beholder.scores import shelf as shelves
from beholder.scores.store import Store, verify_store

IMAGES = 12


@pytest.fixture(params=[Towers, Pairs], ids=["contrastive", "pairs"])
def scorer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    monkeypatch.setattr(filling, "BLOCK_ROWS", 4)
    monkeypatch.setattr(shelves, "INDEXED_FROM", 1)
    return request.param


def blocks(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("*/**/*.parquet") if path.parent.name != "texts")


def rewritten(path: Path, metadata: dict[bytes, bytes] | None) -> None:
    """The block with other metadata, under the name that its bytes then have."""
    table = pq.read_table(path)
    path.unlink()
    pq.write_table(table.replace_schema_metadata(metadata), path)
    path.rename(path.with_stem(f"{digest(table['key'].to_pylist())}-{content_digest(path.read_bytes())}"))


def of_an_older_version(path: Path) -> None:
    """It does not say whose rows it has."""
    rewritten(path, None)


def of_a_newer_version(path: Path) -> None:
    """Its label says more than this version knows."""
    about = json.loads(pq.read_schema(path).metadata[shelves.ABOUT])
    about["label"]["colours"] = "linear"
    rewritten(path, {shelves.ABOUT: json.dumps(about).encode()})


def other_name(path: Path) -> None:
    """The block's digest, damaged in one place."""
    last = "0" if path.stem[-1] != "0" else "1"
    path.rename(path.with_stem(path.stem[:-1] + last))


@pytest.mark.parametrize("change", [of_an_older_version, of_a_newer_version, other_name])
def test_a_block_of_another_version_is_scored_again_beside_sound_ones(
    change: Callable[[Path], None], scorer: type, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    task, root = toy_task(tmp_path / "images", IMAGES), tmp_path / "store"
    right = scores(task, scorer(), root)
    change(blocks(root)[1])
    again = scorer()
    assert np.array_equal(scores(task, again, root), right)
    assert again.asked == 4
    assert "Set aside (*.damaged) and taken as not scored" in caplog.text


def test_a_model_that_an_older_version_described_otherwise_keeps_its_own_rows(scorer: type, tmp_path: Path):
    """The old description lies beside the new one, or in its place: neither reads the other's rows."""
    task, root, older = toy_task(tmp_path / "images", IMAGES), tmp_path / "store", scorer()
    older.spec = replace(older.spec, settings={**older.spec.settings, "crop": "as it was"})
    scores(task, older, root)
    new = scorer()
    right = scores(task, new, root)
    assert new.asked == IMAGES
    shutil.copy(root / older.spec.digest / "spec.json", root / new.spec.digest)
    again = scorer()
    assert np.array_equal(scores(task, again, root), right)
    assert again.asked == 0
    (problem,) = verify_store(Store(root)).problems
    assert "spec.json: describes another model" in problem


@pytest.mark.parametrize("table", ["digests (path text, digest text)", "files (stamp text primary key, digest text)"])
def test_a_memory_of_digests_of_another_version_is_not_believed(table: str, scorer: type, tmp_path: Path):
    task, root = toy_task(tmp_path / "images", IMAGES), tmp_path / "store"
    right = scores(task, scorer(), root)
    with closing(sqlite3.connect(root / "digests.sqlite")) as memory, memory:
        rows = memory.execute("select stamp, ? from files", ("0" * 40,)).fetchall()
        memory.execute("drop table files")
        memory.execute(f"create table {table}")
        memory.executemany(f"insert into {table.split()[0]} values (?, ?)", rows)
    again = scorer()
    assert np.array_equal(scores(task, again, root), right)
    assert again.asked == 0


@pytest.mark.parametrize("mark", [b"0" * 40, b"", b"\xff" * 40])
def test_an_index_with_a_damaged_digest_is_not_used(mark: bytes, scorer: type, tmp_path: Path):
    task, root = toy_task(tmp_path / "images", IMAGES), tmp_path / "store"
    right = scores(task, scorer(), root)
    scores(task, scorer(), root)  # notes the blocks
    (index,) = {block.parent / shelves.INDEX for block in blocks(root)}
    index.write_bytes(mark + b"\n" + index.read_bytes().partition(b"\n")[2].replace(b".parquet", b".parq\0et"))
    again = scorer()
    assert np.array_equal(scores(task, again, root), right)
    assert again.asked == 0


def test_runs_of_two_versions_are_not_compared_and_neither_is_overwritten(tmp_path: Path):
    for name in ("new", "old"):
        Run(apa_results(name), record(name, digest="one")).save(tmp_path / name)
    file = tmp_path / "old" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": SCHEMA - 1}))
    with pytest.raises(DataError, match=r"old/run\.json was written by an earlier Beholder .*Make the run again"):
        compare(tmp_path / "new", tmp_path / "old")
    before = file.read_bytes()
    with (
        pytest.raises(UsageError, match="old holds another run, which is not overwritten"),
        run_folder(record("old", digest="one"), tmp_path / "old", "m"),
    ):
        pass
    assert file.read_bytes() == before


@pytest.mark.parametrize("damaged", ["two", None, 5])
def test_a_run_whose_digest_is_damaged_is_read_and_never_continued(damaged: object, tmp_path: Path):
    made = Run(apa_results("clip"), record("clip", digest="one"))
    made.save(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "digest": damaged}))
    with (
        pytest.raises(UsageError, match="holds another run, which is not overwritten"),
        run_folder(record("clip", digest="one"), tmp_path / "run", "m"),
    ):
        pass
    if damaged == "two":
        assert load_run(tmp_path / "run").results.equals(made.results)
    else:
        with pytest.raises(DataError, match=r"run\.json"):
            load_run(tmp_path / "run")
