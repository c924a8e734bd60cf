"""A folder as people really have them, walked through from the first look to the report."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from beholder.cli import app

COUNT = 40


def name(i: int) -> str:
    """As the table spells it; the files are spelled otherwise."""
    return f"Müller Foto {i:02}.jpg"


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """Upper-case endings, blanks and decomposed letters in names, semicolons, a BOM, CRLF, capitalised columns,
    numbers as groups, a label that is missing, a file that is missing, one that is cut off, and a copy."""
    folder, rng = tmp_path / "Our people", np.random.default_rng(4)
    folder.mkdir()
    rows = ["Image ;Gender;Age;Skin Tone;Photographer"]
    for i in range(COUNT):
        path = folder / unicodedata.normalize("NFD", name(i)).replace(".jpg", ".JPG")
        low = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(low).resize((48, 48)).save(path, "JPEG")
        rows.append(f"{name(i)};{'Woman' if i % 2 else 'Man'};{18 + i};{'' if i == 5 else i % 3};Ann")
    files = sorted(folder.iterdir())
    files[3].unlink()
    files[8].write_bytes(files[8].read_bytes()[:300])
    files[20].write_bytes(files[10].read_bytes())
    (folder / "people.csv").write_bytes("\r\n".join([*rows, ";;;;", ""]).encode("utf-8-sig"))
    return folder


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_check_says_what_was_understood(messy: Path, run: Callable[..., Result]):
    result = run("data", "check", f"folder:{messy}")
    assert result.exit_code == 1
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0] == "folder:Our people: 40 images, 1 row without a picture, 1 cannot be read."
    assert lines[1] == f"{name(3)}: the file does not exist"
    assert lines[2].startswith(f"{name(8)}: damaged: ")
    assert lines[3].startswith("note: 39 names are spelled otherwise than their files, such as 'Müller Foto 00.jpg'")
    for told in (
        "gender        groups   Man 20, Woman 20",
        "age           numbers  18 to 57, median 37.5; five bins, or your own: --bins age=EDGE,EDGE",
        "skin_tone     groups   0 14, 1 13, 2 12; missing for 1",
        "photographer  ignored  every image has the same value",
        "gender × skin_tone: 6 cells of 5 to 7 images; the fewest: Woman × 2",
        "Müller Foto 20.jpg looks like Müller Foto 10.jpg",
        "apa         does not fit: folder:Our people has no attribute 'branch' that is known, and declares no people "
        "to ask about.",
        "custom      fits: compares by gender, age, skin_tone",
    ):
        assert told in lines
    assert any(line.startswith("custom.gap by gender: 0.") and line.endswith("(40 images)") for line in lines)


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_check_is_also_json(messy: Path, run: Callable[..., Result]):
    found: dict[str, Any] = json.loads(run("data", "check", f"folder:{messy}", "--json").stdout)
    assert list(found["unreadable"]) == [name(3), name(8)]
    assert found["look_alikes"] == {name(20): name(10)}
    assert found["groups"]["gender"] == {"Man": 20, "Woman": 20}
    assert [column["role"] for column in found["columns"]] == ["groups", "numbers", "groups", "ignored"]
    fits = {each["study"]: each["fits"] for each in found["studies"]}
    assert not any(fits[name] for name in ("apa", "pfi", "pairs", "disparity"))
    assert all(fits[name] for name in ("gras", "perception", "custom"))


def test_an_audit_names_all_bad_images_and_goes_on_without_them(
    messy: Path, run: Callable[..., Result], refused: Callable[..., str], undrawn: list[Any], tmp_path: Path
):
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("Text;Concept\na warm person;warm\na cold person;cold\n")
    out = tmp_path / "run"
    by = ["--by", "Gender", "--by", "age", "--by", "Skin tone", "--bins", "Age=18,30,45"]
    asked = ["audit", "null", "--dataset", f"folder:{messy}", "--prompts", prompts, *by, "--out", out]
    asked += ["--store", tmp_path / "store", "--draws", 100, "-q"]
    message = refused(*map(str, asked))
    assert message.startswith("DataError: 2 of 40 images cannot be read:")
    assert message.count("Müller Foto") + message.count(unicodedata.normalize("NFD", "Müller Foto")) == 2
    assert message.rstrip().endswith("continue without them: --skip-bad-images.")
    result = run(*asked, "--skip-bad-images")
    assert result.exit_code == 0
    results = pl.read_parquet(out / "results.parquet")
    groups = {key[0]: set(part["group"]) for key, part in results.drop_nulls("subset").group_by("subset")}
    assert {"Man", "Woman"} <= groups["gender"]
    assert {"18–29", "30–44", "45 and over"} <= groups["age"]
    assert {"0", "1", "2"} <= groups["skin_tone"]
    assert results.filter(metric="custom.gap", subset="gender")["n"].unique().to_list() == [38]


ODD = "folder:odd: images that are copies of another: 1 (they make intervals too narrow)"
NO_ROW = "pictures without a row in the table: 2, such as later.png"


@pytest.fixture
def odd(people: Callable[..., Path]) -> Path:
    """A copy, two pictures that no row names, one of a single pixel, one that is transparent."""
    folder = people(24, "odd")
    pixels = Image.open(folder / "00004.png").copy()
    (folder / "00001.png").write_bytes((folder / "00000.png").read_bytes())
    Image.new("RGB", (1, 1)).save(folder / "00002.png")
    for name in ("later.png", "new.png"):
        pixels.save(folder / name)
    pixels.putalpha(90)
    pixels.save(folder / "00003.png")
    return folder


@pytest.mark.usefixtures("quick_plans")
def test_odd_pictures_are_counted_and_said(
    odd: Path, run: Callable[..., Result], undrawn: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BEHOLDER_STORE", str(tmp_path / "store"))
    lines = [line.strip() for line in run("data", "check", odd).stdout.splitlines()]
    assert lines[:3] == [
        "folder:odd: 24 images, 1 cannot be read.",
        "00002.png: one pixel, which shows nothing",
        "1 are transparent (00003.png): models see white there, open_clip the hidden colour",
    ]
    assert f"note: {NO_ROW}" in lines
    assert "00001.png looks like 00000.png" in lines
    (tmp_path / "prompts.csv").write_text("text\na warm person\na cold person\n")
    asked = ("audit", "null", "--dataset", odd, "--prompts", tmp_path / "prompts.csv", "--by", "gender", "--draws", 100)
    said = run(*asked, "--skip-bad-images", "--out", tmp_path / "run").stdout
    for line in (ODD, f"folder:odd: {NO_ROW}", "1 image could not be read"):
        assert line in " ".join(said.split()), said
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["notes"] == [ODD]
    assert NO_ROW in record["datasets"][0]["notes"]


def test_one_prompt_alone_is_not_measured(
    people: Callable[..., Path], run: Callable[..., Result], undrawn: list[Any], tmp_path: Path
):
    """Its share of belief is always 100 %, which would read as no difference."""
    (tmp_path / "one.csv").write_text("text\na warm person\n")
    asked = (
        "audit",
        "null",
        "--dataset",
        people(),
        "--prompts",
        tmp_path / "one.csv",
        "--by",
        "gender",
        "--draws",
        100,
    )
    result = run(*asked, "--store", tmp_path / "store", "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert (
        "by gender nothing was compared: 'a warm person' is the only prompt of its level, and its share is always "
        "100 %: add prompts that compete with it"
    ) in " ".join(result.stderr.split())
