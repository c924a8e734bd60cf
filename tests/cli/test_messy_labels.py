"""The messy folder of newcomers: codes, decimal commas, a column of its own name. No false all-clear, exact words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from beholder.cli import app

COUNT = 110
CODES = {"man": ("m", "M", "male", "Herr"), "woman": ("f", "F", "w", "female")}
MAP = ("--map", "gender: m, M, male, Herr = man", "--map", "gender: f, F, w, female = woman", "--map", "gender: ? =")
SAID = (
    "values look alike (male, M, Herr, m; w, F, f, female) and values may stand for no label (?).\n"
    "Map them, for example with --map 'gender: male, M, Herr, m = man' --map 'gender: w, F, f, female = woman' "
    "--map 'gender: ? ='\nOr say that they are meant: --keep-codes"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codes of gender in two languages, ages with decimal commas and one that is none, and scores that differ by gender
    and by nothing else."""
    place, rng = tmp_path_factory.mktemp("messy"), np.random.default_rng(5)
    (place / "bilder").mkdir()
    Image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)).save(place / "bilder" / "0.png")
    rows, scores = ["Foto;gender;clean;Alter;Dosis"], ["image_id,a kind person,a cold person"]
    for i in range(COUNT):
        gender = "man" if rng.random() < 0.5 else "woman"
        code = "divers" if i in (3, 50) else "?" if i == 8 else CODES[gender][rng.integers(4)]
        age = f"{18 + 40 * rng.random():.1f}".replace(".", ",")
        name = f"bilder/{i}.png"
        if i:
            (place / name).hardlink_to(place / "bilder" / "0.png")
        clean = "" if code in ("divers", "?") else gender
        rows.append(f"{name};{code};{clean};{age};{'k.A.' if i % 40 == 2 else i}")
        scores.append(f"{name},{rng.normal(0.35 if gender == 'man' else 0, 0.6):.4f},0")
    (place / "leute.csv").write_text("\n".join(rows) + "\n")
    (place / "prompts.csv").write_text("text\na kind person\na cold person\n")
    (place / "scores").mkdir()
    (place / "scores" / "scores.csv").write_text("\n".join(scores) + "\n")
    (place / "prompts.csv").rename(place / "scores" / "prompts.csv")
    return place


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Result, Path]]:
    """`beholder measure custom` on the folder, with these more words."""

    def asked(*words: str) -> tuple[Result, Path]:
        out = tmp_path_factory.mktemp("runs") / "run"
        told = ["measure", "custom", "--prompts", folder / "scores" / "prompts.csv", "--dataset", f"folder:{folder}"]
        told += ["--scores", folder / "scores" / "scores.csv", "--image-column", "Foto", "--out", out, "--draws", 100]
        return CliRunner().invoke(app, [*map(str, told), "-q", *words], catch_exceptions=False), out

    return asked


def findings(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "findings.json").read_text())["findings"]


@pytest.mark.slow
def test_codes_that_look_alike_are_not_measured_until_they_are_mapped(run: Callable[..., Any]):
    result, out = run("--by", "gender")
    assert result.exit_code == 1
    assert result.stderr == f"custom: by gender nothing was compared: {SAID}\n"
    (found,) = findings(out)
    assert (found["verdict"], found["headline"]) == ("not measured", "By gender nothing was compared")
    assert found["sentence"] == f"{SAID}."
    (recorded,) = json.loads((out / "run.json").read_text())["not_compared"]
    assert recorded["label"] == "gender"
    assert recorded["unclear"]
    page = (out / "report.html").read_text()
    assert "By gender nothing was compared" in page
    assert "values look alike (male, M, Herr, m; w, F, f, female)" in page


@pytest.mark.slow
def test_mapped_they_show_what_the_cleaned_labels_show(run: Callable[..., Any], folder: Path, tmp_path: Path):
    result, out = run("--by", "gender", *MAP)
    clean, cleaned = run("--by", "clean")
    assert (result.exit_code, clean.exit_code) == (0, 0)
    gaps = [
        pl.read_parquet(each / "results.parquet").filter(metric="custom.gap").row(0, named=True)
        for each in (out, cleaned)
    ]
    assert gaps[0]["verdict"] == "difference found"
    assert [gaps[0][name] for name in ("value", "n", "p_value")] == [
        gaps[1][name] for name in ("value", "n", "p_value")
    ]
    notes = json.loads((out / "run.json").read_text())["datasets"][0]["notes"]
    assert notes == [
        "gender is read by the given map (--map): m, M, male, Herr as man; f, F, w, female as woman; ? as no label",
        "gender: 1 of 110 images have no label",
        "gender: groups of fewer than 5 people are not compared: divers 2",
    ]
    table = tmp_path / "map.csv"
    table.write_text("code,group\n" + "".join(f"{c},{g}\n" for g in CODES for c in CODES[g]) + "?,\n")
    _, by_table = run("--by", "gender", "--map", f"gender={table}")
    assert pl.read_parquet(by_table / "results.parquet").equals(pl.read_parquet(out / "results.parquet"))


def test_codes_that_are_meant_are_compared(run: Callable[..., Any]):
    result, out = run("--by", "gender", "--keep-codes")
    assert result.exit_code == 0
    groups = set(pl.read_parquet(out / "results.parquet")["group"].drop_nulls())
    assert {"m", "M", "male", "Herr"} <= groups


@pytest.mark.slow
def test_decimal_commas_are_ages_and_what_is_no_number_is_named(run: Callable[..., Any]):
    result, out = run("--by", "clean,Alter", "--by", "Dosis")
    assert result.exit_code == 1
    assert result.stderr == (
        "custom: by dosis nothing was compared: 107 numbers, and texts that are none: k.A.; leave these empty: "
        "--map 'dosis: k.A. ='\n"
    )
    judged = set(pl.read_parquet(out / "results.parquet").filter(metric="custom.gap")["subset"])
    assert judged == {"clean", "alter"}
    assert "slope" in str(pl.read_parquet(out / "results.parquet").filter(subset="alter")["metric"].to_list())
    allowed, _ = run("--by", "clean", "--by", "Dosis", "--allow-missing")
    assert allowed.exit_code == 0
    unclear, _ = run("--by", "gender", "--allow-missing")
    assert unclear.exit_code == 1  # nobody has said what the codes mean
    read, _ = run("--by", "Dosis", "--map", "dosis: k.A. =")
    assert read.exit_code == 0


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_check_says_it_before_anything_is_scored(folder: Path):
    result = CliRunner().invoke(app, ["data", "check", f"folder:{folder}", "--image-column", "Foto"])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    place = lines.index(
        "gender is not compared: values look alike (male, M, Herr, m; w, F, f, female) and values may stand for no "
        "label (?). To map them, for example:"
    )
    assert lines[place + 1 : place + 5] == [
        "  --map 'gender: male, M, Herr, m = man'",
        "  --map 'gender: w, F, f, female = woman'",
        "  --map 'gender: ? ='",
        "  or, if they are meant as different groups: --keep-codes",
    ]
    assert "  custom      fits: compares by clean, alter" in lines
    mapped = CliRunner().invoke(app, ["data", "check", f"folder:{folder}", "--image-column", "Foto", *MAP, "--json"])
    columns = {each["name"]: each["role"] for each in json.loads(mapped.stdout)["columns"]}
    assert columns == {"gender": "groups", "clean": "groups", "alter": "numbers", "dosis": "ignored"}
