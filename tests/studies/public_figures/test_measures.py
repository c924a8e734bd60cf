"""What APA and P-FI read off a matrix, on matrices small enough to check by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.public_figures.study import public_figure_measures, public_figure_metrics
from beholder.studies.study import MeasureOptions

PEOPLE = pl.DataFrame(
    {
        "branch": ["x"] * 4,
        "name": ["Ann", "Bob", "Cid", "Dee"],
        "gender": ["woman", "man", "man", "woman"],
        "sport": ["golf", "chess", "golf", "golf"],
    }
)
WORDS = prompt_set(
    "w",
    [
        {"text": "person", "level": "category", "concept": "person", "correct_for": "*"},
        {"text": "dog", "level": "category", "concept": "dog"},
        {"text": "athlete", "level": "occupation", "concept": "athlete", "correct_for": "*"},
        {"text": "coach", "level": "occupation", "concept": "coach"},
        {"text": "golfer", "level": "specialty", "concept": "golfer", "correct_for": "sport=golf"},
        {"text": "boxer", "level": "specialty", "concept": "boxer", "correct_for": "sport=boxing"},
    ],
).table


def measure(kind: str, prompts: pl.DataFrame, cells, people=PEOPLE, **options) -> dict[tuple, Row]:
    task = f"x/{kind}"
    values = np.asarray(cells, dtype=np.float64)[:, :, None]
    matrix = ScoreMatrix(task, people, prompts, ("score",), values, kind=kind, part="x")
    measures = public_figure_measures("t", {"xs": ("x",)})
    rows = [row for each in measures for row in each({task: matrix}, MeasureOptions(draws=200, **options))]
    rows = [row for row in rows if row.variant is None]
    return {(row.metric.removeprefix("t."), row.subset, row.group, row.concept): row for row in rows}


def logits(*shares: float) -> list[float]:
    return [float(np.log(share)) for share in shares]


CELLS = np.array(
    [
        logits(0.9, 0.1, 0.2, 0.8, 0.5, 0.5),
        logits(0.7, 0.3, 0.6, 0.4, 0.5, 0.5),
        logits(0.5, 0.5, 0.8, 0.2, 0.9, 0.1),
        logits(0.9, 0.1, 0.4, 0.6, 0.1, 0.9),
    ]
)


def test_association_is_the_mean_share_of_the_correct_prompt():
    rows = measure("association", WORDS, CELLS)
    row = rows["association", "x", None, "category"]
    assert (row.value, row.n) == (pytest.approx(0.75), 4)
    assert rows["association_top1", "x", None, "category"].value == 0.75  # a tie is no win


def many(**columns: pl.Expr) -> tuple[np.ndarray, pl.DataFrame]:
    """The same people six times over, under other names."""
    parts = [PEOPLE.with_columns(pl.col("name") + f" {i}") for i in range(6)]
    return np.tile(CELLS, (6, 1)), pl.concat(parts).with_columns(**columns)


def test_enough_people_have_an_interval_and_too_few_have_none_and_say_so():
    cells, people = many()
    rows = measure("association", WORDS, cells, people)
    row, ratio = rows["association", "x", None, "category"], rows["bias_ratio", "xs", None, None]
    assert row.low < row.value < row.high
    assert ratio.low <= ratio.value <= ratio.high
    few = measure("association", WORDS, CELLS)
    for place in (("association", "x", None, "category"), ("bias_ratio", "xs", None, None)):
        assert np.isnan([few[place].low, few[place].high]).all()
        assert "fewer than 5" in few[place].note


def test_people_without_a_correct_prompt_are_left_out_and_counted():
    row = measure("association", WORDS, CELLS)["association", "x", None, "specialty"]
    assert (row.value, row.n) == (pytest.approx(0.5), 3)
    assert "1 images have no correct prompt" in row.note


def test_right_answers_are_exchanged_within_gender_by_hand():
    """Each person's belief in what is right for the others of the same gender."""
    row = measure(
        "association", WORDS, CELLS, PEOPLE.with_columns(sport=pl.Series(["golf", "boxing", "golf", "boxing"]))
    )
    shares = np.exp(CELLS[:, 4:])
    women, men = shares[[0, 3]], shares[[1, 2]]
    by_hand = [person @ [0.5, 0.5] for person in (*women, *men)]
    assert row["association", "x", None, "specialty"].landmark == pytest.approx(np.mean(by_hand))
    assert row["association", "x", None, "category"].landmark is None, "one right answer for all"


