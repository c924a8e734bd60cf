"""A plan says what a data set can show, before anything is scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.plan import PlanOptions, fitting_studies, plan
from beholder.core.errors import UnknownName, UsageError
from beholder.core.results import Row, results_table
from beholder.datasets import load_dataset
from beholder.studies.public_figures.measures import OCCUPATIONS


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_embedded_world_is_planned_for_gras():
    rows = plan("gras", PlanOptions(effect=0.1))
    gender = rows.filter(metric="plan.detectable", concept="gender").row(0, named=True)
    assert gender["note"].startswith("2 groups of 60 people: ")
    needed = rows.filter(metric="plan.images_needed", concept="gender")["value"].item()
    assert needed == pytest.approx(gender["n"] * (gender["value"] / 0.1) ** 2, abs=1)


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_more_power_asks_for_a_larger_effect():
    low, high = (plan("gras", PlanOptions(power=power))["value"].to_list() for power in (0.5, 0.95))
    assert all(a < b for a, b in zip(low, high, strict=True))


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_an_earlier_run_lends_its_spread():
    counts = plan("apa", PlanOptions())
    pool = counts["concept"][0]
    place = {"subset": pool, "group": "man", "concept": OCCUPATIONS[pool]}
    row = Row("apa.occupation_probability", 0.6, 30, "probability", low=0.595, high=0.605, **place)
    run = results_table([row], study="apa", model="m", dataset="glasshouse")
    found = plan("apa", PlanOptions(results=run)).filter(concept=pool).row(0, named=True)
    assert found["value"] < 0.05 < counts["value"][0]
    assert "mean and spread from the run" in found["note"]


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_a_run_over_few_images_lends_the_spread_that_its_intervals_were_made_of():
    """Student's margin of five values with a spread of 0.2 is read back as 0.2."""
    margin = stats.t.ppf(0.975, 4) * 0.2 / np.sqrt(5)
    row = Row("gras.trait_mean", 0.5, 5, "probability", subset="gender", low=0.5 - margin, high=0.5 + margin)
    run = results_table([row] * 100, study="gras", model="m", dataset="glasshouse-faces")
    assumed, lent = (
        plan("gras", PlanOptions(results=each)).filter(concept="gender")["value"].item() for each in (None, run)
    )
    assert lent == pytest.approx(assumed, rel=0.05)  # what is assumed without a run is 0.2 as well


def test_an_unknown_study_is_refused():
    with pytest.raises(UnknownName, match="Beholder has no study 'grass'"):
        plan("grass", PlanOptions())


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_command_prints_a_table():
    done = CliRunner().invoke(app, ["plan", "apa", "--json"], catch_exceptions=False)
    assert {row["metric"] for row in json.loads(done.stdout)} == {"plan.detectable"}


def test_a_pool_too_small_for_any_ratio_says_so(tmp_path: Path):
    """Two women and two men: no b is low enough, and nothing is not a detectable 1."""
    rows = (f"{i}.jpg,doctors,{'woman' if i % 2 else 'man'},doctor,doctor|judge\n" for i in range(4))
    table = "image_id,branch,gender,occupation,occupations\n" + "".join(rows)
    (tmp_path / "people.csv").write_text(table)
    rows = plan("apa", PlanOptions(dataset=f"folder:{tmp_path}", effect=0.2))
    (found,) = rows.to_dicts()
    assert found["value"] is None
    assert found["note"].partition(": ")[2].startswith("no b is low enough")


@pytest.mark.slow
def test_a_plan_counts_the_images_that_are_there(people: Callable[..., Path]):
    folder = people(24)
    options = PlanOptions(dataset=f"folder:{folder}")
    assert plan("custom", options)["n"].to_list() == [24]
    for name in ("00000", "00001"):
        (folder / f"{name}.png").unlink()
    (row,) = plan("custom", options).to_dicts()
    assert (row["n"], row["concept"], row["note"].partition(":")[0]) == (22, "gender", "2 groups of 11 people")
    assert 0.1 < row["value"] < 0.25  # everybody is shown as both, and compared with themselves
    (apart,) = plan("custom", PlanOptions(dataset=f"folder:{folder}", person="image_id"))["value"]
    assert 0.35 < apart < 0.5
    for path in folder.glob("*.png"):
        path.unlink()
    (row,) = plan("custom", options).to_dicts()
    assert row["n"] == 24
    assert row["note"].endswith("none of these images is there: counted in the table")


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (4, 30)])
def test_groups_of_fewer_than_five_people_are_too_little_data(sizes: tuple[int, int], tmp_path: Path):
    rows = [f"{i}.jpg,{'woman' if i < sizes[0] else 'man'}" for i in range(sum(sizes))]
    (tmp_path / "people.csv").write_text("\n".join(["image_id,gender", *rows]))
    (row,) = plan("custom", PlanOptions(dataset=f"folder:{tmp_path}", effect=0.1)).to_dicts()
    assert (row["value"], row["verdict"]) == (None, "too little data")
    assert "two groups of at least 5 people are needed" in row["note"]


