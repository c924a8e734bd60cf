"""A store that was damaged, mixed up or forged: the scores are right all the same, or the run ends with an error.

FAULT_CASES=720 is the long form (`make trust`).
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults.toy import OTHERS, Pairs, Towers, scores, toy_task

from beholder.core.digests import digest
from beholder.core.errors import BeholderError
from beholder.scores import fill as filling
from beholder.scores import shelf as shelves

IMAGES = 11
CASES = int(os.environ.get("FAULT_CASES", "144"))
Corruption = Callable[[Path, Path, random.Random], object]
"""Spoils the first store; the second is another one of the same models."""


def any_file(store: Path, rng: random.Random, pattern: str = "**/*") -> Path:
    return rng.choice(sorted(path for path in store.glob(pattern) if path.is_file()))


def any_block(store: Path, rng: random.Random) -> Path:
    return any_file(store, rng, "*/**/*.parquet")


def flip(store: Path, _: Path, rng: random.Random) -> None:
    path = any_file(store, rng)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut(store: Path, _: Path, rng: random.Random) -> None:
    path = any_file(store, rng)
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def lengthen(store: Path, _: Path, rng: random.Random) -> None:
    path = any_file(store, rng)
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 99)))


def empty(store: Path, _: Path, rng: random.Random) -> None:
    any_file(store, rng).write_bytes(b"")


def zero(store: Path, _: Path, rng: random.Random) -> None:
    path = any_file(store, rng)
    path.write_bytes(bytes(path.stat().st_size))


def delete(store: Path, _: Path, rng: random.Random) -> None:
    any_file(store, rng).unlink()


def random_bytes(store: Path, _: Path, rng: random.Random) -> None:
    any_file(store, rng).write_bytes(rng.randbytes(500))


def exchange_contents(store: Path, _: Path, rng: random.Random) -> None:
    one, two = any_block(store, rng), any_block(store, rng)
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)


def move_a_block(store: Path, _: Path, rng: random.Random) -> None:
    """To another model, revision, kind of row or set of prompts."""
    target = rng.choice(sorted({path.parent for path in store.glob("*/**/*.parquet")}))
    shutil.copy(any_block(store, rng), target)


def restore_another_revision(store: Path, _: Path, rng: random.Random) -> None:
    """A backup of one model over the folder of another."""
    one, two = rng.sample(sorted(path for path in store.iterdir() if path.is_dir()), 2)
    if rng.random() < 0.5:
        shutil.rmtree(two)
    shutil.copytree(one, two, dirs_exist_ok=True)


def exchange_models(store: Path, _: Path, rng: random.Random) -> None:
    one, two = rng.sample(sorted(path for path in store.iterdir() if path.is_dir()), 2)
    one.rename(store / "between")
    two.rename(one)
    (store / "between").rename(two)


def restore_another_store(store: Path, other: Path, rng: random.Random) -> None:
    """Some of its files, with or without its digests; its images have other contents."""
    for path in sorted(path for path in other.rglob("*") if path.is_file()):
        if rng.random() < 0.5:
            target = store / path.relative_to(other)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def _forge(store: Path, rng: random.Random, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite a block, with its own metadata and a name that is not that of its content."""
    path = any_block(store, rng)
    table = change(pq.read_table(path))
    path.unlink()
    pq.write_table(table, path, compression="zstd")
    data, keys = path.read_bytes(), table["key"].to_pylist()
    name = rng.choice(
        [
            path.stem,
            digest(keys),
            f"{digest(keys)}-{hashlib.blake2b(data, digest_size=10).hexdigest()}",
            f"{digest(keys)}-{hashlib.blake2b(data, digest_size=16).hexdigest()}",
            f"{digest(keys)}-{hashlib.blake2b(data, digest_size=16, key=bytes(32)).hexdigest()}",
        ]
    )
    path.rename(path.with_stem(name))


def permute_keys(store: Path, _: Path, rng: random.Random) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(0, "key", table["key"].take([*range(1, len(table)), 0]))

    _forge(store, rng, change)


def change_numbers(store: Path, _: Path, rng: random.Random) -> None:
    def change(table: pa.Table) -> pa.Table:
        column = rng.randrange(1, table.num_columns)
        lists = table.column(column).combine_chunks()
        values = lists.flatten().to_numpy().copy()
        width, kind = len(values) // len(table), rng.choice(["nan", "whole", "double", "shorter", "moved"])
        if kind == "nan":
            values[rng.randrange(len(values))] = np.nan
        elif kind == "shorter":
            values, width = values.reshape(len(table), width)[:, 1:].ravel(), width - 1
        elif kind == "moved":
            values = values + np.float32(0.01)
        kinds = {"whole": np.int32, "double": np.float64}
        numbers = pa.FixedSizeListArray.from_arrays(pa.array(values.astype(kinds.get(kind, np.float32))), width)
        return table.set_column(column, table.column_names[column], numbers)

    _forge(store, rng, change)


