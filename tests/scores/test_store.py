"""The store: what was put is found, bit for bit, by anyone; what is damaged is set aside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beholder.core.files import write_whole
from beholder.models.spec import ModelSpec
from beholder.scores.store import Shelf, Store


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32)


def test_rows_come_back_bit_for_bit_in_any_order(tmp_path: Path):
    shelf, values = Shelf(tmp_path), vectors(4)
    shelf.put(["a", "b"], {"vector": values[:2]})
    shelf.put(["c", "d"], {"vector": values[2:]})
    assert (shelf.read(["d", "a", "c"])["vector"] == values[[3, 0, 2]]).all()


def test_missing_keys_are_told_once_and_in_order(tmp_path: Path):
    shelf = Shelf(tmp_path)
    shelf.put(["b"], {"vector": vectors(1)})
    assert shelf.missing(["c", "b", "a", "c"]) == ["c", "a"]


def test_blocks_of_another_process_are_seen(tmp_path: Path):
    mine, other = Shelf(tmp_path), Shelf(tmp_path)
    assert mine.missing(["a"]) == ["a"]
    other.put(["a"], {"vector": vectors(1)})
    assert mine.missing(["a"]) == []


def test_several_channels_are_kept_apart(tmp_path: Path):
    shelf = Shelf(tmp_path)
    shelf.put(["a"], {"log_p_yes": vectors(1, 1), "log_p_no": vectors(1, 2)})
    assert (shelf.read(["a"])["log_p_no"] == vectors(1, 2)).all()


@pytest.mark.parametrize("damage", [b"", b"PAR1 not really"])
def test_a_damaged_block_is_set_aside_and_its_rows_are_missing(tmp_path: Path, damage: bytes, caplog):
    Shelf(tmp_path).put(["a"], {"vector": vectors(1)})
    (block,) = tmp_path.glob("*.parquet")
    block.write_bytes(damage)
    assert Shelf(tmp_path).missing(["a"]) == ["a"]
    assert "set aside" in caplog.text
    assert list(tmp_path.glob("*.damaged"))


def test_a_flipped_bit_is_never_read_as_a_score(tmp_path: Path):
    Shelf(tmp_path).put(["a", "b"], {"vector": vectors(2)})
    (path,) = tmp_path.glob("*.parquet")
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert Shelf(tmp_path).missing(["a", "b"]) == ["a", "b"]


def test_a_block_of_an_older_version_is_read(tmp_path: Path):
    Shelf(tmp_path).put(["a"], {"vector": vectors(1)})
    (path,) = tmp_path.glob("*.parquet")
    path.rename(path.with_stem(path.stem.partition("-")[0]))
    shelf = Shelf(tmp_path)
    assert shelf.missing(["a"]) == []
    assert (shelf.read(["a"])["vector"] == vectors(1)).all()


def test_a_block_that_another_process_set_aside_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Shelf(tmp_path).put(["a"], {"vector": vectors(1)})
    (path,) = tmp_path.glob("*.parquet")

    def gone(self: Path, target: Path) -> None:
        raise FileNotFoundError(self)

    path.write_bytes(b"")
    monkeypatch.setattr(Path, "rename", gone)
    assert Shelf(tmp_path).missing(["a"]) == ["a"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_whole(tmp_path / "file", b"data")
    assert list(tmp_path.iterdir()) == []


def test_models_do_not_share_shelves_and_leave_their_spec(tmp_path: Path):
    store, one, two = Store(tmp_path), ModelSpec("a", "x", "w", "1"), ModelSpec("a", "x", "w", "2")
    store.images(one).put(["k"], {"vector": vectors(1)})
    assert store.images(two).missing(["k"]) == ["k"]
    assert (tmp_path / one.digest / "spec.json").is_file()