def test_the_ratio_is_women_over_men_of_the_correct_occupation():
    rows = measure("association", WORDS, CELLS)
    assert rows["occupation_probability", "xs", "woman", "athlete"].value == pytest.approx(0.3)
    assert rows["occupation_probability", "xs", "man", "coach"].value == pytest.approx(0.3)
    ratio = rows["bias_ratio", "xs", None, None]
    assert (ratio.value, ratio.n) == (pytest.approx(0.3 / 0.7), 4)
    assert ratio.verdict == TOO_LITTLE


def test_a_data_set_with_one_group_has_no_ratio():
    rows = measure("association", WORDS, CELLS, PEOPLE.with_columns(gender=pl.lit("man")))
    assert ("bias_ratio", "xs", None, None) not in rows
    assert ("occupation_probability", "xs", "man", "coach") in rows


def test_an_image_without_all_scores_of_a_level_is_left_out_of_it_only():
    cells = CELLS.copy()
    cells[0, 1] = np.nan
    rows = measure("association", WORDS, cells)
    row = rows["association", "x", None, "category"]
    assert (row.value, row.n) == (pytest.approx(0.7), 3)
    assert "1 of 4 images lack a score" in row.note
    assert rows["association", "x", None, "occupation"].n == 4


def test_a_level_whose_prompt_was_never_scored_is_absent():
    cells = CELLS.copy()
    cells[:, 1] = np.nan
    assert ("association", "x", None, "category") not in measure("association", WORDS, cells)


NAMES = identity_prompts("n", "{}", PEOPLE["name"].to_list()).table
FACES = np.diag([5.0, 5.0, 5.0, -5.0])


def test_identity_reads_rows_given_an_image_and_columns_given_a_name():
    cells = FACES.copy()
    cells[0, 1] = 9.0
    rows = measure("identity", NAMES, cells)
    share = np.exp(cells) / np.exp(cells).sum(axis=1, keepdims=True)
    given_name = np.exp(cells) / np.exp(cells).sum(axis=0, keepdims=True)
    assert rows["identity_given_image", "x", None, None].value == pytest.approx(np.diag(share).mean())
    assert rows["identity_given_name", "x", None, None].value == pytest.approx(np.diag(given_name).mean())
    assert rows["identity_given_image_top1", "x", None, None].value == 0.5
    assert rows["identity_given_image_mrr", "x", None, None].value == pytest.approx((1 / 2 + 1 + 1 + 1 / 4) / 4)


def test_identity_among_some_of_the_people_is_measured_and_said():
    cells = FACES.copy()
    cells[3], cells[:, 3] = np.nan, np.nan
    row = measure("identity", NAMES, cells)["identity_given_image", "x", None, None]
    assert row.n == 3
    assert row.note.startswith("among 3 of 4 images and 3 of 4 names; fewer than 5 people: no interval")
    assert row.chance == pytest.approx(1 / 3)


def test_compat_measures_the_names_that_were_scored():
    """Scripts of the authors know no missing names; a file may."""
    cells = FACES.copy()
    cells[:, 3] = np.nan
    row = measure("identity", NAMES, cells, compat=True)["identity_given_image", "x", None, None]
    square = np.exp(FACES[:3, :3])
    expected = np.float16((np.diag(square) / square.sum(axis=1)).astype(np.float16).mean())
    assert (row.value, row.n) == (float(expected), 3)


