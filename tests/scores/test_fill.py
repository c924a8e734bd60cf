"""Filling: only what is missing, the same whatever the batch, nothing lost to a bad picture or to memory."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage, DataError, ModelError, OutOfMemory
from beholder.datasets import load_dataset
from beholder.models.scorer import ContrastiveScorer, NullScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import fill as filling
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store


class Hashing(ContrastiveScorer):
    """A contrastive scorer whose vectors are hashes; counts what it is asked."""

    def __init__(self, batch_size: int = 4, fits: int = 1000) -> None:
        self.spec = ModelSpec("hashing", "test", "none", "1", settings={"logit_scale": 10.0})
        self.batch_size, self.fits = batch_size, fits
        self.images_seen, self.texts_seen, self.batches = 0, 0, []

    def prepare(self, image: Image.Image) -> bytes:
        return image.tobytes()

    def embed_prepared(self, prepared: Sequence[bytes]) -> np.ndarray:
        if len(prepared) > self.fits:
            raise OutOfMemory("too many")
        self.images_seen += len(prepared)
        self.batches.append(len(prepared))
        return _vectors(prepared)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.texts_seen += len(texts)
        return _vectors([text.encode() for text in texts])


def _vectors(items: Sequence[bytes]) -> np.ndarray:
    seeds = [int.from_bytes(hashlib.sha256(item).digest()[:4], "little") for item in items]
    return unit_rows(np.stack([np.random.default_rng(seed).standard_normal(16) for seed in seeds]))


PROMPTS = prompt_set("toy", [{"text": text} for text in ("a", "b", "c")])


@pytest.fixture
def task(people: Callable[..., Path]) -> Task:
    return Task("toy", load_dataset(f"folder:{people(11)}"), PROMPTS)


def test_scores_equal_the_obvious_loop(task: Task, tmp_path: Path):
    (matrix,) = fill([task], Hashing(), Store(tmp_path / "s")).matrices
    scorer = Hashing()
    for row, uri in enumerate(task.dataset.table["uri"]):
        one = scorer.score_prepared([scorer.prepare(Image.open(uri).convert("RGB"))], PROMPTS.texts)
        np.testing.assert_allclose(matrix.values[row], one[0], atol=1e-6)
    assert matrix.logits == pytest.approx(matrix.channel("cosine") * 10.0)


@pytest.mark.parametrize("scorer", [Hashing, NullScorer])
def test_batch_size_and_order_do_not_change_a_score(task: Task, tmp_path: Path, scorer):
    one, other = scorer(), scorer()
    other.batch_size = 3
    turned = Task("toy", task.dataset.where(), task.prompts)
    object.__setattr__(turned, "dataset", type(task.dataset)("t", "1", "x", task.dataset.table.reverse()))
    first = fill([task], one, Store(tmp_path / "1")).matrices[0].values
    second = fill([turned], other, Store(tmp_path / "2")).matrices[0].values
    np.testing.assert_allclose(first, second[::-1], atol=1e-6)


def test_a_second_run_scores_nothing(task: Task, tmp_path: Path):
    fresh, again = Hashing(), Hashing()
    one = fill([task], fresh, Store(tmp_path)).matrices[0].values
    two = fill([task], again, Store(tmp_path)).matrices[0].values
    assert (fresh.images_seen, again.images_seen, again.texts_seen) == (11, 0, 0)
    assert (one == two).all()


def test_one_image_of_each_block_is_scored_again_to_verify(task: Task, tmp_path: Path, monkeypatch, caplog):
    monkeypatch.setattr("beholder.scores.fill.BLOCK_ROWS", 4)
    store = Store(tmp_path / "s")
    right = fill([task], Hashing(), store).matrices[0].values
    again = Hashing()
    fill([task], again, store, FillOptions(verify=True))
    assert (again.images_seen, again.texts_seen) == (3, 1)
    shelf = store.images(again.spec)
    block = next(shelf.blocks())
    keys = shelf._opened(block)["key"].to_pylist()
    vectors = shelf.read(keys) if not shelf.missing(keys) else {}
    block.unlink()
    shelf.put([*keys[1:], keys[0]], vectors)  # as only the owner of the key can forge it
    assert not (fill([task], Hashing(), store).matrices[0].values == right).all()
    mended = fill([task], Hashing(), store, FillOptions(verify=True)).matrices[0].values
    assert "the model now gives other numbers" in caplog.text
    np.testing.assert_allclose(mended, right, atol=1e-6)


def test_new_prompts_cost_no_image(task: Task, tmp_path: Path):
    fill([task], Hashing(), Store(tmp_path))
    more = Hashing()
    fill([Task("more", task.dataset, prompt_set("m", [{"text": "a"}, {"text": "new"}]))], more, Store(tmp_path))
    assert (more.images_seen, more.texts_seen) == (0, 1)


def test_a_limit_is_a_head_start(task: Task, tmp_path: Path):
    fill([Task("few", task.dataset.limit(5), PROMPTS)], Hashing(), Store(tmp_path))
    rest = Hashing()
    fill([task], rest, Store(tmp_path))
    assert rest.images_seen == 6


def test_a_resumed_run_sees_the_batches_of_a_fresh_one(task: Task, tmp_path: Path):
    first = replace(task.dataset, table=task.dataset.table.head(8))
    fill([Task("few", first, PROMPTS)], Hashing(), Store(tmp_path))
    rest = Hashing()
    fill([task], rest, Store(tmp_path))
    assert rest.batches == [3]  # batches of 4, 4, 3: the first two are there


def test_a_changed_picture_is_scored_again(task: Task, tmp_path: Path):
    fill([task], Hashing(), Store(tmp_path / "s"))
    Image.new("RGB", (16, 16)).save(task.dataset.table["uri"][0])
    again = Hashing()
    fill([task], again, Store(tmp_path / "s"))
    assert again.images_seen == 1


def test_memory_running_out_halves_the_batch_and_goes_on(task: Task, tmp_path: Path):
    tight = Hashing(batch_size=8, fits=2)
    values = fill([task], tight, Store(tmp_path / "1")).matrices[0].values
    assert max(tight.batches) == 2
    np.testing.assert_allclose(values, fill([task], Hashing(), Store(tmp_path / "2")).matrices[0].values, atol=1e-6)


def test_a_model_that_never_fits_says_so(task: Task, tmp_path: Path):
    with pytest.raises(ModelError, match="does not fit into memory even with one image"):
        fill([task], Hashing(fits=0), Store(tmp_path))


def spoil(task: Task, row: int, content: bytes | None) -> str:
    uri = task.dataset.table["uri"][row]
    Path(uri).unlink() if content is None else Path(uri).write_bytes(content)
    return uri


def test_all_bad_pictures_are_named_in_one_message(task: Task, tmp_path: Path):
    bad = [spoil(task, row, content) for row, content in ((1, b"no picture"), (8, None), (9, b""))]
    with pytest.raises(DataError) as caught:
        fill([task], Hashing(), Store(tmp_path / "s"))
    message = str(caught.value)
    assert message.startswith(f"3 of {len(task.dataset)} images cannot be read:")
    assert all(uri in message for uri in bad)
    assert message.endswith("continue without them: --skip-bad-images.")


@pytest.mark.parametrize("content", [None, b"", b"not a picture"])
def test_a_bad_picture_stops_the_run_by_name_and_keeps_what_was_scored(task: Task, tmp_path: Path, content):
    uri = spoil(task, 9, content)
    with pytest.raises((BadImage, DataError), match=Path(uri).name):
        fill([task], Hashing(), Store(tmp_path / "s"))
    if content == b"not a picture":  # found only on opening: the first two batches were scored before
        again = Hashing()
        fill([task], again, Store(tmp_path / "s"), FillOptions(skip_bad_images=True))
        assert again.images_seen == 2


@pytest.mark.parametrize("content", [None, b"", b"not a picture"])
def test_a_bad_picture_may_be_skipped_and_is_listed(task: Task, tmp_path: Path, content):
    whole = fill([task], Hashing(), Store(tmp_path / "1")).matrices[0].values
    uri = spoil(task, 5, content)
    filled = fill([task], Hashing(), Store(tmp_path / "2"), FillOptions(skip_bad_images=True))
    assert list(filled.bad_images) == [uri]
    np.testing.assert_allclose(filled.matrices[0].values, np.delete(whole, 5, axis=0), atol=1e-6)


def test_scores_that_are_not_numbers_are_refused_with_the_image(task: Task, tmp_path: Path):
    class Broken(Hashing):
        def embed_prepared(self, prepared: Sequence[bytes]) -> np.ndarray:
            return super().embed_prepared(prepared) * np.nan

    with pytest.raises(ModelError, match=r"NaN or infinite scores for '.*00000.png'"):
        fill([task], Broken(), Store(tmp_path))


def test_pairwise_models_store_every_channel(task: Task, tmp_path: Path):
    class Pairs(NullScorer):
        channels = ("log_p_yes", "log_p_no")

        def score_prepared(self, prepared, prompts):
            cells = super().score_prepared(prepared, prompts)
            return np.concatenate([cells, -cells], axis=2)

    (matrix,) = fill([task], Pairs(), Store(tmp_path)).matrices
    assert (matrix.channel("log_p_yes") == -matrix.channel("log_p_no")).all()


def test_a_manifest_says_that_a_sheet_is_complete(task: Task, tmp_path: Path):
    fill([task], Hashing(), Store(tmp_path))
    (manifest,) = (tmp_path / Hashing().spec.digest / "complete").glob("*.json")
    assert json.loads(manifest.read_text())["images"] == 11


def test_progress_counts_every_image_once(task: Task, tmp_path: Path):
    from contextlib import contextmanager

    moves: list[int] = []

    @contextmanager
    def progress(label: str, total: int, done: int, later: int):
        moves.append(done - total)
        yield moves.append

    fill([task], Hashing(), Store(tmp_path), FillOptions(progress=progress))
    assert sum(moves) == 0


def test_texts_without_a_vector_are_refused_by_name(task: Task, tmp_path: Path):
    class Broken(Hashing):
        def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
            return super().embed_texts(texts) * np.nan

    with pytest.raises(ModelError, match=f"NaN or infinite scores for '{task.prompts.texts[0]}'"):
        fill([task], Broken(), Store(tmp_path))


@pytest.mark.parametrize(("limit", "at", "sizes"), [("BLOCK_ROWS", 4, [4, 4, 3]), ("BLOCK_SECONDS", -1.0, [1] * 11)])
def test_rows_are_written_when_they_are_many_or_old(
    limit: str, at: float, sizes: list[int], task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Eleven pictures one at a time: in blocks of four, or each at once where none may wait."""
    written, put = [], Shelf.put

    def watched(shelf: Shelf, keys: list[str], rows: dict[str, np.ndarray]) -> None:
        put(shelf, keys, rows)
        if keys[0] not in task.prompts.texts:
            written.append(len(keys))

    monkeypatch.setattr(f"beholder.scores.fill.{limit}", at)
    monkeypatch.setattr(Shelf, "put", watched)
    fill([task], Hashing(batch_size=1), Store(tmp_path))
    assert written == sizes


