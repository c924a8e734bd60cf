"""A segmenter's channels are read from the pixels of its own forward pass, each picture and concept encoded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError, UnusableScore
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from conformance import segmentation  # noqa: E402

CONCEPTS = ["nurse", "a photo of a tall man", "Dog"]


@pytest.fixture(scope="module")
def folder_and_case(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("segmenters")
    return folder / "clipseg", segmentation.cases(folder)["clipseg"]


@pytest.fixture
def clipseg(folder_and_case: tuple[Path, dict[str, Any]]) -> Any:
    return load_model(str(folder_and_case[0]), LoadOptions(batch_size=3))


def scores(scorer: Any, pictures: list[Image.Image], concepts: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], concepts)


def test_channels_are_read_from_the_models_own_pixels(
    clipseg: Any, folder_and_case: tuple[Path, dict[str, Any]], pictures: list[Image.Image]
) -> None:
    plain = folder_and_case[1]["plain"]
    expected = np.array([[plain(picture, concept) for concept in CONCEPTS] for picture in pictures])
    assert clipseg.channels == ("presence", "mean_probability", "area")
    assert (np.ptp(expected, axis=(0, 1)) > 0.003).all(), "the tiny model tells nothing apart"
    np.testing.assert_allclose(scores(clipseg, pictures, CONCEPTS), expected, atol=1e-5)


def test_neither_batch_nor_order_nor_company_changes_a_cell(clipseg: Any, pictures: list[Image.Image]) -> None:
    together = scores(clipseg, pictures, CONCEPTS)
    alone = np.array([[scores(clipseg, [p], [concept])[0, 0] for concept in CONCEPTS] for p in pictures])
    backwards = scores(clipseg, pictures[::-1], CONCEPTS[::-1])[::-1, ::-1]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together, backwards, atol=1e-6)


def test_pictures_and_concepts_are_encoded_once_each(clipseg: Any, pictures: list[Image.Image]) -> None:
    calls: list[str] = []
    for tower in (clipseg._model.clip.vision_model, clipseg._model.clip.text_model):
        tower.register_forward_hook(lambda module, *_: calls.append(type(module).__name__))
    scores(clipseg, pictures[:3], CONCEPTS)
    assert (calls.count("CLIPSegVisionModel"), calls.count("CLIPSegTextModel")) == (1, 3)


def test_a_concept_that_fills_no_pixel_has_no_area() -> None:
    from beholder.models.dense import read_pixels

    pixels = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.0, 0.9, 0.8, 0.3]])
    np.testing.assert_allclose(read_pixels(pixels), [[0.4, 0.25, 0.0], [0.9, 0.5, 0.5]], atol=1e-7)


def test_a_picture_that_gives_nan_is_told_by_its_position(clipseg: Any, pictures: list[Image.Image]) -> None:
    prepared = [clipseg.prepare(picture) for picture in pictures[:3]]
    prepared[2]["pixel_values"] = np.full_like(prepared[2]["pixel_values"], np.nan)
    with pytest.raises(UnusableScore) as raised:
        clipseg.score_prepared(prepared, ["dog"])
    assert raised.value.positions == (2,)


def test_the_spec_says_how_presence_is_read(clipseg: Any) -> None:
    assert clipseg.spec.settings["presence"] == "sigmoid of the pixel logit, likeliest pixel"
    assert clipseg.spec.settings["text"] == {"form": "{}", "max_length": 77}


def test_the_towers_of_clipseg_without_their_decoder_are_refused_as_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "clipseg", "architectures": ["CLIPSegModel"]}')
    with pytest.raises(ModelError, match="is a CLIPSegModel: the two towers of CLIPSeg without the decoder"):
        load_model(str(tmp_path))
