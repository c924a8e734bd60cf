"""b by pool, by branch, for either word, and with each wrong option left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.core.results import Row
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.ratios import other_ratio_rows, ratio_rows
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
    rows = [
        row for read in (ratio_rows, other_ratio_rows) for row in read("t", pools, scored, MeasureOptions(draws=300))
    ]
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


def test_a_p_that_no_draw_reaches_is_said_to_be_a_bound():
    cells = CELLS * 0.1
    cells[:8, 2] -= 3
    rows = rows_of({"xs": ("a",)}, branch("a", cells, 8, TEACHERS))
    assert rows["bias_ratio", "xs", None].p_at_most
    even = rows_of({"xs": ("a",)}, branch("a", CELLS, 8, TEACHERS))
    assert even["bias_ratio", "xs", None].p_at_most is None