def test_images_in_columns_are_found_by_their_addresses(monkeypatch: pytest.MonkeyPatch):
    """Also where addresses have the same hash."""
    monkeypatch.setattr(filling, "LOOKED_UP", 7)
    monkeypatch.setattr(filling, "hash", len, raising=False)
    uris = pl.Series([f"{'x' * (i % 3)}{i}.jpg" for i in range(30)])
    keys = {uri: None if i == 4 else "" if i % 5 else content_digest(uri.encode()) for i, uri in enumerate(uris)}
    images = filling._Images(uris, lambda part: [keys[uri] for uri in part])
    assert images.absent == [uris[4]]
    assert [images.row(uri) for uri in uris] == list(range(30))
    some = uris[[29, 3, 10]]
    assert images.at(images.rows(some)).tolist() == [(keys[uri] or "").encode() for uri in some]


@pytest.mark.parametrize(("size", "count"), [(4, 30), (7, 30), (1, 5), (3, 0)])
def test_batches_are_cut_from_the_whole_list(size: int, count: int):
    images = filling._Images(pl.Series([str(i) for i in range(40)]), lambda part: ["a"] * len(part))
    rng = np.random.default_rng(size)
    rows, lacking = rng.permutation(40)[:count], rng.random(count) < 0.3
    slow = [
        [str(row) for row, lacks in list(zip(rows, lacking, strict=True))[start : start + size] if lacks]
        for start in range(0, count, size)
    ]
    batches = filling._Batches(images, rows, lacking, size)
    assert list(batches) == batches[:] == [batch for batch in slow if batch]


