"""Cutting by matrix products gives Pillow's pixels; only files that nvJPEG reads as Pillow does are left to it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder.core.digests import file_digest
from beholder.core.errors import ModelError, UnknownName
from beholder.datasets import load_dataset
from beholder.datasets.images import open_image
from beholder.models.load import LoadOptions, load_model
from beholder.models.preparation import Cut
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import reading
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store
from beholder.studies.custom.study import custom_study

torch = pytest.importorskip("torch")

from beholder.models.contrastive.gpu_decoder import GpuDecoder, cut_on_gpu  # noqa: E402
from beholder.models.preparation import Jpeg, plain_jpeg  # noqa: E402

SQUARE = Cut(32, Image.Resampling.BICUBIC, (32, 32))


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    "cut",
    [
        SQUARE,
        Cut(32, Image.Resampling.BILINEAR, (32, 32)),
        Cut(20, Image.Resampling.BICUBIC, (32, 32), corner="nearest"),
        Cut((24, 16), Image.Resampling.BICUBIC),
    ],
)
def test_matrix_products_cut_as_pillow_does(cut: Cut):
    pictures = [noise(*size) for size in ((48, 32), (31, 57), (33, 33), (300, 200))]
    ours = cut_on_gpu([torch.from_numpy(np.array(picture)).permute(2, 0, 1) for picture in pictures], cut).numpy()
    off = ours.astype(int) - np.stack([cut(picture) for picture in pictures])
    assert np.abs(off).max() <= 1
    assert (off != 0).mean() < 0.05


def saved(picture: Image.Image, kind: str = "JPEG", **options: Any) -> memoryview:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return memoryview(buffer.getvalue())


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize(
    ("data", "pixels"),
    [
        (saved(noise(30, 20)), 600),
        (saved(noise(30, 20), progressive=True), 600),
        (saved(noise(30, 20).convert("L")), 600),
        (saved(noise(30, 20), exif=turned(1)), 600),
        (saved(noise(30, 20), exif=turned(6)), 0),
        (saved(noise(30, 20).convert("CMYK")), 0),
        (saved(noise(30, 20), keep_rgb=True), 0),
        (saved(noise(30, 20), "PNG"), 0),
        (memoryview(b"\xff\xd8"), 0),
        (memoryview(b""), 0),
    ],
    ids="plain progressive grey upright turned four-colours rgb png cut-off empty".split(),
)
def test_only_plain_jpegs_are_left_to_the_card(data: memoryview, pixels: int):
    assert plain_jpeg(data) == pixels


def test_a_gpu_is_needed_and_said():
    with pytest.raises(ModelError, match="needs an NVIDIA GPU"):
        GpuDecoder(SQUARE, "cpu")
    with pytest.raises(ModelError, match="bilinear or bicubic"):
        GpuDecoder(Cut(8, Image.Resampling.LANCZOS, (8, 8)), "cuda")
    with pytest.raises(ModelError, match="--decode gpu is for two-tower models"):
        load_model("null", LoadOptions(decode="gpu"))
    with pytest.raises(UnknownName, match="no way to decode 'cpu'"):
        LoadOptions(decode="cpu")


class Hashes:
    """A decoder whose pictures are hashes of whole files."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def encoding(self, uri: str, data: np.ndarray | None) -> tuple[str, bytes]:
        assert data is not None
        return uri, hashlib.sha256(data).digest()

    def decode(self, pictures: Sequence[tuple[str, bytes]]) -> np.ndarray:
        self.read += [uri for uri, _ in pictures]
        return np.stack([np.frombuffer(digest, np.uint8) for _, digest in pictures])


class Decoding(ContrastiveScorer):
    batch_size = 4

    def __init__(self) -> None:
        self.spec = ModelSpec("decoding", "test", "none", "1", settings={"logit_scale": 10.0})
        self.decoder = Hashes()

    def embed_prepared(self, prepared: np.ndarray) -> np.ndarray:
        return unit_rows(prepared + 1.0)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.eye(len(texts), 32, dtype=np.float32)


def test_files_are_read_and_hashed_once_on_their_way_to_a_decoder(people: Callable[..., Path], tmp_path: Path):
    task = Task("toy", load_dataset(f"folder:{people(11)}"), prompt_set("toy", [{"text": "a"}, {"text": "b"}]))
    uris = task.dataset.table["uri"].to_list()
    Path(uris[10]).write_bytes(Path(uris[2]).read_bytes())  # the same picture twice
    first, again, elsewhere = Decoding(), Decoding(), Decoding()
    store = Store(tmp_path / "store")
    values = fill([task], first, store).matrices[0].values
    expected = [
        unit_rows(np.frombuffer(hashlib.sha256(Path(uri).read_bytes()).digest(), np.uint8)[None] + 1.0) for uri in uris
    ]
    np.testing.assert_allclose(values[:, :, 0], np.concatenate(expected)[:, :2], atol=1e-6)
    np.testing.assert_array_equal(fill([task], again, store).matrices[0].values, values)
    assert sorted(set(first.decoder.read)) == sorted(uris)
    assert again.decoder.read == []
    store.digest_memory.unlink()  # nothing is remembered: files are hashed again, and found on the shelf
    fill([task], elsewhere, store)
    assert elsewhere.decoder.read == []


