"""The store: what was put is found bit for bit; what is damaged or belongs elsewhere is told and set aside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.models.spec import ModelSpec
from beholder.scores import shelf as shelves
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store

SPEC, OTHER = ModelSpec("a", "x", "w", "1"), ModelSpec("a", "x", "w", "2")


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32)


def shelf_in(root: Path) -> Shelf:
    return Store(root).images(SPEC)


def only_block(root: Path) -> Path:
    (path,) = root.glob("*/*/*.parquet")
    return path


def test_rows_come_back_bit_for_bit_in_any_order(tmp_path: Path):
    shelf, values = shelf_in(tmp_path), vectors(4)
    shelf.put(["a", "b"], {"vector": values[:2]})
    shelf.put(["c", "d"], {"vector": values[2:]})
    assert (shelf.read(["d", "a", "c"])["vector"] == values[[3, 0, 2]]).all()
    assert shelf.read([]) == {}


def test_rows_are_found_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also when the index is sorted several times on the way, and a key is put twice."""
    monkeypatch.setattr(shelves, "RECENT", 7)
    shelf, values = shelf_in(tmp_path), vectors(60)
    for start in range(0, 60, 4):
        shelf.put([str(i) for i in range(start, start + 4)], {"vector": values[start : start + 4]})
    shelf.put(["5"], {"vector": vectors(1, 9)})
    asked = np.random.default_rng(1).permutation(60)
    assert (shelf.read([str(i) for i in asked])["vector"] == values[asked]).all()
    assert shelf.missing([*map(str, range(58, 63)), "62"]) == ["60", "61", "62"]


def test_missing_keys_are_told_once_and_in_order(tmp_path: Path):
    shelf = shelf_in(tmp_path)
    shelf.put(["b"], {"vector": vectors(1)})
    assert shelf.missing(["c", "b", "a", "c"]) == ["c", "a"]


def test_blocks_of_another_process_are_seen(tmp_path: Path):
    mine, other = shelf_in(tmp_path), shelf_in(tmp_path)
    assert mine.missing(["a"]) == ["a"]
    other.put(["a"], {"vector": vectors(1)})
    assert mine.missing(["a"]) == []


def test_several_channels_are_kept_apart(tmp_path: Path):
    shelf = shelf_in(tmp_path)
    shelf.put(["a"], {"log_p_yes": vectors(1, 1), "log_p_no": vectors(1, 2)})
    assert (shelf.read(["a"])["log_p_no"] == vectors(1, 2)).all()


def edited(path: Path, change: Callable[[object], object]) -> None:
    """The block rewritten under the same name."""
    table = change(pq.read_table(path))
    path.unlink()
    pq.write_table(table, path)


def turned(table):
    return table.set_column(0, "key", table["key"].take([*range(1, len(table)), 0]))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b""), "not those that were written"),
        (lambda path: path.write_bytes(b"PAR1 not really"), "not those that were written"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "not those that were written"),
        (lambda path: path.rename(path.with_stem(path.stem.partition("-")[0])), "not those that were written"),
        (lambda path: edited(path, lambda table: table.replace_schema_metadata(None)), "not those that were written"),
        (lambda path: edited(path, turned), "not those that were written"),
        (lambda path: (path.unlink(), path.mkdir()), "no file"),
        (lambda path: (path.unlink(), path.symlink_to(path)), "no file"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "no file"),
    ],
)
def test_an_unfit_block_is_told_set_aside_and_its_rows_are_missing(tmp_path: Path, damage, reason: str, caplog):
    shelf_in(tmp_path).put(["a", "b"], {"vector": vectors(2)})
    damage(only_block(tmp_path))
    assert shelf_in(tmp_path).missing(["a", "b"]) == ["a", "b"]
    (line,) = caplog.text.splitlines()
    assert reason in line
    assert "Set aside" in line
    assert list(tmp_path.rglob("*.damaged"))


