"""`beholder data select`: a balanced sample of any labelled set, and what could not be balanced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import UnknownName, UsageError

GRAS = ("--by", "race", "--by", "age", "--by", "gender", "--keep", "age=20-29,30-39,40-49,50-59,60-69")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Forty women and ten men, half of each old; five people lack an age; everybody has two pictures."""
    rows = [("w", "old" if i % 2 else "young") for i in range(40)] + [
        ("m", "old" if i % 2 else "young") for i in range(10)
    ]
    rows += [("m", "")] * 5
    lines = [f"{i}-{k}.png,person {i},{gender},{age}" for k in range(2) for i, (gender, age) in enumerate(rows)]
    (tmp_path / "people.csv").write_text("\n".join(["image,name,gender,age", *lines]))
    for line in lines:
        (tmp_path / line.partition(",")[0]).write_bytes(b"")
    return f"folder:{tmp_path}"


def test_every_cell_gives_the_same_number_and_everybody_one_picture(invoke: Callable[..., str], folder: str, tmp_path):
    out = tmp_path / "chosen.csv"
    said = invoke("data", "select", folder, "--by", "gender", "--by", "age", "--each", 5, "--out", out)
    chosen = pl.read_csv(out)
    assert chosen.group_by("gender", "age").len()["len"].to_list() == [5] * 4
    assert chosen["name"].n_unique() == 20
    assert "20 of 110 images; 4 cells of 5 images." in said
    assert "10 images lack one of these labels" in said
    assert "Every cell is full." in said


def test_a_cell_with_too_few_gives_all_and_is_listed(invoke: Callable[..., str], folder: str):
    found = json.loads(invoke("data", "select", folder, "--by", "gender", "--by", "age", "--each", 15, "--json"))
    short = {(cell["gender"], cell["age"]): (cell["chosen"], cell["short"]) for cell in found["cells"]}
    assert short == {("w", "old"): (15, 0), ("w", "young"): (15, 0), ("m", "old"): (10, 5), ("m", "young"): (10, 5)}


def test_with_a_count_full_cells_make_up_for_the_others(invoke: Callable[..., str], folder: str):
    found = json.loads(invoke("data", "select", folder, "--by", "gender", "--by", "age", "--count", 60, "--json"))
    assert len(found["images"]) == 60
    assert sorted(cell["chosen"] for cell in found["cells"]) == [10, 10, 20, 20]


def test_a_seed_chooses_the_same_and_another_seed_others(invoke: Callable[..., str], folder: str):
    def draw(seed: int) -> list[str]:
        return json.loads(invoke("data", "select", folder, "--by", "age", "--each", 9, "--seed", seed, "--json"))[
            "images"
        ]

    assert draw(1) == draw(1) != draw(2)


def test_mistakes_are_named(invoke: Callable[..., str], folder: str):
    with pytest.raises(UsageError, match="--each N images of every cell, or --count N"):
        invoke("data", "select", folder, "--by", "age")
    with pytest.raises(UnknownName, match="sex"):
        invoke("data", "select", folder, "--by", "sex", "--each", 2)
    with pytest.raises(UnknownName, match="child"):
        invoke("data", "select", folder, "--by", "age", "--keep", "age=old,child", "--each", 2)
    with pytest.raises(UsageError, match="name has 55 values, which are no groups"):
        invoke("data", "select", folder, "--by", "name", "--each", 2)


@pytest.mark.real
@pytest.mark.slow
def test_gras_cells_come_out_of_fairfaces_labels(invoke: Callable[..., str], data: Path):
    found = json.loads(invoke("data", "select", "fairface", *GRAS, "--each", 51, "--data", data, "--json"))
    published = pl.read_csv(data / "gras" / "selected_images_fairface.csv")
    cells = {tuple(row[:3]): row[3] for row in published.group_by("race", "age", "gender").len().rows()}
    assert {(c["race"], c["age"], c["gender"]): c["chosen"] for c in found["cells"]} == cells
    assert len(found["images"]) == published.height == 3570


def test_a_cell_that_nobody_is_in_is_listed_as_empty(invoke: Callable[..., str], tmp_path: Path):
    (tmp_path / "labels.csv").write_text(
        "image,gender,job\n" + "\n".join(f"{i}.png,{'wm'[i % 2]},{'no'[i % 2]}" for i in range(8))
    )
    for i in range(8):
        (tmp_path / f"{i}.png").write_bytes(b"")
    asked = ("data", "select", f"folder:{tmp_path}", "--by", "gender", "--by", "job", "--by", "gender", "--each", 3)
    found = {(cell["gender"], cell["job"]): cell["short"] for cell in json.loads(invoke(*asked, "--json"))["cells"]}
    assert found == {("w", "n"): 0, ("m", "o"): 0, ("w", "o"): 3, ("m", "n"): 3}
    assert "4 cells of 0 to 3 images" in invoke(*asked)
    assert "Every cell is full" not in invoke(*asked)