class Pillows:
    """A decoder that does with Pillow what the card would do."""

    cut = Cut(8, Image.Resampling.BICUBIC, (8, 8))
    encoding = cut.encoded

    def decode(self, pictures: Sequence[Jpeg | np.ndarray]) -> np.ndarray:
        opened = [Image.open(io.BytesIO(p.data)) if isinstance(p, Jpeg) else Image.fromarray(p) for p in pictures]
        return np.stack([self.cut(picture).ravel() for picture in opened])


@pytest.mark.parametrize("processes", [0, 2])
def test_files_reach_the_decoder_whole_by_threads_and_by_processes(
    processes: int, people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "PROCESSES_FROM", 2)
    folder, rng = people(23), np.random.default_rng(3)
    for number, path in enumerate(sorted(folder.rglob("*.png"))[::2]):  # of many sizes, so that memory grows
        noise = rng.integers(0, 256, (9 + 7 * number, 30, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path, "JPEG")
    task = Task("toy", load_dataset(f"folder:{folder}"), prompt_set("toy", [{"text": "a"}, {"text": "b"}]))
    uris = task.dataset.table["uri"].to_list()
    scorer = Decoding()
    scorer.decoder = Pillows()
    scorer.embed_texts = lambda texts: np.eye(len(texts), 192, dtype=np.float32)
    store = Store(tmp_path / "store")
    values = fill([task], scorer, store, FillOptions(processes=processes)).matrices[0].values[:, :, 0]
    pictures = np.stack([Pillows.cut(Image.open(uri)).ravel() for uri in uris])
    np.testing.assert_allclose(values, unit_rows(pictures + 1.0)[:, :2], atol=1e-6)
    assert not store.images(scorer.spec).missing([file_digest(Path(uri)) for uri in uris])
    Path(uris[3]).unlink()
    filled = fill([task], scorer, Store(tmp_path / "other"), FillOptions(processes=processes, skip_bad_images=True))
    assert list(filled.bad_images) == [uris[3]]


def test_a_file_that_vanishes_is_named_or_skipped(people: Callable[..., Path], tmp_path: Path):
    task = Task("toy", load_dataset(f"folder:{people(6)}"), prompt_set("toy", [{"text": "a"}]))
    uri = task.dataset.table["uri"][3]
    Path(uri).unlink()
    filled = fill([task], Decoding(), Store(tmp_path), FillOptions(skip_bad_images=True))
    assert list(filled.bad_images) == [uri]
    assert filled.matrices[0].values.shape[0] == 5


class Coarse:
    """Stands in for the card: Pillow with another filter."""

    def __init__(self, cut: Cut, device: str) -> None:
        self.encoding, self._cut = cut.encoded, replace(cut, resample=Image.Resampling.BOX)

    def decode(self, pictures: Sequence[Jpeg | np.ndarray]) -> np.ndarray:
        return np.stack([self._cut(open_image(p.uri)) if isinstance(p, Jpeg) else p for p in pictures])


@pytest.mark.slow
def test_both_ways_of_decoding_show_how_far_findings_move(
    people: Callable[..., Path], tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("beholder.models.contrastive.gpu_decoder.GpuDecoder", Coarse)
    folder = people(24)
    for path in folder.rglob("*.png"):
        noise(90, 60 + path.stat().st_size % 40).save(path, "JPEG")
    words = prompt_set("words", [{"text": w, "level": "words", "concept": w} for w in ("kind", "cold")])
    study, model = custom_study(words, by=["gender"]), str(tiny_model("clip"))
    options = AuditOptions(dataset=f"folder:{folder}", store=tmp_path / "store", draws=100, out=tmp_path / "both")
    both = audit_models([model], [study], replace(options, decode="both"))
    exact, fast = (
        audit_models([model], [study], replace(options, out=tmp_path / way, decode=way)) for way in ("exact", "gpu")
    )
    assert both.results["value"].equals(exact.results["value"])
    assert both.perturbed["value"].equals(fast.results["value"])
    assert not both.perturbed["value"].equals(exact.results["value"])
    assert both.perturbed["change"].unique().to_list() == ["JPEG files decoded on the GPU (--decode gpu)"]
    assert "decoded on the GPU" in (tmp_path / "both" / "report.html").read_text()
    with pytest.raises(ModelError, match="--decode gpu is for two-tower models"):
        load_model("null", LoadOptions(decode="both"))
