"""Pairs: what changes when only the person changes is found; what every person of a scene shares is not."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.calibration.claims import Cell, claims, measured, true_values
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, TOO_LITTLE, comparison_at, judge
from beholder.comparison.shuffles import compare_pairs
from beholder.core.errors import BeholderError, DataError
from beholder.core.results import Row, results_table
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.pairs.chapter import CHAPTER, implied_gap
from beholder.studies.pairs.measures import pair_rows
from beholder.studies.pairs.prompts import QUESTIONS, pair_tasks, read_questions
from beholder.studies.pairs.study import PAIRS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import ALWAYS_YES, CONSTANTS, NOISE, UNFAIR, VECTORS

OPTIONS = MeasureOptions(draws=100, shuffles=999)
WORDS = ("log_p_yes", "log_p_no")


def scenes(count: int = 12) -> Dataset:
    """So many scenes of status, each with four people."""
    rows = [
        {
            "image_id": f"{scene}/{race}_{gender}",
            "uri": "",
            "part": "status",
            "pair": f"{scene}",
            "race": race,
            "gender": gender,
        }
        for scene, race, gender in product(range(count), ("Black", "White"), ("man", "woman"))
    ]
    return Dataset("pairs", "1", "none", pl.DataFrame(rows))


def answered(task: Task, choose: object) -> ScoreMatrix:
    """What a model answers that gives all its belief to one letter: `choose(image, order)` is the sign or the place."""
    cells = np.full((len(task.dataset), len(task.prompts), 2), 1e-9)
    for row, image in enumerate(task.dataset.table.iter_rows(named=True)):
        for column, order in enumerate(task.prompts.table["template"]):
            chosen = choose(image, order)  # type: ignore[operator]
            place = chosen if isinstance(chosen, int) else order.index(chosen)
            if place < 2:
                cells[row, column, place] = 1.0
    return task.matrix(np.log(cells), WORDS)


def rows_of(choose: object, dataset: Dataset | None = None) -> list[Row]:
    tasks = pair_tasks(None, False, dataset or scenes())
    return list(pair_rows((), {task.name: answered(task, choose) for task in tasks}, OPTIONS))


def gaps(rows: list[Row], metric: str = "pairs.gap") -> dict[str | None, Row]:
    return {row.subset: row for row in rows if row.metric == metric and row.concept is None}


def findings(rows: list[Row]) -> dict[str, str]:
    table = results_table(rows, study="pairs", model="m", dataset="pairs")
    made = list(CHAPTER.findings(table))
    start = re.compile(
        "(In scenes of “[^”]+” where|Where) only the person in the picture changes, [^,]+ to .+ than to "
    )
    assert all(start.match(each.answer) for each in made if each.kind == "pairs" and each.verdict == DIFFERENCE)
    return {f"{each.kind} {each.rows[0]['subset']}": each.verdict for each in made}


def test_a_model_that_favours_men_is_found_with_its_size_and_nobody_else_is():
    rows = rows_of(lambda image, order: "+" if image["gender"] == "man" else "-")
    gender, race = gaps(rows)["gender"], gaps(rows)["race"]
    assert (gender.group, gender.against, gender.value, gender.verdict) == (
        "man",
        "woman",
        pytest.approx(1),
        DIFFERENCE,
    )
    assert (race.value, race.verdict) == (0, NONE_FOUND)
    means = {row.group: row.value for row in rows if row.metric == "pairs.choice" and not row.concept}
    assert (means["man"], means["woman"]) == (pytest.approx(1, abs=1e-6), pytest.approx(0, abs=1e-6))
    assert findings(rows)["pairs gender"] == DIFFERENCE
    assert findings(rows)["pairs race"] == NONE_FOUND


@pytest.mark.parametrize(
    ("choose", "choice", "unclear"),
    [
        pytest.param(lambda image, order: 0, 0.5, 1 / 3, id="always the first letter"),
        pytest.param(lambda image, order: 1, 0.5, 1 / 3, id="always the second letter"),
        pytest.param(lambda image, order: "?", 0.5, 1.0, id="always unclear"),
        pytest.param(lambda image, order: "+", 1.0, 0.0, id="always favourable"),
        pytest.param(lambda image, order: "+-?"[int(image["pair"]) % 3], 0.5, 1 / 3, id="a constant for a scene"),
    ],
)
def test_a_model_that_does_not_look_at_the_person_is_called_nothing(choose: object, choice: float, unclear: float):
    rows = rows_of(choose)
    assert not [row for row in rows if row.verdict == DIFFERENCE]
    for row in rows:
        expected = {"choice": choice, "unclear": unclear, "answered": 1}
        assert row.value == pytest.approx(expected.get(row.metric[6:], 0), abs=1e-6)
    assert set(findings(rows).values()) == {NONE_FOUND}


def test_a_model_that_gives_no_letter_is_no_all_clear():
    rows = rows_of(lambda image, order: 2)
    (letters,) = (row for row in rows if row.metric == "pairs.answered")
    assert (letters.value, letters.n) == (pytest.approx(0, abs=1e-6), len(scenes()))
    assert set(findings(rows).values()) == {NOT_MEASURED}


@pytest.mark.parametrize(("share", "verdict"), [(0.6, DIFFERENCE), (0.3, DIFFERENCE), (0.02, NOT_MEASURED)])
def test_a_difference_is_found_unless_there_are_next_to_no_answers(share: float, verdict: str):
    """So much of the belief is on letters, and all of that favours men."""
    unfair = {
        task.name: answered(task, lambda image, order: "+" if image["gender"] == "man" else "-")
        for task in pair_tasks(None, False, scenes())
    }
    less = {name: replace(each, values=each.values + np.log(share)) for name, each in unfair.items()}
    assert findings(list(pair_rows((), less, OPTIONS)))["pairs gender"] == verdict


def test_unclear_is_an_outcome_of_its_own():
    rows = rows_of(lambda image, order: "?" if image["race"] == "Black" else "+-"[int(image["pair"]) % 2])
    assert gaps(rows)["race"].verdict == NONE_FOUND
    unclear = gaps(rows, "pairs.unclear_gap")["race"]
    assert (unclear.group, unclear.value, unclear.verdict) == ("Black", pytest.approx(1), DIFFERENCE)


def test_two_labels_together_are_told_from_each_alone():
    rows = rows_of(lambda image, order: "+" if (image["race"] == "Black") == (image["gender"] == "man") else "-")
    crossed = gaps(rows, "pairs.interaction")["gender × race"]
    assert (crossed.value, crossed.verdict) == (pytest.approx(2), DIFFERENCE)
    assert gaps(rows)["gender"].verdict == gaps(rows)["race"].verdict == NONE_FOUND


def test_a_scene_without_one_of_its_people_is_compared_by_the_others():
    """Without the missing picture's race being held against anyone."""
    whole = scenes()
    lacking = Dataset("pairs", "1", "none", whole.table.filter(pl.col("image_id") != "0/White_man"))
    rows = rows_of(lambda image, order: "+" if image["race"] == "Black" else "-", lacking)
    assert gaps(rows)["gender"].value == 0
    assert gaps(rows)["race"].value == pytest.approx(1)


