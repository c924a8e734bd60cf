"""Pictures come out RGB and upright, and what is no picture is named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from beholder.core.errors import BadImage, UsageError
from beholder.datasets.images import open_image


def save(path: Path, mode: str = "RGB", **options) -> Path:
    Image.new(mode, (8, 4), 100 if mode in ("L", "I;16") else None).save(path, **options)
    return path


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str):
    path = save(tmp_path / ("x.tif" if mode == "CMYK" else "x.png"), mode)
    assert open_image(str(path)).mode == "RGB"


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path):
    Image.fromarray(np.full((4, 4), 32768, np.uint16)).save(tmp_path / "deep.png")
    assert open_image(str(tmp_path / "deep.png")).getpixel((0, 0)) == (128, 128, 128)


def test_exif_rotation_is_honoured(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    path = save(tmp_path / "turned.jpg", exif=exif)
    assert open_image(str(path)).size == (4, 8)


def test_a_drawn_address_is_drawn():
    from beholder.glasshouse.world import residents

    assert open_image(residents()[0]["uri"]).size == (224, 224)


def truncated(path: Path) -> None:
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(path, format="JPEG")
    path.write_bytes(path.read_bytes()[:600])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_bytes(b""), "0 bytes"),
        (lambda path: path.write_text("hello"), "not an image"),
        (truncated, "damaged"),
    ],
)
def test_what_is_no_picture_is_named_with_the_reason(tmp_path: Path, spoil, reason: str):
    path = tmp_path / "odd <name>.jpg"
    spoil(path)
    with pytest.raises(BadImage, match=reason) as caught:
        open_image(str(path))
    assert str(path) in str(caught.value)


def test_a_bad_drawn_address_is_a_bad_image():
    with pytest.raises(BadImage, match="glasshouse:nonsense"):
        open_image("glasshouse:nonsense")


def test_a_large_picture_is_not_called_damaged_and_the_limit_can_be_raised(tmp_path: Path, monkeypatch):
    path = str(save(tmp_path / "x.png"))
    monkeypatch.setenv("BEHOLDER_MAX_PIXELS", "30")
    with pytest.raises(BadImage, match=r"larger than 30 pixels.*set BEHOLDER_MAX_PIXELS to a higher number"):
        open_image(path)
    monkeypatch.setenv("BEHOLDER_MAX_PIXELS", "32")
    assert open_image(path).size == (8, 4)
    monkeypatch.setenv("BEHOLDER_MAX_PIXELS", "many")
    with pytest.raises(UsageError, match="BEHOLDER_MAX_PIXELS=many: write a whole number"):
        open_image(path)
    monkeypatch.delenv("BEHOLDER_MAX_PIXELS")
    assert open_image(path).size == (8, 4)
    assert 2 * Image.MAX_IMAGE_PIXELS == 178_956_970


def test_avif_is_read_by_pillow_itself(tmp_path: Path):
    if not features.check("avif"):
        pytest.skip("this Pillow reads no AVIF")
    assert open_image(str(save(tmp_path / "x.avif"))).size == (8, 4)


def test_heic_names_the_extra_that_reads_it(tmp_path: Path, monkeypatch):
    path = tmp_path / "IMG_0001.HEIC"
    path.write_bytes(b"\0\0\0\x18ftypheic" + bytes(20))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(BadImage, match=r"a HEIC picture.*pip install 'beholder-audit\[heif\]'"):
        open_image(str(path))


def test_heic_is_read_with_the_extra(tmp_path: Path):
    heif = pytest.importorskip("pillow_heif")
    pixels = np.full((64, 96, 3), 200, np.uint8)
    heif.from_pillow(Image.fromarray(pixels)).save(tmp_path / "x.heic")
    assert open_image(str(tmp_path / "x.heic")).size == (96, 64)
