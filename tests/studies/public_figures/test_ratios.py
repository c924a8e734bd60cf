"""b by pool, by branch, for either word, and with each wrong option left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.comparison.means import OPEN
from beholder.core.results import Row
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.measures import ratio_rows
from beholder.studies.study import MeasureOptions

WORDS = ("actor", "actress", "teacher", "chef")


def branch(name: str, cells: np.ndarray, women: int, rules: dict[str, str]) -> ScoreMatrix:
    people = pl.DataFrame(
        {
            "branch": [name] * len(cells),
            "name": [f"{name} {i}" for i in range(len(cells))],
            "gender": ["woman"] * women + ["man"] * (len(cells) - women),
        }
    )
    rows = [{"text": w, "level": "occupation", "concept": w, "correct_for": rules.get(w)} for w in WORDS]
    table = prompt_set("w", rows).table
    return ScoreMatrix(name, people, table, ("score",), cells[:, :, None], kind="association", part=name)


def rows_of(pools: dict[str, tuple[str, ...]], *matrices: ScoreMatrix) -> dict[tuple[str, str | None, str | None], Row]:
    scored = {each.part: each for each in matrices}
    rows = [row for row in ratio_rows("t", pools, scored, MeasureOptions(draws=300)) if row.variant is None]
    return {(row.metric[2:], row.subset, row.group or row.concept): row for row in rows}


def softmax(cells: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(cells) / np.exp(cells).sum(axis=1, keepdims=True))


CELLS = np.random.default_rng(2).normal(size=(20, 4))
TEACHERS = {"teacher": "*"}
PLAYERS = {"actor": "gender=man", "actress": "gender=woman"}


def test_b_of_each_branch_stands_beside_the_pool():
    a, b = branch("a", CELLS, 8, TEACHERS), branch("b", CELLS[::-1].copy(), 6, TEACHERS)
    rows = rows_of({"both": ("a", "b"), "alone": ("a",)}, a, b)
    for name, cells, women in (("a", CELLS, 8), ("b", CELLS[::-1], 6)):
        shares = softmax(cells)[:, 2]
        row = rows["branch_ratio", name, "both"]
        assert row.value == pytest.approx(shares[:women].mean() / shares[women:].mean())
        assert row.low < row.value < row.high
    assert {key[1] for key in rows if key[0] == "branch_ratio"} == {"a", "b"}, "a pool of one branch needs none"


@pytest.mark.parametrize("left_out", ["actor", "actress", "chef"])
def test_b_without_an_option_is_that_of_a_softmax_over_the_others(left_out: str):
    rows = rows_of({"xs": ("a",)}, branch("a", CELLS, 8, TEACHERS))
    kept = [place for place, word in enumerate(WORDS) if word != left_out]
    shares = softmax(CELLS[:, kept])[:, kept.index(2)]
    assert rows["ratio_without", "xs", left_out].value == pytest.approx(shares[:8].mean() / shares[8:].mean())


def test_an_option_that_is_right_for_someone_is_never_left_out():
    rows = rows_of({"xs": ("a",)}, branch("a", CELLS, 8, PLAYERS))
    assert {key[2] for key in rows if key[0] == "ratio_without"} == {"teacher", "chef"}


def test_women_who_are_called_actor_are_called_what_they_are():
    """All belief on "actor": the published b is near 0, and nobody is taken for anything wrong."""
    cells = np.tile([9.0, 0.0, 0.0, 0.0], (20, 1)) + 0.01 * CELLS
    rows = rows_of({"xs": ("a",)}, branch("a", cells, 8, PLAYERS))
    assert rows["bias_ratio", "xs", None].value < 0.001
    assert rows["either_word_ratio", "xs", None].value == pytest.approx(1.0, abs=0.001)
    assert not any(key[0] == "either_word_ratio" for key in rows_of({"xs": ("a",)}, branch("a", cells, 8, TEACHERS)))


def test_a_p_that_no_shuffle_reaches_is_said_to_be_a_bound():
    cells = CELLS * 0.1
    cells[:8, 2] -= 3
    rows = rows_of({"xs": ("a",)}, branch("a", cells, 8, TEACHERS))
    assert rows["bias_ratio", "xs", None].p_at_most
    even = rows_of({"xs": ("a",)}, branch("a", CELLS, 8, TEACHERS))
    assert even["bias_ratio", "xs", None].p_at_most is None


def seen_by_branch(seed: int) -> dict[str, ScoreMatrix]:
    """A model that sees the branch only; four of five women are of the first, four of five men of the second."""
    rng, made = np.random.default_rng(seed), {}
    for name, women, level in (("a", 20, 2.0), ("b", 5, -1.0)):
        cells = rng.normal(size=(25, 4))
        cells[:, 2] += level
        made[name] = branch(name, cells, women, TEACHERS)
    return made


@pytest.mark.slow
def test_a_model_that_sees_the_branch_only_shows_no_difference_within_branches():
    called, crude = 0, 0
    for seed in range(60):
        rows = list(ratio_rows("t", {"both": ("a", "b")}, seen_by_branch(seed), MeasureOptions(draws=20, shuffles=199)))
        published, within = (row for row in rows if row.metric == "t.bias_ratio")
        assert (published.variant, within.variant) == (None, "within branch")
        assert published.verdict == within.verdict
        called += within.verdict == DIFFERENCE
        crude += (published.value or 0) > 1.3
    assert crude > 50
    assert called <= 7


def test_within_branches_b_is_the_ratio_of_means_weighted_as_mantel_and_haenszel_do():
    matrices = seen_by_branch(1)
    rows = list(ratio_rows("t", {"both": ("a", "b")}, matrices, MeasureOptions(draws=20)))
    (within,) = (row for row in rows if row.metric == "t.bias_ratio" and row.variant)
    sides = np.zeros(2)
    for matrix, women in ((matrices["a"], 20), (matrices["b"], 5)):
        shares, weight = softmax(matrix.logits)[:, 2], women * (25 - women) / 25
        sides += weight * np.array([shares[:women].mean(), shares[women:].mean()])
    assert within.value == pytest.approx(sides[0] / sides[1])
    assert within.low < within.value < within.high


@pytest.mark.parametrize("people", [10, 30])
def test_women_who_never_get_the_right_answer_and_men_who_always_do_are_found(people: int):
    for women_first in (True, False):
        cells = np.zeros((2 * people, 4))
        cells[:people, 0 if women_first else 2] = cells[people:, 2 if women_first else 0] = 2000.0
        row = rows_of({"xs": ("a",)}, branch("a", cells, people, TEACHERS))["bias_ratio", "xs", None]
        assert row.verdict == DIFFERENCE
        assert row.value == (0.0 if women_first else OPEN)
        assert row.high < 1 if women_first else row.low > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["few women", "saturated", "Cauchy"])
def test_noise_is_seldom_called_a_difference(kind: str):
    rng, called = np.random.default_rng(3), 0
    for seed in range(80):
        women = 5 if kind == "few women" else 20
        cells = rng.standard_cauchy((45, 4)) if kind == "Cauchy" else rng.normal(size=(45, 4))
        cells = 8 * cells if kind == "saturated" else cells
        rows = ratio_rows(
            "t",
            {"xs": ("a",)},
            {"a": branch("a", cells, women, TEACHERS)},
            MeasureOptions(draws=20, shuffles=199, seed=seed),
        )
        called += any(row.verdict == DIFFERENCE for row in rows)
    assert called <= 9