def test_a_flipped_bit_is_never_read_as_a_score(tmp_path: Path):
    shelf_in(tmp_path).put(["a", "b"], {"vector": vectors(2)})
    path = only_block(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert shelf_in(tmp_path).missing(["a", "b"]) == ["a", "b"]


def test_a_block_that_changes_after_it_was_seen_is_not_read(tmp_path: Path):
    shelf = shelf_in(tmp_path)
    shelf.put(["a"], {"vector": vectors(1)})
    only_block(tmp_path).write_bytes(b"PAR1")
    with pytest.raises(DataError, match="changed during the run"):
        shelf.read(["a"])


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six blocks of two rows, noted in an index."""
    monkeypatch.setattr(shelves, "INDEXED_FROM", 6)
    keys = [str(i) for i in range(12)]
    for start in range(0, 12, 2):
        shelf_in(tmp_path).put(keys[start : start + 2], {"vector": vectors(12)[start : start + 2]})
    assert shelf_in(tmp_path).missing([*keys, "x"]) == ["x"]
    return keys


def test_blocks_in_the_index_are_not_read_when_a_shelf_is_opened(indexed, tmp_path: Path, monkeypatch):
    shelf_in(tmp_path).put(["new"], {"vector": vectors(1)})
    opened, real = [], Shelf._opened
    monkeypatch.setattr(
        Shelf, "_opened", lambda self, path, *columns: opened.append(path) or real(self, path, *columns)
    )
    shelf = shelf_in(tmp_path)
    assert shelf.missing([*indexed, "new", "x"]) == ["x"]
    assert len(opened) == 1
    assert (shelf.read(indexed[::-1])["vector"] == vectors(12)[::-1]).all()


def test_a_block_that_changed_behind_the_index_is_found_when_it_is_read(indexed, tmp_path: Path):
    """Same size, date and inode: told and set aside then, and scored again by the next run."""
    path = next(shelf_in(tmp_path).blocks())
    before, whole = path.stat(), path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    shelf = shelf_in(tmp_path)
    assert shelf.missing(indexed) == []
    with pytest.raises(DataError, match="changed during the run"):
        shelf.read(indexed)
    again = shelf_in(tmp_path)
    lost = again.missing(indexed)
    assert len(lost) == 2
    rest = [key for key in indexed if key not in lost]
    assert (again.read(rest)["vector"] == vectors(12)[[int(key) for key in rest]]).all()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "another shelf's", "a folder"])
def test_an_index_that_cannot_be_believed_is_not_used(indexed, tmp_path: Path, damage: str):
    shelf = shelf_in(tmp_path)
    index = shelf.folder / shelves.INDEX
    whole = index.read_bytes()
    index.unlink()
    if damage == "a folder":
        index.mkdir()
    elif damage == "another shelf's":
        other = Store(tmp_path).images(OTHER)
        other.put(["a"], {"vector": vectors(1)})
        other._write_index({block.name for block in other.blocks()})
        shutil.copy(other.folder / shelves.INDEX, index)
    else:
        index.write_bytes({"cut": whole[:-8], "flipped": whole[:-1] + b"x", "empty": b""}[damage])
    assert shelf.missing([*indexed, "a"]) == ["a"]
    assert (shelf.read(indexed)["vector"] == vectors(12)).all()


@pytest.mark.parametrize("place", ["another revision", "other prompts", "texts", "other channels"])
def test_a_block_of_another_place_is_told_and_not_used(tmp_path: Path, place: str, caplog):
    """As a backup that was restored into the wrong folder."""
    store, cells = Store(tmp_path / "here"), {"cosine": vectors(1)}
    origin = {
        "another revision": lambda: store.scores(OTHER, "p"),
        "other prompts": lambda: store.scores(SPEC, "q"),
        "texts": lambda: store.texts(SPEC),
        "other channels": lambda: store.scores(SPEC, "p"),
    }[place]()
    origin.put(["a"], cells)
    target = store.scores(SPEC, "p", {"log_p_yes" if place == "other channels" else "cosine": 5})
    target.folder.mkdir(parents=True, exist_ok=True)
    block = next(origin.blocks())
    if place != "other channels":
        shutil.copy(block, target.folder)
    assert target.missing(["a"]) == ["a"]
    assert "taken as not scored" in caplog.text


def test_blocks_of_another_store_can_be_brought_here(tmp_path: Path):
    """A block says whose rows it holds, whichever store it was written in."""
    shelf_in(tmp_path / "there").put(["a"], {"vector": vectors(1)})
    shutil.copytree(tmp_path / "there", tmp_path / "here")
    shelf = shelf_in(tmp_path / "here")
    assert shelf.missing(["a", "b"]) == ["b"]
    assert (shelf.read(["a"])["vector"] == vectors(1)).all()


def test_several_unfit_blocks_are_reported_in_one_sentence(tmp_path: Path, caplog):
    shelf = shelf_in(tmp_path)
    for name in "abc":
        shelf.put([name], {"vector": vectors(1)})
    for path in shelf.blocks():
        path.write_bytes(b"")
    assert shelf_in(tmp_path).missing(["a", "b"]) == ["a", "b"]
    (line,) = caplog.text.splitlines()
    assert "and 2 more blocks there: its bytes are not those that were written" in line


def test_a_block_that_another_process_set_aside_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shelf_in(tmp_path).put(["a"], {"vector": vectors(1)})
    path = only_block(tmp_path)

    def gone(self: Path, target: Path) -> None:
        raise FileNotFoundError(self)

    path.write_bytes(b"")
    monkeypatch.setattr(Path, "rename", gone)
    assert shelf_in(tmp_path).missing(["a"]) == ["a"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_whole(tmp_path / "file", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def seven_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], np.ndarray]:
    """Seven blocks of three rows, to be merged two by two and the last with none."""
    monkeypatch.setattr(shelves, "FEW", 7)
    monkeypatch.setattr(shelves, "MERGED", 8)
    keys, values = [str(i) for i in range(21)], vectors(21)
    for start in range(0, 21, 3):
        shelf_in(tmp_path).put(keys[start : start + 3], {"vector": values[start : start + 3]})
    return keys, values


def test_small_blocks_are_merged_and_nothing_else_changes(seven_small, tmp_path: Path):
    keys, values = seven_small
    reader, shelf = shelf_in(tmp_path), shelf_in(tmp_path)
    assert reader.missing(keys) == shelf.missing(keys) == []
    shelf.merge_small_blocks()
    assert len(list(shelf.blocks())) == 4
    for each in (shelf, shelf_in(tmp_path), reader):  # the last has seen the small blocks, which are gone
        assert each is reader or each.missing(keys) == []
        assert (each.read(keys)["vector"] == values).all()


def test_merging_waits_for_many_and_leaves_what_it_cannot_read(seven_small, tmp_path: Path):
    keys, values = seven_small
    shelf = shelf_in(tmp_path)
    shelf.missing(keys)
    damaged = next(shelf.blocks())
    whole = damaged.read_bytes()
    damaged.write_bytes(b"")
    shelf.merge_small_blocks()
    damaged.write_bytes(whole)
    assert (shelf.read(keys)["vector"] == values).all()
    before = list(shelf.blocks())
    shelf.merge_small_blocks()
    assert list(shelf.blocks()) == before


def test_a_block_that_is_gone_for_good_is_told(tmp_path: Path):
    shelf = shelf_in(tmp_path)
    shelf.put(["a"], {"vector": vectors(1)})
    only_block(tmp_path).unlink()
    with pytest.raises(DataError, match="is gone"):
        shelf.read(["a"])


def test_models_do_not_share_shelves_and_leave_their_spec(tmp_path: Path):
    store = Store(tmp_path)
    store.images(SPEC).put(["k"], {"vector": vectors(1)})
    assert store.images(OTHER).missing(["k"]) == ["k"]
    assert (tmp_path / SPEC.digest / "spec.json").is_file()


def test_everything_in_a_store_is_for_its_owner_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "deep" / "store")
        store.images(SPEC).put(["k"], {"vector": vectors(1)})
        store.complete(SPEC, "sheet", {"images": 1})
    finally:
        os.umask(before)
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "deep").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
