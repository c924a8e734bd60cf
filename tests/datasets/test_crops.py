"""Parts of files: the box that was asked for, as bright as asked, and an identity of their own in the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beholder.datasets.crops import crop_uri, face_brightness, files_of, grey_values
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.images import open_image
from beholder.errors import BadImage


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
    assert files_of(crop_uri(odd, (0, 0, 4, 4))) == [odd]
    assert open_image(crop_uri(odd, (0, 0, 4, 4))).size == (4, 4)
