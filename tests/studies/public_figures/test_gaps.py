"""Wrong occupations: women less men within branches, tested together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.measures import occupation_gap_rows
from beholder.studies.study import MeasureOptions

WORDS = ("politician", "receptionist", "actor", "actress")
PROMPTS = prompt_set(
    "w",
    [
        {"text": w, "level": "occupation", "concept": w, "correct_for": "*" if w == "politician" else None}
        for w in WORDS
    ],
).table
POOL = {"politicians": ("house", "mayors")}


def branch(name: str, shares: np.ndarray, women: int, pictures: int = 1) -> ScoreMatrix:
    people = pl.DataFrame(
        {
            "branch": [name] * len(shares),
            "name": [f"{name} {i // pictures}" for i in range(len(shares))],
            "gender": ["woman"] * women + ["man"] * (len(shares) - women),
        }
    )
    return ScoreMatrix(name, people, PROMPTS, ("score",), np.log(shares)[:, :, None], kind="association", part=name)


def gaps(*matrices: ScoreMatrix) -> dict[str | None, Row]:
    rows = occupation_gap_rows("apa", POOL, {each.part: each for each in matrices}, MeasureOptions(draws=300))
    return {row.concept: row for row in rows if row.variant is None}


def random_shares(n: int, seed: int = 1, concentration: tuple[float, ...] = (6, 1, 1, 1)) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(concentration, size=n)


def test_a_gap_is_the_weighted_mean_of_the_branches_own():
    house, mayors = random_shares(40), random_shares(20, 2)
    rows = gaps(branch("house", house, 10), branch("mayors", mayors, 10))
    weights = [10 * 30 / 40, 10 * 10 / 20]
    own = [part[:10, 1].mean() - part[10:, 1].mean() for part in (house, mayors)]
    assert rows["receptionist"].value == pytest.approx(np.average(own, weights=weights))
    assert rows["receptionist"].low < rows["receptionist"].value < rows["receptionist"].high


def test_actor_and_actress_are_one_occupation():
    house = random_shares(40)
    rows = gaps(branch("house", house, 10))
    assert list(rows) == ["receptionist", "actor or actress"], "the right one is measured by b"
    merged = house[:, 2] + house[:, 3]
    assert rows["actor or actress"].value == pytest.approx(merged[:10].mean() - merged[10:].mean())


def test_women_called_actress_and_men_called_actor_are_no_gap():
    shares = np.tile([0.2, 0.1, 0.65, 0.05], (60, 1))
    shares[:20, [2, 3]] = shares[:20, [3, 2]]
    rows = gaps(branch("house", np.abs(shares + random_shares(60) / 100), 20))
    assert rows["actor or actress"].verdict == NONE_FOUND


def test_a_branch_with_many_women_is_no_effect_of_gender():
    """Mayors are called receptionist whatever their gender, and most of them are women."""
    house = random_shares(100, 3, (6, 1, 1, 1))
    mayors = random_shares(60, 4, (1, 6, 1, 1))
    crude = np.r_[house[:10, 1], mayors[:50, 1]].mean() - np.r_[house[10:, 1], mayors[50:, 1]].mean()
    row = gaps(branch("house", house, 10), branch("mayors", mayors, 50))["receptionist"]
    assert crude > 0.2
    assert abs(row.value) < 0.1
    assert row.verdict == NONE_FOUND


def test_three_pictures_of_a_person_count_as_one_person():
    few = random_shares(30)
    once, thrice = gaps(branch("house", few, 10)), gaps(branch("house", np.repeat(few, 3, axis=0), 30, 3))
    for concept, row in once.items():
        assert thrice[concept].value == pytest.approx(row.value)
        assert thrice[concept].verdict == row.verdict
        assert thrice[concept].n == 30


def test_a_planted_gap_is_shown_and_fewer_than_five_women_show_none():
    shares = random_shares(80)
    shares[:30, 1] += 0.5
    shares /= shares.sum(axis=1, keepdims=True)
    row = gaps(branch("house", shares, 30))["receptionist"]
    assert (row.group, row.against, row.p_at_most) == ("woman", "man", True)
    assert row.verdict == DIFFERENCE
    assert row.low > 0
    few = gaps(branch("house", shares, 4))["receptionist"]
    assert few.verdict == TOO_LITTLE
    assert np.isnan([few.low, few.p_value]).all()
    assert "fewer than 5" in (few.note or "")


@pytest.mark.parametrize("people", [10, 30])
def test_women_who_are_all_called_receptionist_are_found(people: int):
    """A model without any doubt: no score varies within a gender, and that is no lack of evidence."""
    shares = np.full((2 * people, 4), 1e-30)
    shares[:people, 1], shares[people:, 0] = 1.0, 1.0
    row = gaps(branch("house", shares, people))["receptionist"]
    assert (row.value, row.verdict) == (pytest.approx(1.0), DIFFERENCE)
    assert 0 < row.low < 1


def test_opposite_gaps_of_two_branches_do_not_cancel():
    house, mayors = random_shares(60), random_shares(60, 2)
    for part, women in ((house, slice(0, 30)), (mayors, slice(30, 60))):
        part[women, 1] += 0.5
        part /= part.sum(axis=1, keepdims=True)
    matrices = {"house": branch("house", house, 30), "mayors": branch("mayors", mayors, 30)}
    rows = [r for r in occupation_gap_rows("apa", POOL, matrices, MeasureOptions()) if r.concept == "receptionist"]
    assert {row.subset: row.verdict for row in rows} == {
        "politicians": NONE_FOUND,
        "house": DIFFERENCE,
        "mayors": DIFFERENCE,
    }
    assert {row.variant for row in rows} == {None, "within branch"}
