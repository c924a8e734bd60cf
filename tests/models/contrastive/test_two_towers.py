"""Two-tower scores are those of the model's own forward pass, one picture and one prompt at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import UnusableScore
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Embedder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

FAMILIES = ["clip", "siglip", "siglip2", "align", "altclip", "chinese_clip"]
# What a user who follows the model's documentation would pass to its processor.
PADDING = {"siglip": {"padding": "max_length", "max_length": 12, "truncation": True}}
IMAGES = {"siglip2": {"images_kwargs": {"patch_size": 8, "max_num_patches": 16}}}
Folders = Callable[[str], Path]


def processor_of(folder: Path, family: str) -> Any:
    image_processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = transformers.models.auto.processing_auto.PROCESSOR_MAPPING_NAMES[family]
    return getattr(transformers, name)(image_processor, tokenizer)


def obvious_logits(folder: Path, family: str, pictures: list[Image.Image], prompts: list[str]) -> Any:
    """The slow way: the library's processor and forward pass for every cell."""
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    processor = processor_of(folder, family)
    options = {**PADDING.get(family, {}), **IMAGES.get(family, {})}

    def cell(picture: Image.Image, prompt: str) -> float:
        inputs = processor(text=[prompt], images=picture.convert("RGB"), return_tensors="pt", **options)
        with torch.no_grad():
            return float(model(**inputs).logits_per_image[0, 0])

    return np.array([[cell(picture, prompt) for prompt in prompts] for picture in pictures])


def softmax(logits: Any) -> Any:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.fixture
def clip(tiny_model: Folders) -> Any:
    return load_model(str(tiny_model("clip")))


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_the_obvious_loop(
    family: str, batch_size: int, tiny_model: Folders, pictures: list[Image.Image], prompts: list[str]
) -> None:
    scorer = load_model(str(tiny_model(family)), LoadOptions(batch_size=batch_size))
    cosines = scorer.score_prepared([scorer.prepare(picture) for picture in pictures], prompts)[:, :, 0]
    logits = scorer.spec.settings["logit_scale"] * cosines + scorer.spec.settings["logit_bias"]
    expected = obvious_logits(tiny_model(family), family, pictures, prompts)
    assert np.ptp(expected) > 0.05, "the tiny model tells nothing apart; the test would prove nothing"
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_allclose(softmax(logits), softmax(expected), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_neither_order_nor_batch_changes_a_picture(
    family: str, tiny_model: Folders, pictures: list[Image.Image]
) -> None:
    scorer: Any = load_model(str(tiny_model(family)))
    prepared = [scorer.prepare(picture) for picture in pictures]
    together = scorer.embed_prepared(prepared)
    alone = np.concatenate([scorer.embed_prepared([picture]) for picture in prepared])
    backwards = scorer.embed_prepared(prepared[::-1])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together, backwards, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_longer_texts_beside_it_do_not_change_a_text(family: str, tiny_model: Folders, prompts: list[str]) -> None:
    scorer: Any = load_model(str(tiny_model(family)))
    alone = np.concatenate([scorer.embed_texts([prompt]) for prompt in prompts])
    np.testing.assert_allclose(scorer.embed_texts(prompts), alone, atol=1e-6)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "siglip2"])
def test_preprocessing_is_the_checkpoints_own(family: str, tiny_model: Folders, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny_model(family)))
    processor = processor_of(tiny_model(family), family).image_processor
    for picture in pictures:
        expected = processor(images=picture.convert("RGB"), return_tensors="np")["pixel_values"][0]
        prepared = scorer.prepare(picture)
        assert prepared.dtype == np.float32
        np.testing.assert_array_equal(prepared, expected.astype(np.float32))


def test_pictures_may_be_prepared_in_several_threads(clip: Any, pictures: list[Image.Image]) -> None:
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(clip.prepare, pictures * 5))
    for picture, prepared in zip(pictures * 5, threaded, strict=True):
        np.testing.assert_array_equal(prepared, clip.prepare(picture))


def test_vectors_are_unit_float32_rows(clip: Any, pictures: list[Image.Image], prompts: list[str]) -> None:
    assert isinstance(clip, Embedder)
    for vectors in (clip.embed_prepared([clip.prepare(p) for p in pictures]), clip.embed_texts(prompts)):
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_text_that_is_too_long_is_cut_and_noted_once(clip: Any) -> None:
    long = "a photo of " + "a very " * 20 + "tall person"
    assert clip.notes == []
    clip.embed_texts(["a dog", long])
    clip.embed_texts([long])
    assert len(clip.notes) == 1
    assert "a photo of a very" in clip.notes[0]
    assert "cut to the model's 40" in clip.notes[0]