@pytest.mark.slow
def test_pictures_of_one_person_count_little_more_than_one(tmp_path: Path):
    people = [f"{i}.jpg,{i // 4},{'woman' if i // 4 % 2 else 'man'}" for i in range(160)]
    (tmp_path / "people.csv").write_text("\n".join(["image_id,person,gender", *people]))
    (four,) = plan("custom", PlanOptions(dataset=f"folder:{tmp_path}"))["value"]
    (one,) = plan("custom", PlanOptions(dataset=f"folder:{tmp_path}", person="image_id"))["value"]
    assert four > 1.6 * one


def test_own_prompts_are_planned_on_named_data():
    with pytest.raises(UsageError, match="custom has no data of its own: add --dataset"):
        plan("custom", PlanOptions())


def test_data_without_groups_are_refused_with_the_reason(tmp_path: Path):
    (tmp_path / "people.csv").write_text("image_id\n0.jpg\n1.jpg")
    with pytest.raises(UsageError, match="it compares people by an attribute, and the columns are: none"):
        plan("custom", PlanOptions(dataset=f"folder:{tmp_path}"))


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_each_study_says_why_it_does_not_fit(people: Callable[..., Path]):
    folder = people(24)
    fits = {each.study: each for each in fitting_studies(load_dataset(f"folder:{folder}"))}
    assert {name for name, each in fits.items() if each.fits} == {"gras", "perception", "classics", "custom"}
    assert fits["apa"].why.startswith("to compare people it needs other columns than these: ")
    assert fits["disparity"].why.startswith("folder:people does not say what its images show")
    (folder / "people.csv").write_text("image,city\n" + "".join(f"{i:05}.png,{i % 2}\n" for i in range(24)))
    fits = {each.study: each for each in fitting_studies(load_dataset(f"folder:{folder}"))}
    assert fits["gras"].why == "it compares people by gender or race or age or skin_tone, and the columns are: city"
    assert fits["custom"].why == "compares by city"


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.real
def test_a_plan_names_the_studies_own_metric(data: Path):
    assert set(plan("pfi", PlanOptions(data=data))["subset"]) == {"pfi.bias_ratio"}


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.real
def test_the_studies_own_data_are_planned(data: Path):
    apa = plan("apa", PlanOptions(data=data))
    assert set(apa["subset"]) == {"apa.bias_ratio"}
    sizes = [note.partition(":")[0] for note in apa["note"]]
    assert sizes == ["40 women, 60 men", "183 women, 453 men", "30 women, 78 men"]
    gras = plan("gras", PlanOptions(data=data, effect=0.05))
    ages = gras.filter(metric="plan.detectable", concept="age")["note"].item()
    assert ages.startswith("5 groups of 319 to 356 people: ")  # of AI-Face, which has the skin tones, no image is there
    assert gras.filter(metric="plan.images_needed").height == 3


def test_own_prompts_are_planned_by_the_labels_that_were_asked_for(people: Callable[..., Path], tmp_path: Path):
    folder = people(60)
    table = (folder / "people.csv").read_text().replace("woman", "w", 20).replace("image,", "Foto,")
    (folder / "people.csv").write_text(table)
    for count in (2, 40):
        texts = "\n".join(["text", *(f"a person of kind {number}" for number in range(count))])
        (tmp_path / f"{count}.csv").write_text(texts + "\n")
    asked = ["plan", "--dataset", str(folder), "--image-column", "Foto", "--by", "gender", "--json", "--prompts"]

    def planned(count: int, *more: str) -> Any:
        done = CliRunner().invoke(app, [*asked, str(tmp_path / f"{count}.csv"), *more], catch_exceptions=False)
        return json.loads(done.stdout), done.stderr

    mapped = ("--map", "gender: w = woman")
    ((few,), _), ((many,), _) = planned(2, *mapped), planned(40, *mapped)
    assert few["value"] < many["value"]
    assert few["note"].startswith("2 groups of 30 people: one of 2 prompts")
    with pytest.raises(UsageError, match="cannot be planned"):
        planned(2)


def test_a_plan_says_which_labels_it_leaves_out(people: Callable[..., Path], capsys: pytest.CaptureFixture[str]):
    folder = people(60)
    table = (folder / "people.csv").read_text().replace("image,", "image,age,").replace(".png,", ".png,30,")
    (folder / "people.csv").write_text(table.replace("woman", "w", 20).replace("png,30,person 1", "png,31,person 1"))
    plan("custom", PlanOptions(dataset=str(folder)))
    said = " ".join(capsys.readouterr().err.split())
    assert "custom: gender is not compared: values look alike (w, woman)" in said
