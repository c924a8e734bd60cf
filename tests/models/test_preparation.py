"""Cutting by Pillow and arithmetic on the device give what the checkpoint's own processor gives, or are not used."""

from __future__ import annotations

import io
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.datasets.images import open_image
from beholder.models.preparation import (
    Arithmetic,
    Cut,
    Split,
    by_processor,
    fixed_shape,
    probes,
    processor_split,
    proven,
)

transformers = pytest.importorskip("transformers")
CLIP: dict[str, Any] = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("CLIPImageProcessorPil", CLIP),
        ("CLIPImageProcessorPil", {**CLIP, "crop_size": {"height": 48, "width": 40}}),
        ("SiglipImageProcessorPil", {"size": {"height": 24, "width": 32}}),
        ("ChineseCLIPImageProcessorPil", {"image_mean": [0.1, 0.2, 0.3]}),
    ],
)
def test_known_processors_are_split_and_give_the_same_bits(name: str, settings: dict[str, Any]):
    own = partial(by_processor, getattr(transformers, name)(**settings))
    split = proven(processor_split(own.args[0].to_dict()), own)
    assert split is not None
    picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (77, 131, 3), dtype=np.uint8))
    np.testing.assert_array_equal(split.arithmetic(split.cut(picture)[None])[0], own(picture))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("EfficientNetImageProcessorPil", {}),  # ALIGN's: it shifts the values as well
        ("CLIPImageProcessorPil", {**CLIP, "do_center_crop": False}),
        ("CLIPImageProcessorPil", {**CLIP, "do_normalize": False}),
    ],
)
def test_other_processors_are_not_split(name: str, settings: dict[str, Any]):
    own = partial(by_processor, getattr(transformers, name)(**settings))
    assert proven(processor_split(own.args[0].to_dict()), own) is None


def test_a_split_that_is_off_by_a_hair_is_refused():
    own = partial(by_processor, transformers.CLIPImageProcessorPil(**CLIP))
    split = processor_split(own.args[0].to_dict())
    assert split is not None
    cut, (divisor, mean, deviation) = split.cut, vars(split.arithmetic).values()
    assert proven(Split(cut, Arithmetic(divisor, tuple(m + 1e-6 for m in mean), deviation)), own) is None
    assert proven(Split(Cut(32, Image.Resampling.BILINEAR, (32, 32)), split.arithmetic), own) is None


def test_the_crop_is_that_of_numpy_slices():
    pixels = np.random.default_rng(5).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    cut = Cut((9, 13), Image.Resampling.NEAREST, (4, 6))
    np.testing.assert_array_equal(cut(Image.fromarray(pixels)), pixels[2:6, 3:9])
    padded = Cut((9, 13), Image.Resampling.NEAREST, (9, 16))(Image.fromarray(pixels))
    np.testing.assert_array_equal(padded[:, 2:15], pixels)
    assert not padded[:, :2].any()
    assert not padded[:, 15:].any()


def test_only_one_shape_can_be_shared():
    assert fixed_shape(Cut(8, Image.Resampling.BICUBIC, (8, 6))) == ((8, 6, 3), np.uint8)
    assert fixed_shape(Cut(8, Image.Resampling.BICUBIC)) is None


def test_a_processor_travels_to_a_worker():
    own = partial(by_processor, transformers.CLIPImageProcessorPil(**CLIP))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own))(probes()[0]), own(probes()[0]))


@pytest.fixture(scope="module")
def transparent(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A picture in RGBA, grey with alpha and a palette with a transparent colour, as files."""
    folder, rng = tmp_path_factory.mktemp("transparent"), np.random.default_rng(9)
    whole = Image.fromarray(rng.integers(0, 256, (60, 45, 4), dtype=np.uint8))
    palette = whole.convert("RGB").quantize(20)
    for name, picture in {"rgba": whole, "grey": whole.convert("LA")}.items():
        picture.save(folder / f"{name}.png")
    palette.save(folder / "palette.png", transparency=3)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("name", ["CLIPImageProcessorPil", "Qwen2VLImageProcessorPil", "SiglipImageProcessorPil"])
def test_a_transparent_picture_is_what_the_models_own_processor_makes_of_it(name: str, transparent: list[Path]):
    own = getattr(transformers, name)(**{"size": {"height": 32, "width": 32}} if name.startswith("Siglip") else {})
    for path in transparent:
        theirs = own(images=Image.open(path), return_tensors="np")["pixel_values"]
        ours = own(images=open_image(str(path)), return_tensors="np")["pixel_values"]
        np.testing.assert_array_equal(ours, theirs)
        if split := processor_split(own.to_dict()):
            for picture in (open_image(str(path)), Image.open(path)):
                np.testing.assert_array_equal(split.arithmetic(split.cut(picture)[None]), theirs)


def test_what_lies_beneath_a_transparent_pixel_is_kept_only_where_it_is_asked_for(transparent: list[Path]):
    assert [open_image(str(path), alpha=True).mode for path in transparent] == ["LA", "P", "RGBA"]
    assert {open_image(str(path)).mode for path in transparent} == {"RGB"}
    opaque = Image.open(transparent[2])
    opaque.putalpha(255)
    buffer = io.BytesIO()
    opaque.save(buffer, "PNG")
    assert open_image("opaque.png", buffer.getvalue(), alpha=True).mode == "RGB"
