"""Gaps of own prompts: planted differences are found, noise says nothing, numbers get slopes and bins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder._run import load_run
from beholder.cli import app
from beholder.comparison.family import DIFFERENCE
from beholder.comparison.groups import REST
from beholder.core.errors import UnknownName
from beholder.core.results import Row
from beholder.metrics.group_tests import DIFFERENCE as DIFFERENT
from beholder.metrics.group_tests import EQUIVALENT
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import METRICS, custom_study
from beholder.studies.study import MeasureOptions

N = 240


def people(**columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    ids = [str(i) for i in range(N)]
    labels = {"gender": rng.choice(["woman", "man"], N), "tone": rng.integers(1, 5, N), "age": rng.integers(1, 90, N)}
    return pl.DataFrame({"image_id": ids, "uri": ids, **labels, **columns})


def rows_of(images: pl.DataFrame, logits: np.ndarray, *by: str, **options: Any) -> list[Row]:
    texts = [f"prompt {i}" for i in range(logits.shape[1])]
    prompts = prompt_set("made", [{"text": text, "level": "all", "concept": text} for text in texts])
    matrix = ScoreMatrix("custom", images, prompts.table, ("score",), logits[:, :, None])
    (measure,) = custom_study(prompts, by=by).measures.functions
    return list(measure({"custom": matrix}, MeasureOptions(draws=100, **options)))


def shown(row: Row) -> bool:
    return row.verdict == DIFFERENCE


def of(rows: list[Row], metric: str) -> list[Row]:
    return [row for row in rows if row.metric == f"custom.{metric}" and row.variant is None]


def logits(seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, 4))


def test_a_planted_gap_is_found_and_is_the_difference_of_the_means():
    images, cells = people(), logits()
    cells[:, 0] += 1.5 * (images["gender"] == "woman").to_numpy()
    rows = rows_of(images, cells, "gender")
    gap = next(row for row in of(rows, "gap") if row.concept == "prompt 0")
    means = {row.group: row.value for row in of(rows, "probability") if row.concept == "prompt 0"}
    assert (gap.group, gap.against) == ("woman", "man")
    assert gap.value == pytest.approx(means["woman"] - means["man"])
    assert shown(gap)
    assert gap.n == N
    assert all(row.chance == 0.25 for row in of(rows, "probability"))


def test_with_more_groups_each_is_also_compared_with_everyone_else():
    images, cells = people(), logits()
    cells[:, 1] += 2.0 * (images["tone"] == 3).to_numpy()
    rows = [row for row in of(rows_of(images, cells, "tone"), "gap") if row.concept == "prompt 1"]
    assert [(row.group, row.against) for row in rows[1:]] == [(str(tone), REST) for tone in range(1, 5)]
    assert rows[0].group == "3"
    assert [row.group for row in rows[1:] if shown(row) and row.value > 0] == ["3"]
    share = np.exp(cells) / np.exp(cells).sum(axis=1, keepdims=True)
    third = (images["tone"] == 3).to_numpy()
    assert rows[3].value == pytest.approx(share[third, 1].mean() - share[~third, 1].mean())


def test_numbers_get_a_slope_and_bins_that_are_named():
    images, cells = people(), logits()
    cells[:, 0] += 0.04 * images["age"].to_numpy()
    rows = rows_of(images, cells, "age")
    groups = list(dict.fromkeys(row.group for row in of(rows, "probability") if row.group))
    assert len(groups) == 5
    assert groups[0].startswith("1–")
    assert groups[-1].endswith("and over")
    slope = next(row for row in of(rows, "slope") if row.concept == "prompt 0")
    share = np.exp(cells[:, 0]) / np.exp(cells).sum(axis=1)
    assert slope.value == pytest.approx(np.polyfit(images["age"].to_numpy(), share, 1)[0])
    assert shown(slope)
    assert slope.low > 0


def test_few_numbers_are_groups_and_words_have_no_slope():
    rows = rows_of(people(), logits(), "tone", "gender")
    assert [row.group for row in of(rows, "probability") if row.subset == "tone"][::4] == ["1", "2", "3", "4"]
    assert {row.subset for row in of(rows, "slope")} == {"tone"}


def test_an_intersection_beyond_its_attributes_is_found_and_their_sum_is_not():
    images, cells = people(), logits()
    woman, dark = (images["gender"] == "woman").to_numpy(), (images["tone"] == 4).to_numpy()
    cells[:, 0] += 3.0 * (woman & dark)
    rows = rows_of(images, cells, "gender", "tone")
    assert ("woman × 4", "prompt 0") in {(row.group, row.concept) for row in of(rows, "interaction") if shown(row)}
    cells = logits() * 0.2
    cells[:, 0] += 0.5 * woman + 0.5 * dark
    assert not any(map(shown, of(rows_of(images, cells, "gender", "tone"), "interaction")))


def test_delta_says_which_prompts_are_alike_and_which_differ():
    images, cells = people(), 0.3 * logits()
    cells[:, 0] += 2.0 * (images["gender"] == "woman").to_numpy()
    verdicts = {row.concept: row.equivalence for row in of(rows_of(images, cells, "gender", delta=0.2), "equivalence")}
    assert verdicts["prompt 0"] == DIFFERENT
    assert not of(rows_of(images, cells, "gender"), "equivalence")
    alike = of(rows_of(images, 0.3 * logits(), "gender", delta=0.2), "equivalence")
    assert {row.equivalence for row in alike} == {EQUIVALENT}


def test_groups_of_fewer_than_five_people_are_not_compared():
    images = people(gender=["woman"] * 4 + ["man"] * (N - 8) + ["other"] * 4)
    rows = rows_of(images, logits(), "gender")
    assert not of(rows, "gap")
    assert {row.group for row in of(rows, "probability")} == {None, "woman", "man", "other"}


def test_no_interval_leaves_the_possible_range():
    images = people(gender=["woman"] * 5 + ["man"] * 5 + [None] * (N - 10))
    rows = rows_of(images, 8 * logits(), "gender", "age")
    assert of(rows, "gap")
    for row in (*of(rows, "gap"), *of(rows, "interaction"), *of(rows, "slope")):
        assert row.low is None or -1 <= row.low <= row.high <= 1


def test_pictures_of_one_person_count_together():
    images = people(
        person=[str(i // 12) for i in range(N)], gender=["woman" if i // 12 % 2 else "man" for i in range(N)]
    )
    cells = np.repeat(np.random.default_rng(3).normal(size=(20, 3)), 12, axis=0)
    together, apart = (of(rows_of(table, cells, "gender"), "gap") for table in (images, images.drop("person")))
    for one, other in zip(together, apart, strict=True):
        assert one.value == other.value
        assert one.high - one.low > 2 * (other.high - other.low)


@pytest.mark.parametrize("each", [5, 10, 30])
def test_a_model_without_any_doubt_that_divides_people_by_gender_is_found(each: int):
    """30 women who are all receptionists and 30 men who are all politicians, by a model without variance."""
    woman = np.arange(2 * each) < each
    images = people(gender=None).head(2 * each).with_columns(gender=pl.Series(np.where(woman, "woman", "man")))
    gaps = of(rows_of(images, np.where(woman[:, None], [5.0, -5.0], [-5.0, 5.0]), "gender"), "gap")
    assert all(map(shown, gaps))
    assert [round(row.value, 3) for row in gaps] == [1.0, 1.0]
    assert all(0 < row.low < row.value <= row.high <= 1 for row in gaps)
    assert gaps[0].high - gaps[0].low > 0.05


def occupations(seed: int = 4) -> tuple[pl.DataFrame, np.ndarray]:
    """Four of five women are nurses, four of five men pilots; the model sees the occupation only."""
    woman = np.arange(N) < N // 2
    nurse = (np.arange(N) % 5 > 0) == woman
    images = people(gender=np.where(woman, "woman", "man"), occupation=np.where(nurse, "nurse", "pilot"))
    return images.drop("tone", "age"), logits(seed) + 2.0 * nurse[:, None] * np.eye(4)[0]


def test_what_an_occupation_explains_is_not_held_against_a_gender():
    images, cells = occupations()
    for options in ({"within": ("Occupation",)}, {}):
        rows = rows_of(images, cells, "gender", **options)
        assert any(map(shown, of(rows, "gap"))) == (not options)
        assert bool(of(rows, "balance")) == (not options)
        decided = [row for row in rows if row.variant == "within occupation"]
        assert len(decided) == 4 * bool(options)
    shares = {(row.group, row.template): row.value for row in of(rows, "balance")}
    assert shares["woman", "nurse"] == pytest.approx(0.8)
    assert shares["man", "nurse"] == pytest.approx(0.2)


def test_attributes_that_are_compared_are_strata_for_each_other():
    images, cells = occupations()
    rows = rows_of(images, cells, "gender", "occupation")
    called = {row.subset for row in of(rows, "gap") if shown(row)}
    assert called == {"occupation"}
    assert not of(rows, "balance")


def test_a_gap_within_strata_is_the_regression_with_the_label_taken_off():
    images, cells = occupations()
    rows = rows_of(images, cells, "gender", within=("occupation",))
    share = np.exp(cells[:, 0]) / np.exp(cells).sum(axis=1)
    woman, nurse = (
        (images[name] == value).to_numpy() for name, value in (("gender", "woman"), ("occupation", "nurse"))
    )
    slope = np.linalg.lstsq(np.column_stack([np.ones(N), nurse, woman]), share, rcond=None)[0][2]
    within = next(row for row in rows if row.variant == "within occupation" and row.concept == "prompt 0")
    assert within.value == pytest.approx(abs(slope))
    crude = next(row for row in of(rows, "gap") if row.concept == "prompt 0")
    sign = 1 if crude.group == "woman" else -1
    assert crude.value == pytest.approx(sign * (share[woman].mean() - share[~woman].mean()))


def test_opposite_gaps_in_two_strata_do_not_cancel():
    images, cells = occupations()
    cells = logits(5)
    woman, nurse = (
        (images[name] == value).to_numpy() for name, value in (("gender", "woman"), ("occupation", "nurse"))
    )
    cells[:, 0] += 3.0 * (woman == nurse)
    rows = rows_of(images, cells, "gender", within=("occupation",))
    inner = {(row.variant, row.group) for row in rows if shown(row) and row.concept == "prompt 0"}
    assert {("within occupation: nurse", "woman"), ("within occupation: pilot", "man")} <= inner


def test_an_unknown_column_to_compare_within_names_those_that_exist():
    with pytest.raises(UnknownName, match=r"--within.*'job'(?s:.*)occupation"):
        rows_of(*occupations(), "gender", within=("job",))


def test_every_row_has_a_metric_with_its_unit():
    units = {metric.name: metric.unit for metric in METRICS}
    rows = rows_of(people(), logits(), "gender", "tone", delta=0.1)
    assert all(units[row.metric] == row.unit for row in rows)
    keys = [(row.metric, row.subset, row.group, row.against, row.concept, row.template, row.variant) for row in rows]
    assert len(keys) == len(set(keys))


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """A folder of small pictures with ages."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    rows = ["file,age"]
    for i in range(18):
        Image.new("RGB", (8, 8), (10 * i, 0, 0)).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{5 * i}")
    (folder / "labels.csv").write_text("\n".join(rows))
    return folder


def test_bins_of_the_command_line_are_the_groups(tmp_path: Path, photographs: Path, undrawn: list[object]):
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("text\nkind\ncold\n")
    words = ["audit", "null", "--prompts", prompts, "--dataset", f"folder:{photographs}", "--by", "age"]
    words += ["--bins", "age=0,18,60", "--out", tmp_path / "run", "--store", tmp_path / "store", "--draws", "100", "-q"]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "run")
    assert set(run.results["group"].drop_nulls()) == {"0–17", "18–59", "60 and over"}
    assert run.results.filter(metric="custom.slope")["subset"].unique().to_list() == ["age"]
    assert run.record.settings["bins"] == {"age": [0, 18, 60]}