def change_channels(store: Path, _: Path, rng: random.Random) -> None:
    def change(table: pa.Table) -> pa.Table:
        names = table.column_names
        if len(names) > 2 and rng.random() < 0.5:
            return table.rename_columns([names[0], names[2], names[1]])
        return table.drop_columns([names[-1]]) if rng.random() < 0.5 else table.rename_columns([*names[:-1], "other"])

    _forge(store, rng, change)


def older_form(store: Path, _: Path, rng: random.Random) -> None:
    _forge(store, rng, lambda table: table.replace_schema_metadata(None))


def exchange_digests(store: Path, _: Path, rng: random.Random) -> None:
    with closing(sqlite3.connect(store / "digests.sqlite")) as connection, connection:
        rows = connection.execute("select * from files").fetchall()
        one, two = rng.sample(rows, 2)
        what = rng.choice(["digest", "seal", "stamp", "all", "every"])
        if what == "every":
            connection.execute("update files set digest = ?", (one[1],))
        elif what == "stamp":
            connection.execute("delete from files where stamp in (?, ?)", (one[0], two[0]))
            swapped = [(one[0], *two[1:]), (two[0], *one[1:])]
            connection.executemany("insert into files values (?, ?, ?)", swapped)
        else:
            for row, given in ((one, two), (two, one)):
                if what in ("digest", "all"):
                    connection.execute("update files set digest = ? where stamp = ?", (given[1], row[0]))
                if what in ("seal", "all"):
                    connection.execute("update files set seal = ? where stamp = ?", (given[2], row[0]))


def folder_for_a_file(store: Path, _: Path, rng: random.Random) -> None:
    path = any_file(store, rng)
    path.unlink()
    path.mkdir() if rng.random() < 0.5 else path.symlink_to(path)


CORRUPTIONS: list[Corruption] = [
    *(flip, cut, lengthen, empty, zero, delete, random_bytes, folder_for_a_file),
    *(exchange_contents, move_a_block, restore_another_revision, exchange_models, restore_another_store),
    *(permute_keys, change_numbers, change_channels, older_form, exchange_digests),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two stores of four models in memory, if there is room there."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else tmp_path_factory.mktemp("stores")
    with TemporaryDirectory(dir=memory) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(filling, "BLOCK_ROWS", 4)
        patch.setattr(shelves, "INDEXED_FROM", 1)
        for store, offset in (("whole", "images"), ("other", "others")):
            task = toy_task(Path(folder) / offset, IMAGES if store == "whole" else IMAGES + 3)
            for scorer in (Towers("1"), Towers("2"), Pairs(0), Pairs(1)):
                scores(task, scorer, Path(folder) / store)
            scores(toy_task(Path(folder) / offset, IMAGES, OTHERS), Pairs(0), Path(folder) / store)
        yield Path(folder)


@pytest.mark.slow
def test_no_corruption_is_answered_with_a_wrong_score(place: Path, caplog: pytest.LogCaptureFixture):
    """Every way to spoil a store in turn: what comes back are the right scores, or an error."""
    caplog.set_level("CRITICAL")
    task, root = toy_task(place / "images", IMAGES), place / "store"
    scorers = [lambda: Towers("1"), lambda: Towers("2"), lambda: Pairs(0)]
    right = [scores(task, make(), place / "whole") for make in scorers]
    refused = scored_again = 0
    for case in range(CASES):
        spoil, rng = CORRUPTIONS[case % len(CORRUPTIONS)], random.Random(case)
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(place / "whole", root)
        if case % 2:  # its indexes note the blocks as they lie here
            scores(task, scorers[case // 2 % 3](), root)
        before = {path: path.stat() for path in root.rglob("*")}
        for _ in range(rng.choice([1, 1, 3])):
            with suppress(sqlite3.Error, OSError, pa.ArrowException, LookupError, ValueError):  # spoilt before
                spoil(root, place / "other", rng)
        for path in before if case % 4 == 1 else ():  # as if nothing had happened
            with suppress(OSError):
                os.utime(path, ns=(before[path].st_atime_ns, before[path].st_mtime_ns))
        for make, expected in zip(scorers, right, strict=True):
            scorer = make()
            try:
                values = scores(task, scorer, root)
            except (BeholderError, OSError):
                refused += 1
                continue
            assert np.array_equal(values, expected), (case, spoil.__name__, scorer.spec.name)
            scored_again += scorer.asked > 0
    print(f"{CASES} corruptions: {scored_again} scored again, {refused} refused, 0 wrong")
    assert scored_again > 20
