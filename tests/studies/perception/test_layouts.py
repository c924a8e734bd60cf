"""Scores made elsewhere: the authors' own columns, and dimensions in place of words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import OPTIONS, matrix, measured, one, photographs

from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder.core.errors import BadScores
from beholder.studies.perception.chapter import perception_tables
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.prompts import CONTROLS, DIMENSIONS, all_words
from beholder.studies.perception.scores import read_judged
from beholder.studies.perception.study import PERCEPTION


def run(table: pl.DataFrame, images: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """The results of `beholder measure` on a folder of the user's own."""
    (folder / "faces").mkdir()
    images.select(pl.col("image_id").alias("image"), "race", "gender").write_csv(folder / "faces" / "faces.csv")
    for name in images["image_id"]:
        (folder / "faces" / name).touch()
    table.write_parquet(folder / "scores.parquet")
    options = AuditOptions(
        out=folder / "out", store=folder / "store", dataset=f"folder:{folder / 'faces'}", **vars(OPTIONS)
    )
    return measure_scores(PERCEPTION, [folder / "scores.parquet"], options, model="mine").results


@pytest.fixture
def images() -> pl.DataFrame:
    return photographs(90).with_columns(image_id=pl.format("{}.jpg", pl.int_range(pl.len())))


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_authors_columns_give_what_the_prompts_give(images: pl.DataFrame, tmp_path: Path):
    """`cossim_<word>` is the mean over the templates."""
    sheet = matrix(images.select("image_id", "uri", "race", "gender"))
    judged = read_judged(sheet, DIMENSIONS)
    columns = {f"cossim_{word}": judged.cosine[:, judged.words.index(word)] for word in (*all_words(), *CONTROLS)}
    table = pl.DataFrame({"image_id": images["image_id"], **columns, "cossim_neutral": judged.neutral})
    found, expected = run(table, images, tmp_path), measured(sheet)
    for metric in ("delta_cosine", "gap", "sc_weat", "markedness", "ndkl"):
        mine, theirs = (part.filter(metric=f"perception.{metric}") for part in (found, expected))
        np.testing.assert_allclose(mine["value"].to_numpy(), theirs["value"].to_numpy(), atol=1e-9)


@pytest.mark.usefixtures("undrawn")
def test_dimensions_alone_are_ranked_and_nothing_is_said_of_what_needs_the_neutral_prompt(
    images: pl.DataFrame, tmp_path: Path
):
    judged = read_judged(matrix(images.select("image_id", "uri", "race", "gender")), DIMENSIONS)
    columns = dict(zip(judged.names(), judged.by_dimension(judged.cosine).T, strict=True))
    results = run(pl.DataFrame({"image_id": images["image_id"], **columns}), images, tmp_path)
    measures = {name.removeprefix("perception.") for name in results["metric"]}
    assert measures == {"cosine", "mean_cosine", "sc_weat", "skew", "max_skew", "ndkl"}
    assert one(results, "cosine", subset="race", group="Asian", concept="warmth")["value"] == pytest.approx(
        columns["warmth"][(images["race"] == "Asian").to_numpy()].mean()
    )
    assert perception_findings(results)[0].headline == "The scores have no neutral prompt"
    assert [table.title for table in perception_tables(results)] == ["Conventional bias metrics"]


@pytest.mark.usefixtures("undrawn")
def test_columns_that_fit_no_layout_are_refused_by_the_studys_own_prompts(images: pl.DataFrame, tmp_path: Path):
    with pytest.raises(BadScores, match="A photo of a person"):
        run(pl.DataFrame({"image_id": images["image_id"], "happiness": 0.1}), images, tmp_path)


@pytest.mark.real
@pytest.mark.usefixtures("undrawn")
def test_the_golden_dimension_cosines_have_the_golden_effect_sizes(shared: Path, tmp_path: Path):
    table = pl.read_parquet(shared / "golden" / "perception" / "dimension_cosines.parquet")
    expected = json.loads((shared / "golden" / "perception" / "expected.json").read_text())
    (tmp_path / "faces").mkdir()
    key = next(key for key in expected if key.startswith("scweat|white-black|warmth"))
    count = int(key.split("|")[3].split()[1])
    kept = pl.concat([table.filter(race=race).head(count) for race in ("white", "black")])
    kept = kept.with_columns(pl.format("{}.jpg", "image_id").alias("image_id"))
    (tmp_path / "faces").rmdir()
    results = run(kept.drop("race", "gender"), kept, tmp_path)
    row = one(results, "sc_weat", group="white", against="black", concept="warmth")
    assert row["value"] == pytest.approx(expected[key]["effect_ddof1"], abs=1e-7)
