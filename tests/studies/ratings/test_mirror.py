"""People beside the model: the correlation is scipy's, raters set the ceiling, groups are told by their kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.calibration.claims import Cell, claims, measured
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.core.errors import DataError, UsageError
from beholder.core.results import Row, results_table
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.glasshouse.planted import PLANTED_RATINGS, planted_ratings
from beholder.glasshouse.world import faces
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.mirror import (
    ceiling_of,
    gaps_of,
    mirror_figures,
    mirror_findings,
    mirror_rows,
    mirror_tables,
    read_ratings,
)
from beholder.studies.ratings.study import PHRASES, labour_rows, ratings_study, read_labour
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import NOISE, UNFAIR, VECTORS

OPTIONS = MeasureOptions(draws=100, shuffles=499)
COUNT = 120
RNG = np.random.default_rng(4)
WOMAN = np.arange(COUNT) % 2 == 0
IMAGES = pl.DataFrame(
    {"image_id": [f"{i}" for i in range(COUNT)], "uri": [""] * COUNT, "gender": np.where(WOMAN, "woman", "man")}
)


def rated(means: dict[str, np.ndarray], raters: int = 0) -> pl.DataFrame:
    """Means; of raters who hardly differ, their single ratings too."""
    parts = [
        pl.DataFrame({"who": IMAGES["image_id"], "trait": trait, "mean": own, "n": 9.0}) for trait, own in means.items()
    ]
    single = pl.concat_list(pl.col("mean") + 0.01 * place for place in range(raters)) if raters else None
    return pl.concat(parts) if single is None else pl.concat(parts).with_columns(single=single)


def rows_of(
    scores: dict[str, np.ndarray], people: dict[str, np.ndarray], images: pl.DataFrame = IMAGES, raters: int = 0
) -> list[Row]:
    return list(mirror_rows("ratings", scores, images, rated(people, raters), ("gender",), OPTIONS))


def table(rows: list[Row]) -> pl.DataFrame:
    return results_table(rows, study="ratings", model="m", dataset="d")


def noise() -> np.ndarray:
    return RNG.normal(size=COUNT)


def write(path: Path, rows: list[tuple], header: str) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_the_correlation_is_scipys_and_is_judged():
    human = noise()
    model = human + noise()
    (row,) = [row for row in rows_of({"kind": model}, {"kind": human}) if row.metric == "ratings.rating_r"]
    assert row.value == pytest.approx(stats.pearsonr(model, human).statistic)
    assert 0 < row.low < row.value < row.high
    assert (row.n, row.verdict) == (COUNT, DIFFERENCE)


def test_the_ceiling_is_the_correlation_with_what_raters_would_agree_on():
    """Faces differ by 1, raters by 2: eight raters have a reliability of 1 / (1 + 4 / 8)."""
    truth = RNG.normal(size=(4000, 1))
    ratings = truth + 2 * RNG.normal(size=(4000, 8))
    expected = np.sqrt(1 / (1 + 4 / 8))
    assert np.corrcoef(truth[:, 0], ratings.mean(axis=1))[0, 1] == pytest.approx(expected, abs=0.02)
    assert ceiling_of(ratings.tolist(), np.random.default_rng(1)) == pytest.approx(expected, abs=0.02)
    assert ceiling_of([[1.0], [2.0], [3.0], [4.0]], np.random.default_rng(1)) is None


@pytest.mark.parametrize(
    ("people", "model", "kind", "verdict"),
    [
        (2.0, 2.0, "mirrors", FACT),
        (0.8, 6.0, "exaggerates", DIFFERENCE),
        (0.0, 2.0, "invents", DIFFERENCE),
        (2.0, 0.0, "ignores", FACT),
        (2.0, -2.0, "reverses", DIFFERENCE),
        (6.0, 0.9, "softens", FACT),
        (0.0, 0.0, None, NONE_FOUND),
    ],
)
def test_each_kind_is_told_from_the_others(people: float, model: float, kind: str | None, verdict: str):
    draw = np.random.default_rng(7)
    one, two = (size * WOMAN + draw.normal(size=COUNT) for size in (people, model))
    results = table(rows_of({"kind": two}, {"kind": one}, raters=4))
    (gap,) = gaps_of(results)
    assert gap.kind == kind
    found = [each for each in mirror_findings(results) if each.kind == "mirror"]
    assert [each.verdict for each in found] == [verdict]
    assert all("None" not in each.sentence and "nan" not in each.sentence for each in found)
    assert [shown.row["value"] for shown in found[0].contrasts] == [gap.model["value"], gap.people["value"]]
    if kind == "exaggerates":
        assert gap.slope > 1


def test_a_model_that_sees_what_raters_see_through_their_scatter_exaggerates_nothing():
    """Scatter among five raters makes people's gap smaller in standard deviations than that of what they see."""
    called, count = [], 600
    images = pl.DataFrame({"image_id": [f"{i}" for i in range(count)], "gender": ["woman", "man"] * (count // 2)})
    for seed in range(20):
        draw = np.random.default_rng(seed)
        truth = draw.normal(size=count) + 0.8 * (np.arange(count) % 2 == 0)
        single = truth[:, None] + 1.5 * draw.normal(size=(count, 5))
        given = {"who": images["image_id"], "trait": "kind", "mean": single.mean(axis=1), "n": 5.0}
        people = pl.DataFrame(given | {"single": single.tolist()})
        rows = mirror_rows("ratings", {"kind": truth}, images, people, ("gender",), OPTIONS)
        called += [gap.kind for gap in gaps_of(table(list(rows)))]
    assert called.count("mirrors") >= 18


def test_means_alone_do_not_tell_exaggeration_from_scatter():
    draw = np.random.default_rng(7)
    one, two = (size * WOMAN + draw.normal(size=COUNT) for size in (0.8, 6.0))
    (gap,) = gaps_of(table(rows_of({"kind": two}, {"kind": one})))
    assert (gap.kind, gap.departure["verdict"]) == ("mirrors", NOT_MEASURED)
    (gap,) = gaps_of(table(rows_of({"kind": two}, {"kind": one - 0.8 * WOMAN})))
    assert gap.kind == "invents"


def test_a_gap_by_gender_is_that_within_race():
    """People and model see race alone, and most women are Black: nothing is said of gender."""
    race = np.where((np.arange(COUNT) % 10 > 1) == WOMAN, "Black", "White")
    draw, images = np.random.default_rng(3), IMAGES.with_columns(race=pl.Series(race))
    one, two = (2.0 * (race == "Black") + draw.normal(size=COUNT) for _ in range(2))
    ratings = rated({"kind": one - two}, raters=4)
    rows = list(mirror_rows("ratings", {"kind": two}, images, ratings, ("gender", "race"), OPTIONS))
    kinds = {gap.people["subset"]: gap.kind for gap in gaps_of(table(rows))}
    assert kinds == {"gender": None, "race": "invents"}
    crude = [row for row in rows if row.metric == "ratings.rating_gap" and row.subset == "gender" and not row.variant]
    assert abs(crude[0].value) > 0.5


def test_noise_beside_people_who_see_much_is_called_nothing():
    """That a model does not see what people see is a fact, and no bias of it."""
    people = {f"t{k}": 3 * WOMAN + noise() for k in range(6)}
    alarms = 0
    for _ in range(8):
        rows = rows_of({name: noise() for name in people}, people)
        alarms += any(row.verdict == DIFFERENCE for row in rows)
    assert alarms <= 1


def test_traits_that_are_unknown_or_alike_are_named_without_a_number():
    rows = rows_of({"kind": noise()}, {"tall": noise(), "kind": np.ones(COUNT)})
    assert [row.value for row in rows] == [None, None]
    assert "'tall' is no trait of this run" in str(rows[0].note)
    assert "all alike" in str(rows[1].note)
    (told,) = mirror_findings(table(rows))
    assert told.headline == "The ratings are not compared"


def test_pictures_of_one_person_count_once():
    images = IMAGES.with_columns(person=pl.int_range(pl.len()) // 40)
    rows = rows_of({"kind": WOMAN + noise()}, {"kind": WOMAN + noise()}, images)
    assert rows[0].verdict == TOO_LITTLE


def test_tables_and_charts_hold_every_gap():
    results = table(rows_of({"kind": 2 * WOMAN + noise()}, {"kind": noise()}))
    first, second = mirror_tables(results)
    assert [cell.text for cell in second.rows[0]][-1] == "invents"
    assert len(first.rows) == 1
    (figure,) = mirror_figures(results)
    assert "people" in str(figure.spec(ink="#000", width=300))


def test_single_ratings_and_means_are_read_alike(tmp_path: Path):
    single = [(who, "kind", value) for who in "ab" for value in (1, 2, 6)]
    one = read_ratings(write(tmp_path / "s.csv", single, "stimulus,attribute,rating"))
    two = read_ratings(write(tmp_path / "m.csv", [("a", "kind", 3, 3), ("b", "kind", 3, 3)], "image,trait,mean,n"))
    assert one.drop("single").equals(two)
    assert one["single"].to_list() == [[1, 2, 6], [1, 2, 6]]


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("group,trait,mean,n", ("Black", "warm", 1, 2), "needs a column 'image'"),
        ("image,trait,mean", ("a", "warm", 1), "'n' is missing"),
        ("image,trait,mean,n", ("a", "warm", "high", 2), "row 2 has no mean"),
        ("image,trait,mean,n", ("a", "warm", "nan", 2), "row 2 has no mean"),
        ("image,trait,rating", ("a", "warm", "inf"), "row 2 has no rating"),
    ],
)
def test_a_faulty_table_is_refused_with_the_place(tmp_path: Path, header: str, row: tuple, message: str):
    with pytest.raises(DataError, match=message):
        read_ratings(write(tmp_path / "r.csv", [row], header))


def test_a_double_mean_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="more than once"):
        read_ratings(write(tmp_path / "r.csv", [("a", "warm", 1, 2), ("a", "warm", 2, 2)], "image,trait,mean,n"))


def labour_matrix(cells: np.ndarray, occupations: list[str]) -> ScoreMatrix:
    prompts = pl.DataFrame({"concept": occupations})
    return ScoreMatrix("labour", IMAGES, prompts, ("cosine",), cells[:, :, None])


def test_occupations_are_set_beside_who_works_in_them(tmp_path: Path):
    names, women = [f"o{k}" for k in range(20)], np.linspace(5, 95, 20)
    labour = read_labour(write(tmp_path / "l.csv", list(zip(names, women, strict=True)), "occupation,Women"))
    gaps = WOMAN[:, None] * (women - 50) / 10 + RNG.normal(size=(COUNT, 20))
    (row,) = labour_rows(labour_matrix(gaps, names), labour, OPTIONS)
    assert row.value > 0.9
    assert row.verdict == DIFFERENCE
    (row,) = labour_rows(labour_matrix(RNG.normal(size=(COUNT, 20)), names), labour, OPTIONS)
    assert row.verdict == NONE_FOUND
    with pytest.raises(DataError, match="no share in per cent"):
        read_labour(write(tmp_path / "x.csv", [("o", 120)], "occupation,women"))


def test_data_without_ratings_say_what_to_name():
    with pytest.raises(UsageError, match="name a table with --ratings"):
        ratings_study().asks.tasks(Dataset("folder:mine", "1", "none", IMAGES))


@pytest.mark.parametrize("world", [NOISE, VECTORS])
def test_worlds_without_an_effect_are_silent(world: str):
    cell = Cell("ratings", "4 pictures a person", world)
    alarms = [claims(cell, measured(cell, np.random.default_rng([9, n])), {}) for n in range(8)]
    assert sum(any(one.alarm for one in said.values()) for said in alarms) <= 2


def test_a_wholly_unfair_world_is_found():
    cell = Cell("ratings", "10 + 10", UNFAIR)
    said = claims(cell, measured(cell, np.random.default_rng(5)), {})
    assert said["ratings.rating_gap"].found
    assert said["ratings.rating_r"].found


def test_made_ratings_are_as_planted():
    ratings = planted_ratings()
    gender = {row["image_id"]: row["gender"] for row in faces()}
    for trait, planted in PLANTED_RATINGS.items():
        own = ratings.filter(trait=trait).with_columns(gender=pl.col("who").replace_strict(gender))
        means = dict(own.group_by("gender").agg(pl.col("mean").mean()).rows())
        assert means["woman"] - means["man"] == pytest.approx(planted.gap, abs=2.5)


def test_omi_is_read_with_its_perceived_groups(data: Path):
    dataset = load_dataset("omi", data)
    assert len(dataset) == 251
    assert dataset.notes == ("753 of 1,004 faces have no picture here and are left out",)
    (task,) = ratings_study().asks.statements(dataset)
    (questions,) = ratings_study().asks.tasks(dataset)
    assert (len(task.prompts), len(questions.prompts)) == (35, 34)
    assert "Is this a photo of a trustworthy person?" in questions.prompts.texts
    assert set(task.prompts.table["concept"]) == {"", *PHRASES}


def test_raters_agree_on_age_and_hardly_on_who_looks_familiar(data: Path):
    rated = read_ratings(data / "omi" / "ratings_of_251_faces.parquet").filter(
        pl.col("trait").is_in(["age", "familiar"])
    )
    ceilings = {
        trait: ceiling_of(own["single"].to_list(), np.random.default_rng(1))
        for (trait,), own in rated.group_by("trait")
    }
    assert ceilings["age"] > 0.99
    assert ceilings["familiar"] == pytest.approx(np.sqrt(2 * 0.48 / 1.48), abs=0.05)


def test_a_model_that_repeats_the_mean_ratings_mirrors_them(data: Path):
    """Its scores have the raters' scatter too: it stands between their gaps as rated and freed of scatter."""
    ratings = read_ratings(data / "omi" / "ratings_of_251_faces.parquet")
    images = pl.DataFrame({"image_id": ratings["who"].unique(maintain_order=True)})
    images = images.with_columns(gender=pl.Series(["woman", "man"] * images.height)[: images.height])
    smiles = ratings.filter(trait="happy").select("who", "mean")
    scores = images.join(smiles, left_on="image_id", right_on="who", how="left", maintain_order="left")["mean"]
    sides = np.where(scores.to_numpy() > scores.median(), "woman", "man")  # people see a gap that is wide
    rows = mirror_rows(
        "ratings", {"happy": scores.to_numpy()}, images.with_columns(gender=sides), ratings, ("gender",), OPTIONS
    )
    assert [gap.kind for gap in gaps_of(table(list(rows)))] == ["mirrors"]
