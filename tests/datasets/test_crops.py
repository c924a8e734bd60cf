"""Parts of files: the box that was asked for, as bright as asked, and an identity of their own in the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import BadImage
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.images import GREY, brightened, crop_uri, face_brightness, files_of, grey_values, open_image


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(1).integers(0, 200, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    return tmp_path / "one.png"


def test_a_crop_is_that_box_of_the_file(picture: Path):
    found = open_image(crop_uri(picture, (10, 5, 50, 45)))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(Image.open(picture))[5:45, 10:50])


def test_brightness_is_matched_to_the_other_file(picture: Path, tmp_path: Path):
    dark = tmp_path / "dark.png"
    Image.fromarray((np.asarray(Image.open(picture)) // 3).astype(np.uint8)).save(dark)
    found = open_image(crop_uri(dark, (0, 0, 60, 60), match=picture))
    wanted = face_brightness(Image.open(picture).crop((0, 0, 60, 60)))
    assert face_brightness(found) == pytest.approx(wanted, rel=0.01)


def test_the_face_is_the_middle_ellipse_of_the_picture():
    """Half axes 0.35 of the width and 0.45 of the height, pixel by pixel."""
    pixels = np.random.default_rng(2).integers(0, 256, (20, 31), dtype=np.uint8)
    inside = [
        float(pixels[down, across])
        for down in range(20)
        for across in range(31)
        if ((across - 15) / (0.35 * 31)) ** 2 + ((down - 9.5) / (0.45 * 20)) ** 2 <= 1
    ]
    found = face_brightness(Image.fromarray(np.stack([pixels] * 3, axis=-1)))
    assert found == pytest.approx(sum(inside) / len(inside) * sum(GREY))


def test_a_black_face_is_left_as_it_is():
    black = Image.new("RGB", (9, 9))
    assert brightened(black, 100.0).tobytes() == black.tobytes()


def test_grey_is_the_studys_mixture():
    grey = grey_values(Image.new("RGB", (1, 1), (100, 50, 200)))
    assert grey[0, 0] == pytest.approx(0.2989 * 100 + 0.5870 * 50 + 0.1140 * 200)


def test_crops_of_one_file_are_kept_apart_in_the_store_and_equal_ones_together(picture: Path, tmp_path: Path):
    copy = tmp_path / "copy.png"
    copy.write_bytes(picture.read_bytes())
    boxes = [(0, 0, 20, 20), (1, 0, 21, 20)]
    uris = [*(crop_uri(picture, box) for box in boxes), crop_uri(copy, boxes[0]), str(picture)]
    first, second, again, whole = ImageDigests(tmp_path / "memory").of(uris)
    assert first == again
    assert len({first, second, whole}) == 3


def test_a_crop_of_a_file_that_is_not_there_has_no_digest_and_says_so(tmp_path: Path):
    uri = crop_uri(tmp_path / "none.png", (0, 0, 5, 5))
    assert ImageDigests(tmp_path / "memory").of([uri]) == [None]
    with pytest.raises(BadImage, match=r"none\.png"):
        open_image(uri)


def test_names_with_quotes_and_braces_are_only_names(tmp_path: Path):
    odd = tmp_path / 'a "b" {c}.png'
    Image.new("RGB", (9, 9)).save(odd)
    assert files_of(crop_uri(odd, (0, 0, 4, 4))) == [str(odd)]
    assert open_image(crop_uri(odd, (0, 0, 4, 4))).size == (4, 4)
