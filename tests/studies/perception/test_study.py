"""The whole of Perception: what is absent says why, small data give no false intervals, audits run end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from causalface_imitation import imitate
from studies.perception.worlds import OPTIONS, PROMPTS, designed, matrix, measured, noise, one, photographs, rng

from beholder._audit import audit_models
from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder.core.errors import MissingData
from beholder.datasets.dataset import Dataset
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import Dimension, perception_prompts
from beholder.studies.perception.study import PERCEPTION, perception_study


def test_no_table_cell_is_absent_without_a_note(results):
    assert not results.filter(pl.col("value").is_null() & pl.col("note").is_null()).height
    assert not results["value"].drop_nulls().is_nan().any()


def test_a_model_that_answers_something_else_is_found_out():
    images, prompts = photographs(30), PROMPTS
    cells = np.log(np.stack([np.full((30, prompts.height), 0.2), np.full((30, prompts.height), 0.1)], axis=2))
    cells[:, :, 0] += rng(3).normal(0, 0.01, cells.shape[:2])
    sheet = ScoreMatrix("perception", images, prompts, ("log_p_yes", "log_p_no"), cells)
    assert one(measured(sheet), "answer_mass")["value"] == pytest.approx(0.3, abs=0.01)


def test_one_group_only_is_said_and_nothing_fails():
    images = photographs(40, races=("White",)).with_columns(gender=pl.lit("Male"))
    table = measured(matrix(images))
    (row,) = table.filter(pl.col("metric") == "perception.skew").to_dicts()
    assert row["value"] is None
    assert "one group only" in row["note"]
    assert not table.filter(pl.col("metric") == "perception.sc_weat").height


def test_own_dimensions_take_the_place_of_the_studys():
    own = (
        Dimension("open", "open", ("curious", "modern"), "positive", "closed"),
        Dimension("closed", "closed", ("rigid",), "negative", "open"),
    )
    table = measured(matrix(photographs(60), prompts=perception_prompts(own).table), perception_study(own))
    assert set(table.filter(pl.col("metric") == "perception.delta_cosine")["concept"]) == {"open", "closed"}


def lone_group() -> pl.DataFrame:
    race = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("Asian")).otherwise(pl.lit("White"))
    return photographs(60).with_columns(race=race)


@pytest.mark.parametrize(
    "images",
    [photographs(2), photographs(5), photographs(60), lone_group(), designed(1, lighting=0, pose=0)],
    ids=["two images", "five images", "sixty", "a group of one", "one seed"],
)
def test_intervals_hold_their_value_have_a_width_and_stand_with_a_value(images: pl.DataFrame):
    table = measured(matrix(images, noise(images)))
    bounded = table.drop_nulls("low")
    assert bounded.filter(pl.col("value").is_null()).is_empty()
    assert bounded.filter(pl.col("low") > pl.col("value") + 1e-9).is_empty()
    assert bounded.filter(pl.col("high") < pl.col("value") - 1e-9).is_empty()
    assert bounded.filter(pl.col("high") - pl.col("low") < 1e-12).is_empty()
    assert table.filter(pl.col("value").is_null() & pl.col("note").is_null()).is_empty()


def test_scores_that_are_all_alike_give_rows_without_warnings():
    """Warnings are errors here."""
    table = measured(matrix(photographs(60), np.full((60, PROMPTS.height), 0.2)))
    row = table.filter(pl.col("metric") == "perception.narrowing").row(0, named=True)
    assert row["value"] is None
    assert "alike" in row["note"]
    tests = table.filter(pl.col("metric") == "perception.neutral_test")
    assert tests["value"].is_null().all()


@pytest.mark.slow
def test_the_whole_audit_runs_on_a_causalface_of_few_seeds(tmp_path: Path):
    imitate(tmp_path / "causalface", seeds=1)
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path, **vars(OPTIONS))
    run = audit_models(["glasshouse/contrastive"], ["perception"], options)
    assert set(run.results["dataset"]) == {"causalface"}
    assert {"perception.induced_variation", "perception.brightness"} <= set(run.results["metric"])
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_without_any_of_its_data_sets_it_says_how_to_get_one(tmp_path: Path):
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path)
    with pytest.raises(MissingData, match=r"causalface.*is not at"):
        audit_models(["null"], ["perception"], options)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_scores_find_the_data_set_that_they_are_about(tmp_path: Path):
    """FairFace and UTKFace lie in one folder; the ids of the scores say which is meant."""
    (tmp_path / "fairface").mkdir()
    (tmp_path / "fairface" / "fairface_label_val.csv").write_text(
        "file,age,gender,race,service_test\nval/1.jpg,20-29,Male,White,True\n"
    )
    names = [f"{20 + i}_{i % 2}_{i % 3}_2017010915055733{i % 10}.jpg.chip.jpg" for i in range(12)]
    (tmp_path / "utkface").mkdir()
    for name in names:
        (tmp_path / "utkface" / name).touch()
    texts = perception_prompts().texts
    cells = dict(zip(texts, rng(1).normal(0.2, 0.02, (len(texts), 12)), strict=True))
    pl.DataFrame({"image_id": names, **cells}).write_parquet(tmp_path / "scores.parquet")
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path, **vars(OPTIONS))
    run = measure_scores(PERCEPTION, [tmp_path / "scores.parquet"], options, model="mine")
    assert set(run.results["dataset"]) == {"utkface-adults"}


def test_only_the_studys_part_of_fairface_is_asked():
    table = pl.DataFrame(
        {
            "image_id": ["train/1.jpg", "train/2.jpg"],
            "uri": ["a", "b"],
            "split": ["train"] * 2,
            "age": ["20-29", "3-9"],
            "gender": ["Male"] * 2,
            "race": ["East Asian"] * 2,
        }
    )
    (task,) = PERCEPTION.asks.tasks(Dataset("fairface", "", "", table))
    assert task.dataset.table["race"].to_list() == ["Asian"]


def test_compat_asks_of_the_training_part_alone():
    images = photographs(20).with_columns(split=pl.Series(["train", "val"] * 10))
    (task,) = PERCEPTION.tasks_of(answers=False, compat=True)(Dataset("own", "", "", images))
    assert set(task.dataset.table["split"]) == {"train"}
    (task,) = PERCEPTION.tasks_of()(Dataset("own", "", "", images.with_columns(split=pl.lit("val"))))
    assert task.dataset.table.height == 20
