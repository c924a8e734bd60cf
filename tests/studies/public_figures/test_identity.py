"""Names: the landmark is what exchanged names give among people with the same labels."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.comparison.family import NONE_FOUND, NOT_MEASURED
from beholder.core.results import Row, results_table
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.identity import identity_rows
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
    decided = [row for row in rows if row.verdict is not None and (row.variant or "").startswith("within ")]
    return {(row.metric.rpartition("_")[2], row.subset or ""): row for row in decided}


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
    assert row.variant == "within gender, party"


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
    (finding,) = public_figure_findings(results_table(rows.values(), study="apa", model="m", dataset="apa"))
    return finding


@pytest.mark.parametrize("pictures", [1, 3])
def test_a_model_that_sees_gender_alone_is_not_told_to_know_people(pictures: int):
    people = crowd(pictures)
    rows = rows_of(people, sees_gender(people))
    assert rows["image", "senate"].value > 1.5 / 60
    assert rows["image", "senate"].value > 1.5 / 60, "above 1/n, which is the wrong landmark"
    finding = told(rows)
    assert finding.verdict == NONE_FOUND
    assert finding.headline == "The model is not found to tell people apart by name"
    assert finding.sentence.count("No more than exchanged names get was found") == 2, "given an image, and given a name"
    assert " times what exchanged names get is still possible" in finding.sentence


def test_a_model_that_knows_names_is_told_so_in_both_directions():
    people = crowd()
    finding = told(rows_of(people, sees_gender(people) + 5 * np.eye(60), "senate", "mayors"))
    assert finding.shown
    assert finding.headline == "The model tells people apart by name in every branch"
    assert "Given a photograph, the right name gets " in finding.sentence
    assert "Given a name, the right photograph gets " in finding.sentence
    assert "among 60 names of senators" in finding.sentence
    assert "among the photographs of senators" in finding.sentence, "a person may have several: 1/chance counts people"
    assert "; exchanged names " in finding.sentence
    assert finding.sentence.endswith(
        "Traits that are not labelled, such as age or hair, may suffice to tell people apart."
    )


def test_noise_finds_no_names_over_branches_and_directions():
    people = crowd()
    noise = np.random.default_rng(8).normal(size=(60, 60))
    rows = rows_of(people, noise, "senate", "mayors", "house")
    assert len(rows) == 6
    assert {row.verdict for row in rows.values()} == {NONE_FOUND}
    assert not told(rows).shown


def test_people_whose_labels_are_all_their_own_cannot_be_tested():
    people = pl.DataFrame({"name": ["Ann", "Bob"], "gender": ["woman", "man"]})
    assert rows_of(people, 9 * np.eye(2)) == {}
    row = Row("apa.identity_given_image", 0.9, 9, "probability", subset="senate", low=0.8, high=0.95, chance=0.5)
    finding = told({("image", "senate"): row})
    assert finding.verdict == NOT_MEASURED
    assert finding.sentence.endswith("so nothing is claimed.")


def test_the_smallest_p_of_the_shuffles_is_said_to_be_a_bound():
    people = crowd()
    row = rows_of(people, 9 * np.eye(60))["image", "senate"]
    assert (row.p_value, row.p_at_most) == (pytest.approx(1 / 2000), True)
    assert row.low > row.landmark