def test_half_precision_is_close_and_is_another_model(tiny_model: Folders, pictures: list[Image.Image]) -> None:
    full, half = (
        load_model(str(tiny_model("clip")), LoadOptions(precision=precision)) for precision in ("auto", "bf16")
    )
    prepared = [full.prepare(picture) for picture in pictures]
    difference = full.score_prepared(prepared, ["dog"]) - half.score_prepared(prepared, ["dog"])
    assert 0 < np.abs(difference).max() < 0.05
    assert (full.spec.precision, half.spec.precision) == ("float32", "bfloat16")
    assert full.spec.digest != half.spec.digest


def test_the_spec_holds_what_moves_a_score(tiny_model: Folders) -> None:
    settings = load_model(str(tiny_model("siglip"))).spec.settings
    assert settings["image_processor"]["class"] == "SiglipImageProcessorPil"
    assert settings["image_processor"]["resample"] == 3
    assert settings["text"]["padding"] == "max_length"
    assert settings["text"]["max_length"] == 12
    assert settings["logit_scale"] == pytest.approx(np.exp(2.5))
    assert settings["logit_bias"] == -3.0


def test_weights_that_give_nan_are_told(clip_copy: Path) -> None:
    spoil(clip_copy, "visual_projection.weight", torch.nan)
    with pytest.raises(UnusableScore, match=r"no usable score for 2 image\(s\), at position 0"):
        load_model(str(clip_copy))


def test_a_picture_that_gives_nan_is_told_by_its_position(clip: Any, pictures: list[Image.Image]) -> None:
    prepared = [clip.prepare(picture) for picture in pictures]
    prepared[4] = np.full_like(prepared[4], np.nan)
    clip.batch_size = 2
    with pytest.raises(UnusableScore) as raised:
        clip.embed_prepared(prepared)
    assert (raised.value.kind, raised.value.positions) == ("image", (4,))


def test_memory_that_runs_out_is_told_as_such(clip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from beholder.core.errors import OutOfMemory

    def full(**_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(clip._model, "get_image_features", full)
    with pytest.raises(OutOfMemory, match="20 GiB"):
        clip.embed_prepared([np.zeros((3, 32, 32), np.float32)])


def test_a_model_whose_own_logits_differ_from_its_towers_is_refused(
    tiny_model: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beholder.core.errors import ModelError

    monkeypatch.setattr("beholder.models.contrastive.two_towers.logit_scale", lambda model: 7.0)
    with pytest.raises(ModelError, match="scored wrongly"):
        load_model(str(tiny_model("clip")))


def test_towers_may_go_by_open_clips_names(clip: Any, pictures: list[Image.Image]) -> None:
    """As in the code that EVA-CLIP-8B brings with it."""
    prepared = [clip.prepare(picture) for picture in pictures]
    expected = clip.score_prepared(prepared, ["dog"])

    class Renamed:
        encode_image = clip._model.get_image_features
        encode_text = clip._model.get_text_features

    clip._model = Renamed()
    np.testing.assert_array_equal(clip.score_prepared(prepared, ["dog"]), expected)


def test_siglip_that_says_lower_case_gets_lower_case(tiny_model: Folders, tmp_path: Path) -> None:
    import json
    import shutil

    folder = Path(shutil.copytree(tiny_model("siglip"), tmp_path / "cased"))
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalizer": None}))
    cased: Any = load_model(str(folder))
    assert not np.allclose(cased.embed_texts(["Dog"]), cased.embed_texts(["dog"]))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    lower: Any = load_model(str(folder))
    np.testing.assert_array_equal(lower.embed_texts(["Dog"]), lower.embed_texts(["dog"]))


def spoil(folder: Path, key: str, value: float) -> None:
    """Overwrite one weight of a saved model."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights[key] = torch.full_like(weights[key], value)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "siglip2"])
def test_pictures_cut_by_workers_and_finished_on_the_device_score_the_same(
    family: str, tiny_model: Folders, pictures: list[Image.Image]
) -> None:
    scorer: Any = load_model(str(tiny_model(family)))
    cut = np.stack([scorer.preparation(picture) for picture in pictures])
    assert cut.dtype == (np.float32 if family == "align" else np.uint8)  # ALIGN's processor cannot be split
    expected = scorer.embed_prepared([scorer.prepare(picture) for picture in pictures])
    np.testing.assert_array_equal(scorer.embed_prepared(cut), expected)