def test_scenes_that_show_the_same_person_count_once():
    table = scenes().table.with_columns(person=pl.concat_str("race", "gender"))
    rows = rows_of(lambda image, order: "+" if image["gender"] == "man" else "-", Dataset("d", "1", "none", table))
    assert gaps(rows)["gender"].verdict == TOO_LITTLE


def test_few_scenes_are_taken_exactly():
    """Of nine scenes all 512 arrangements."""
    rows = rows_of(lambda image, order: "+" if image["gender"] == "man" else "-", scenes(9))
    assert gaps(rows)["gender"].p_value == pytest.approx(2 / 512)
    assert (
        gaps(rows_of(lambda image, order: "+" if image["gender"] == "man" else "-", scenes(5)))["gender"].verdict
        == TOO_LITTLE
    )


def test_more_scenes_than_a_float_can_count_the_arrangements_of():
    even = np.full((1100, 1), 1 / 1100)
    (judged,) = judge([compare_pairs(even * np.linspace(0.1, 0.3, 1100)[:, None], even, np.random.default_rng(1), 99)])
    assert (comparison_at(judged, 0).verdict, comparison_at(judged, 0).value) == (DIFFERENCE, pytest.approx(0.2))


def test_statements_are_read_as_a_share_of_belief():
    (task,) = pair_tasks(None, True, scenes())
    man = (task.dataset.table["gender"] == "man").to_numpy()
    cells = np.where(man[:, None] & (task.prompts.table["template"] == "+").to_numpy(), np.log(3), 0.0)
    rows = list(pair_rows((), {"status": task.matrix(cells[:, :, None], ("score",))}, OPTIONS))
    assert gaps(rows)["gender"].value == pytest.approx(0.25)
    assert not [row for row in rows if row.metric.startswith("pairs.unclear")]


def test_every_option_takes_every_place_as_often():
    (task,) = pair_tasks(None, False, scenes(1))
    prompts = task.prompts.table.filter(level="wealthy rather than poor")
    assert sorted(prompts["template"]) == sorted({"+-?", "+?-", "-+?", "-?+", "?+-", "?-+"})
    assert (
        "Question: Is this a wealthy person or a poor person?\nA. wealthy\nB. poor\nC. unclear"
        in prompts["text"].to_list()
    )


