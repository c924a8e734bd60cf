"""Names: the landmark is what shuffled names give among people with the same labels."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.comparison.verdicts import NONE_FOUND, NOT_MEASURED
from beholder.core.results import Row, results_table
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.identity import identity_rows, shuffled_names
from beholder.studies.study import MeasureOptions

FEW = pl.DataFrame(
    {
        "name": ["Ann", "Ann", "Bea", "Cid", "Dan", "Eli"],
        "gender": ["woman", "woman", "woman", "man", "man", "man"],
        "party": ["x", "x", "x", "x", "y", "y"],
    }
)


def rows_of(people: pl.DataFrame, cells: np.ndarray, *branches: str) -> dict[tuple[str, str], Row]:
    """By what is given and by branch; several branches have the same scores."""
    prompts = identity_prompts("n", "{}", people["name"].to_list()).table
    matrices = {
        branch: ScoreMatrix(branch, people, prompts, ("score",), cells[:, :, None], kind="identity", part=branch)
        for branch in branches or ("senate",)
    }
    rows = identity_rows("apa", matrices, MeasureOptions(draws=200))
    return {(row.metric.rpartition("_")[2], row.subset or ""): row for row in rows if row.landmark is not None}


def by_hand(people: pl.DataFrame, cells: np.ndarray, given: str) -> float:
    """Every way to exchange names within gender and party, one after the other."""
    names = list(dict.fromkeys(people["name"]))
    label = {row["name"]: (row["gender"], row["party"]) for row in people.to_dicts()}
    powers = np.exp(cells)
    shares = powers / powers.sum(axis=1 if given == "image" else 0, keepdims=True)
    means = []
    for order in permutations(names):
        called = dict(zip(names, order, strict=True))
        if all(label[own] == label[other] for own, other in called.items()):
            hits = [shares[i, names.index(called[who])] for i, who in enumerate(people["name"])]
            means.append(sum(hits) / (len(people) if given == "image" else len(names)))
    return float(np.mean(means))


@pytest.mark.parametrize("given", ["image", "name"])
def test_the_landmark_is_the_mean_over_all_exchanges_of_names(given: str):
    cells = np.random.default_rng(3).normal(size=(6, 5))
    row = rows_of(FEW, cells)[given, "senate"]
    assert row.landmark == pytest.approx(by_hand(FEW, cells, given))
    assert row.chance == pytest.approx(1 / 5 if given == "image" else 6 / 5 / 6)
    assert "names shuffled within gender and party" in (row.note or "")


def test_p_is_the_share_of_exchanges_that_reach_the_right_names():
    gains = np.random.default_rng(4).random((5, 5))
    right, groups = np.trace(gains), np.array([0, 1, 0, 0, 1])
    ways = [order for order in permutations(range(5)) if all(groups[list(order)] == groups)]
    reached = np.mean([sum(gains[a, b] for a, b in enumerate(order)) >= right - 1e-12 for order in ways])
    shuffled = shuffled_names(gains, groups, 20_000, np.random.default_rng(1))
    assert shuffled.p_value == pytest.approx(reached, abs=0.01)


def crowd(pictures: int = 1, people: int = 60) -> pl.DataFrame:
    table = pl.DataFrame(
        {"name": [f"P{i}" for i in range(people)], "gender": ["woman"] * (people // 4) + ["man"] * (people * 3 // 4)}
    )
    return pl.concat([table] * pictures)


def sees_gender(people: pl.DataFrame) -> np.ndarray:
    women = (people["gender"] == "woman").to_numpy()
    noise = np.random.default_rng(5).normal(size=(len(people), people["name"].n_unique()))
    return np.asarray(4.0 * (women[:, None] == women[None, : noise.shape[1]]) + 0.3 * noise)


def told(rows: dict[tuple[str, str], Row]) -> Finding:
    (finding,) = public_figure_findings(results_table(rows.values(), benchmark="apa", model="m", dataset="apa"))
    return finding


@pytest.mark.parametrize("pictures", [1, 3])
def test_a_model_that_sees_gender_alone_is_not_told_to_know_people(pictures: int):
    people = crowd(pictures)
    rows = rows_of(people, sees_gender(people))
    assert rows["image", "senate"].value > 1.5 / 60
    assert rows["image", "senate"].low > 1 / 60, "1/n is excluded, and is the wrong landmark"
    finding = told(rows)
    assert finding.verdict == NONE_FOUND
    assert finding.headline == "The model is not shown to tell people apart by name"
    assert finding.sentence.count(" times what shuffled names get") == 2, "given an image, and given a name"
    assert "Shuffled names themselves get up to" in finding.sentence


def test_a_model_that_knows_names_is_told_so_in_both_directions():
    people = crowd()
    finding = told(rows_of(people, sees_gender(people) + 5 * np.eye(60), "senate", "mayors"))
    assert finding.shown
    assert finding.headline == "The model tells people apart by name in every branch"
    assert "Given a photograph, the right name gets " in finding.sentence
    assert "Given a name, the right photograph gets " in finding.sentence
    assert "among 60 names of senators" in finding.sentence
    assert "among the photographs of senators" in finding.sentence, "a person may have several: 1/chance counts people"
    assert "; shuffled names " in finding.sentence


def test_noise_finds_no_names_and_its_p_is_corrected_over_branches_and_directions():
    people = crowd()
    noise = np.random.default_rng(8).normal(size=(60, 60))
    rows = rows_of(people, noise, "senate", "mayors", "house")
    assert {row.note.rpartition(", ")[2] for row in rows.values() if row.note} == {"Holm over 6 tests"}
    assert not told(rows).shown


def test_people_whose_labels_are_all_their_own_cannot_be_tested():
    people = pl.DataFrame({"name": ["Ann", "Bob"], "gender": ["woman", "man"]})
    assert rows_of(people, 9 * np.eye(2)) == {}
    row = Row("apa.identity_given_image", 0.9, 9, "probability", subset="senate", low=0.8, high=0.95, chance=0.5)
    finding = told({("image", "senate"): row})
    assert finding.verdict == NOT_MEASURED
    assert finding.sentence.endswith("so nothing is claimed.")


def test_an_interval_above_the_landmark_that_is_not_shown_says_why():
    row = Row("apa.identity_given_image", 0.03, 40, "probability", subset="senate", low=0.026, high=0.034, chance=0.025)
    rows = {("image", b): row._replace(subset=b, landmark=0.025, p_value=0.12) for b in ("senate", "mayors")}
    finding = told(rows)
    assert not finding.shown
    why = (
        "the interval lies above for senators (p = 0.12) and mayors (p = 0.12), but the test, corrected for 2, does not"
    )
    assert why in finding.sentence
    known = told({**rows, ("image", "house"): row._replace(subset="house", landmark=0.02, p_value=0.01)})
    assert known.shown
    assert "is shown for senators and mayors; the interval lies above for senators (p = 0.12)" in known.sentence


def test_the_smallest_p_of_the_shuffles_is_said_to_be_a_bound():
    people = crowd()
    row = rows_of(people, 9 * np.eye(60))["image", "senate"]
    assert (row.p_value, row.p_at_most) == (pytest.approx(0.002), True)