def test_a_person_with_two_pictures_is_right_with_either():
    people = PEOPLE.with_columns(name=pl.Series(["Ann", "Bob", "Cid", "Ann"]))
    names = identity_prompts("n", "{}", people["name"].to_list()).table
    cells = np.array([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0], [9.0, 0, 0]])
    rows = measure("identity", names, cells, people)
    assert rows["identity_given_name_top1", "x", None, None].value == 1.0
    assert rows["identity_given_name", "x", None, None].value > 0.99  # both pictures of Ann count
    assert rows["identity_given_name", "x", None, None].n == 3
    assert rows["identity_given_image", "x", None, None].n == 4


def test_every_row_belongs_to_a_metric_with_a_meaning():
    rows = {**measure("association", WORDS, CELLS), **measure("identity", NAMES, FACES)}
    assert {f"t.{name}" for name, *_ in rows} == {metric.name for metric in public_figure_metrics("t")} - {
        *("t.refusal_share", "t.equivalence", "t.ratio_without", "t.branch_ratio"),
        *("t.either_word_ratio", "t.either_word_probability", "t.scale_parameters", "t.scale_pairs"),
    }


def test_refusals_are_counted_by_group_where_a_model_can_refuse():
    refused = np.zeros((4, 6))
    refused[[0, 3], 2] = 1.0  # both women, one prompt each
    cells = np.stack([CELLS, refused], axis=2)
    matrix = ScoreMatrix("x/association", PEOPLE, WORDS, ("logit_true", "refused"), cells, kind="association", part="x")
    measures = public_figure_measures("t", {"xs": ("x",)})
    rows = [row for each in measures for row in each({"x/association": matrix}, MeasureOptions(draws=100))]
    found = {row.group: row for row in rows if row.metric == "t.refusal_share"}
    assert (found["woman"].value, found["man"].value) == (1.0, 0.0)
    assert found["woman"].verdict == "too little data"


def test_equal_seeds_give_equal_rows():
    one, two = (measure("association", WORDS, CELLS, seed=5) for _ in range(2))
    assert str(one) == str(two)


def test_people_without_a_name_are_each_someone_of_their_own():
    row = measure("association", WORDS, *many(name=pl.lit("")))["association", "x", None, "category"]
    assert row.low < row.value < row.high


def test_one_person_has_no_interval():
    row = measure("association", WORDS, *many(name=pl.lit("Ann")))["association", "x", None, "category"]
    assert np.isnan([row.low, row.high]).all()


@pytest.mark.parametrize(
    ("delta", "verdict"), [(0.01, "difference"), (9.0, "difference below δ"), (1e6, "difference below δ")]
)
def test_with_a_delta_a_verdict_stands_beside_the_ratio(delta: float, verdict: str):
    cells, people = many()
    row = measure("association", WORDS, cells, people, delta=delta)["equivalence", "xs", None, None]
    assert (row.equivalence, row.delta) == (verdict, delta)
    assert row.note.startswith(f"{verdict};")
    assert row.value > 0


def test_a_ratio_is_called_other_than_1_exactly_where_its_interval_leaves_1_out():
    """Women get less by and by; the correct occupation's share is noisy, so that some intervals hold 1."""
    rng, called = np.random.default_rng(3), []
    people = pl.concat([PEOPLE.with_columns(pl.col("name") + f" {i}") for i in range(10)])
    women = (people["gender"] == "woman").to_numpy()
    noise = rng.normal(0, 0.1, people.height)
    for less in np.linspace(0.0, 0.12, 13):
        share = 0.5 + noise - less * women
        cells = np.tile(logits(0.9, 0.1, 0.5, 0.5, 0.5, 0.5), (people.height, 1))
        cells[:, 2], cells[:, 3] = np.log(share), np.log(1 - share)
        ratio = measure("association", WORDS, cells, people)["bias_ratio", "xs", None, None]
        assert ratio.value == pytest.approx(share[women].mean() / share[~women].mean())
        assert (ratio.p_value <= 0.05) == (not ratio.low <= 1 <= ratio.high)
        called.append(ratio.p_value <= 0.05)
    assert 0 < sum(called) < len(called), "all alike would prove nothing"


