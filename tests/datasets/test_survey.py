"""A survey counts every label and sees which pictures look alike."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder.cli.data import checked, report_lines
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image
from beholder.datasets.survey import ALIKE, ALIKE_BITS, Look, look_alikes, look_of, survey
from beholder.glasshouse.world import residents


def test_look_alikes_are_those_of_the_slow_way() -> None:
    rng = np.random.default_rng(5)
    looks = {f"image {i}": look_of(Image.fromarray(rng.integers(0, 255, (24, 24), dtype=np.uint8))) for i in range(40)}
    for i in range(80):  # neighbours at 0 to 9 bits, and small copies more or less alike
        hash_, small = looks[f"image {rng.integers(0, 40 + i)}"]
        flipped = sum(1 << int(bit) for bit in rng.choice(64, rng.integers(0, 10), replace=False))
        noisy = small + rng.normal(0, rng.choice([0.0, 0.01, 0.02]), small.size).astype(np.float32)
        looks[f"image {40 + i}"] = Look(hash_ ^ flipped, noisy / np.linalg.norm(noisy))
    expected: dict[str, str] = {}
    for a, b in combinations(looks, 2):
        bits = bin(looks[a].hash ^ looks[b].hash).count("1")
        if bits <= ALIKE_BITS and sum(x * y for x, y in zip(looks[a].small, looks[b].small, strict=True)) >= ALIKE:
            expected.setdefault(b, a)
    assert len(expected) > 20
    assert look_alikes(looks) == expected


@pytest.mark.slow
def test_a_smaller_copy_looks_like_its_original() -> None:
    people = [open_image(row["uri"]) for row in residents()[:30]]
    small = people[3].resize((150, 150))
    looks = {str(place): look_of(picture) for place, picture in enumerate([*people, small])}
    assert look_alikes(looks).get("30") == "3"


def test_a_survey_counts_labels_crossings_and_damage(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    for i in range(3):
        Image.fromarray(rng.integers(0, 255, (20 + i, 30, 3), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    Image.open(tmp_path / "0.png").save(tmp_path / "3.jpg", quality=90)
    (tmp_path / "4.png").write_bytes(b"nonsense")
    files = ["0.png", "1.png", "2.png", "3.jpg", "4.png"]
    table = pl.DataFrame(
        {
            "image_id": files,
            "uri": [str(tmp_path / file) for file in files],
            "gender": ["woman", "man", None, "woman", "man"],
            "city": ["x", "x", "x", "y", "x"],
            "age": [20.0, None, 40.0, 30.0, 25.0],
        }
    )
    seen = survey(Dataset("own", "1", "own", table))
    assert list(seen.damaged) == ["4.png"]
    assert sorted(seen.sizes) == [(30, 20), (30, 20), (30, 21), (30, 22)]
    assert seen.alike == {"3.jpg": "0.png"}
    assert seen.groups["gender"].rows() == [("man", 2), ("woman", 2), (None, 1)]
    assert seen.numbers["age"] == (20.0, 27.5, 40.0)
    assert {column.name: column.missing for column in seen.columns} == {"gender": 1, "city": 0, "age": 1}
    crossing = {row[:2]: row[2] for row in seen.crossings["gender", "city"].rows()}
    assert crossing == {("man", "x"): 2, ("man", "y"): 0, ("woman", "x"): 1, ("woman", "y"): 1}


def test_transparent_pictures_are_named(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (9, 9), (200, 10, 10, 255))
    clear.putpixel((4, 4), (0, 0, 0, 0))
    for name, picture in {"clear": clear, "opaque": Image.new("RGBA", (9, 9), (10, 200, 10, 255))}.items():
        picture.save(tmp_path / f"{name}.png")
    table = pl.DataFrame(
        {"image_id": ["clear", "opaque"], "uri": [str(tmp_path / f"{n}.png") for n in ("clear", "opaque")]}
    )
    seen = survey(Dataset("two", "1", "none", table))
    assert seen.transparent == ["clear"]
    assert any(
        "1 are transparent (clear)" in line
        for line in report_lines(checked(Dataset("two", "1", "none", table), seen, []))
    )