def test_a_filling_keeps_few_bytes_of_each_image():
    uris = pl.Series([f"/data/images/{i:08}.jpg" for i in range(50_000)])
    key = content_digest(b"")
    tracemalloc.start()
    try:
        images = filling._Images(uris, lambda part: [key] * len(part))
        batches = filling._Batches(images, np.arange(50_000), np.ones(50_000, bool), 64)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(batches) == 782
    assert kept < 80 * 50_000


def test_a_long_run_writes_larger_blocks():
    class Counted:
        def __init__(self) -> None:
            self.rows: list[int] = []

        def put(self, keys: list[str], rows: dict[str, np.ndarray]) -> None:
            self.rows.append(len(keys))

    shelf = Counted()
    with filling._Block(shelf) as block:
        for _ in range(1000):
            block.add(["k"] * 64, {"vector": np.zeros((64, 8), np.float32)})
    assert sum(shelf.rows) == 64_000
    assert shelf.rows[:8] == [256] * 8
    assert len(shelf.rows) < 60
    assert max(shelf.rows) <= 64_000 / 8 + 64


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_was_scored_before_a_stop_is_kept(task: Task, tmp_path: Path, error: type[BaseException]):
    class Stopped(Hashing):
        def embed_prepared(self, prepared: Sequence[bytes]) -> np.ndarray:
            if self.images_seen == 8:
                raise error
            return super().embed_prepared(prepared)

    with pytest.raises(error):
        fill([task], Stopped(), Store(tmp_path))
    again = Hashing()
    fill([task], again, Store(tmp_path))
    assert again.images_seen == len(task.dataset) - 8