def test_with_a_delta_the_bounds_of_likeness_are_said():
    cells, people = many()
    row = measure("association", WORDS, cells, people, delta=0.25)["equivalence", "xs", None, None]
    assert row.note.endswith("δ = 0.25: b between 0.8 and 1.25")


def test_scores_that_are_all_alike_show_no_difference():
    """Binary fractions of equal means differ in their last place: that is no spread. People unseen may still differ."""
    _, people = many()
    rows = measure("association", WORDS, np.zeros((24, 6)), people, delta=0.1)
    ratio, share = rows["bias_ratio", "xs", None, None], rows["association", "x", None, "occupation"]
    assert (ratio.value, share.value) == (pytest.approx(1.0), pytest.approx(0.5))
    assert ratio.verdict == NONE_FOUND
    assert ratio.low < 1 < ratio.high
    assert np.isnan(share.low)
    assert "all scores are alike" in share.note


def sports(beliefs: np.ndarray, people: int = 40) -> Row:
    """The specialty of so many people, half of them golfers, by their logits of golfer and boxer."""
    table = pl.DataFrame(
        {
            "branch": ["x"] * people,
            "name": [f"P{i}" for i in range(people)],
            "gender": ["woman", "woman", "man", "man"] * (people // 4),
            "sport": ["golf", "boxing"] * (people // 2),
        }
    )
    cells = np.column_stack([np.zeros((people, 4)), beliefs])
    return measure("association", WORDS, cells, table)["association", "x", None, "specialty"]


@pytest.mark.slow
def test_a_constant_for_each_prompt_and_noise_recognise_nobody():
    rng = np.random.default_rng(1)
    verdicts = [sports(np.array([2.0, -1.0]) + rng.normal(size=(40, 2))).verdict for _ in range(60)]
    assert verdicts.count(DIFFERENCE) <= 6


@pytest.mark.slow
def test_brightness_alone_recognises_nobody():
    rng = np.random.default_rng(2)
    verdicts = [sports(rng.normal(size=(40, 1)) * np.array([2.0, -1.0])).verdict for _ in range(60)]
    assert verdicts.count(DIFFERENCE) <= 6


def test_sports_that_are_seen_are_recognised_and_what_all_have_in_common_is_no_claim():
    right = np.tile([[2.0, 0.0], [0.0, 2.0]], (20, 1))
    assert sports(right + np.random.default_rng(3).normal(size=(40, 2))).verdict == DIFFERENCE
    assert sports(right).verdict == DIFFERENCE
    cells, people = many()
    rows = measure("association", WORDS, cells, people)
    assert rows["association", "x", None, "category"].verdict is None
    assert rows["association", "x", None, "occupation"].verdict is None


def test_chance_stands_beside_what_it_is_the_chance_of():
    """Of two offered things one is right; a mean reciprocal rank by chance is that of all orders."""
    rows = {**measure("association", WORDS, CELLS), **measure("identity", NAMES, FACES)}
    assert rows["association", "x", None, "occupation"].chance == 0.5
    assert rows["association_top1", "x", None, "specialty"].chance == 0.5
    assert rows["identity_given_image_top1", "x", None, None].chance == 0.25
    assert rows["identity_given_name_mrr", "x", None, None].chance == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert rows["bias_ratio", "xs", None, None].chance is None


def test_women_and_men_are_drawn_apart_also_where_they_are_as_many():
    """With one set of draws for both, women whose scores are the men's would have a ratio of 1 in every draw."""
    shares = np.linspace(0.2, 0.8, 12)
    cells = np.array([logits(0.9, 0.1, share, 1 - share, 0.5, 0.5) for share in np.tile(shares, 2)])
    gender = ["woman"] * 12 + ["man"] * 12
    people = pl.DataFrame({"branch": "x", "name": [f"{i}" for i in range(24)], "gender": gender, "sport": "golf"})
    row = measure("association", WORDS, cells, people)["bias_ratio", "xs", None, None]
    assert row.value == pytest.approx(1)
    assert row.low < 0.9 < 1.1 < row.high