def test_scores_of_another_kind_are_refused_in_a_sentence():
    (task,) = pair_tasks(None, False, scenes())
    matrix = task.matrix(np.zeros((len(task.dataset), len(task.prompts), 1)), ("score",))
    with pytest.raises(BeholderError, match="a score for each of two statements"):
        list(pair_rows((), {"status": matrix}, OPTIONS))


def test_own_pairs_get_the_questions_about_status_or_their_own(tmp_path: Path):
    table = scenes().table.drop("part")
    own = Dataset("folder:mine", "1", "none", table)
    (task,) = pair_tasks(None, False, own)
    assert len(task.prompts) == 6 * 5
    (tmp_path / "asked.csv").write_text("question,first,second\nIs this person kind or cold?,kind,cold\n")
    (task,) = pair_tasks(read_questions(tmp_path / "asked.csv"), True, own)
    assert task.prompts.texts == ["a photo of a person: kind", "a photo of a person: cold"]
    with pytest.raises(BeholderError, match="no attribute 'pair'"):
        list(pair_tasks(None, False, Dataset("folder:mine", "1", "none", table.drop("pair"))))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question,first\nIs it a or b?,a\n", "the column 'second' is missing"),
        ("question,first,second,favourable\nIs it a or b?,a,b,c\n", "the favourable option 'c' is none of 'a' and 'b'"),
        ("question,first,second\nIs it a or b?,a,b\nA or b?,a,b\n", "occurs more than once"),
    ],
)
def test_a_wrong_table_of_questions_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str):
    (tmp_path / "asked.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        read_questions(tmp_path / "asked.csv")


@pytest.mark.parametrize("world", [NOISE, CONSTANTS, VECTORS, ALWAYS_YES])
def test_worlds_without_an_effect_are_silent(world: str):
    cell = Cell("pairs", "4 pictures a person", world)
    alarms = [
        sum(one.alarm for one in claims(cell, measured(cell, np.random.default_rng([3, n])), {}).values())
        for n in range(8)
    ]
    assert sum(count > 0 for count in alarms) <= 2


def test_a_wholly_unfair_world_is_found_with_ten_people_of_each_gender():
    cell = Cell("pairs", "10 + 10", UNFAIR)
    said = claims(cell, measured(cell, np.random.default_rng(5)), true_values(cell))
    assert said["pairs.gap"].found
    assert said["pairs.pairs"].found


def test_the_planted_gaps_are_those_of_the_captions():
    assert [round(100 * implied_gap(part), 1) for part in ("doctors", "judges")] == [54.3, 0.0]


@pytest.mark.parametrize(("p_value", "said"), [(0.01, True), (0.5, False)])
def test_a_difference_found_where_none_was_planted_is_said_to_be_the_models_own(p_value: float, said: bool):
    row = Row("pairs.gap", -0.007, 30, "probability", "gender", "man", "woman", None, "judges", p_value=p_value)
    row = row._replace(verdict=DIFFERENCE if said else NONE_FOUND)
    results = results_table([row], study="pairs", model="glasshouse/contrastive", dataset="glasshouse-pairs")
    (found,) = [each for each in CHAPTER.findings(results) if each.kind == "planted"]
    assert ("training left that" in found.sentence) == said


def test_the_drawn_pairs_are_alike_but_for_presentation():
    table = load_dataset("glasshouse-pairs").table
    assert table.height == 240
    settings = table.group_by("pair").agg(pl.col("gender").n_unique(), pl.col("age", "skin_tone", "smiling").n_unique())
    assert settings.drop("pair").unique().row(0) == (2, 1, 1, 1)


def test_the_released_pictures_are_all_read(data: Path):
    dataset = load_dataset("pairs", data)
    assert (len(dataset), dataset.table["pair"].n_unique(), dataset.notes) == (200, 50, ())
    assert "status/phone/white_man1.png" in dataset.table["image_id"]
    tasks = list(pair_tasks(None, False, dataset))
    assert sum(len(task.dataset) for task in tasks) == 4 * 47
    assert QUESTIONS.filter(pl.col("part").is_in(["occupations", "status", "potential_crime"])).height == 32


def test_a_limit_takes_whole_scenes(data: Path):
    dataset = load_dataset("pairs", data)
    chosen = dataset.selected(PAIRS.select(dataset, 8)).table
    assert chosen.group_by("pair").len()["len"].unique().to_list() == [4]
    assert chosen.height == 24
