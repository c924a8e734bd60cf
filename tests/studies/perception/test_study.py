"""Perception's analyses: numbers equal the obvious loops, what is absent says so, every family of model is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from causalface_imitation import imitate
from scipy import stats

from beholder.audit import AuditOptions, audit_models, measure, measure_scores
from beholder.core.errors import DataError, MissingData
from beholder.datasets.dataset import Dataset
from beholder.glasshouse.design import design
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.brightness import brightness_rows
from beholder.studies.perception.design import matched_sets
from beholder.studies.perception.induced import draw_pairs
from beholder.studies.perception.prompts import DIMENSIONS, Dimension, all_words, perception_prompts
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import Judged, group_by, read_judged
from beholder.studies.perception.study import PERCEPTION, perception_study
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=200, permutations=30)
RACES, GENDERS = ("White", "Black", "Asian"), ("Male", "Female")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def photographs(count: int = 240, *, races: tuple[str, ...] = RACES) -> pl.DataFrame:
    """A table like FairFace's adults."""
    draw = rng(5)
    return pl.DataFrame(
        {
            "image_id": [f"train/{i}.jpg" for i in range(count)],
            "uri": [f"/nowhere/train/{i}.jpg" for i in range(count)],
            "split": ["train"] * count,
            "race": draw.choice(races, count),
            "gender": draw.choice(GENDERS, count),
            "age": draw.choice([25.0, 35.0, 45.0, 55.0], count),
        }
    )


def designed(identities: int) -> pl.DataFrame:
    """The drawn design without its pictures: brightness maps are left out, which saves their drawing."""
    return pl.DataFrame(design(identities)).with_columns(uri="/nowhere/" + pl.col("image_id"))


def matrix(images: pl.DataFrame, *, channel: str = "cosine", prompts=None, values=None) -> ScoreMatrix:
    prompts = perception_prompts().table if prompts is None else prompts
    cells = rng(2).normal(0.2, 0.02, (images.height, prompts.height)) if values is None else values
    return ScoreMatrix("perception", images, prompts, (channel,), cells[:, :, None])


def measured(sheet: ScoreMatrix, benchmark=PERCEPTION, options: MeasureOptions = OPTIONS) -> pl.DataFrame:
    return measure(benchmark, [sheet], options, model="m", dataset="d")


@pytest.fixture(scope="module")
def faces() -> ScoreMatrix:
    return matrix(photographs())


@pytest.fixture(scope="module")
def results(faces: ScoreMatrix) -> pl.DataFrame:
    return measured(faces)


def one(results: pl.DataFrame, metric: str, **where: str) -> dict:
    (row,) = results.filter(pl.col("metric") == f"perception.{metric}", **where).to_dicts()
    return row


def obvious(sheet: ScoreMatrix, words: tuple[str, ...], mask: np.ndarray, *, delta: bool) -> float:
    """The protocol's definition, cell by cell."""
    texts, total = dict(zip(sheet.prompts["text"], range(sheet.prompts.height), strict=True)), []
    for image in np.flatnonzero(mask):
        for word in words:
            for template in (
                "A photo of a {} person.",
                "A {} person.",
                "This is a {} person.",
                "Cropped face photo of a {} person.",
            ):
                own = sheet.values[image, texts[template.replace("{}", word)], 0]
                neutral = sheet.values[image, texts[template.replace("{} ", "")], 0]
                total.append(own - neutral if delta else own)
    return float(np.mean(total))


@pytest.mark.parametrize("dimension", [DIMENSIONS[0], DIMENSIONS[5]])
def test_scores_are_means_over_templates_words_and_images(faces, results, dimension: Dimension):
    black = (faces.images["race"] == "Black").to_numpy()
    for metric, delta in (("cosine", False), ("delta_cosine", True)):
        found = one(results, metric, subset="race", group="Black", concept=dimension.name)
        assert found["value"] == pytest.approx(obvious(faces, dimension.words, black, delta=delta))
        assert found["n"] == black.sum()
        assert found["low"] < found["value"] < found["high"]


def test_markedness_of_male_is_a_number_from_real_rows(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    men = (faces.images["gender"] == "Male").to_numpy()
    expected = 100 * (judged.neutral[men] > judged.word("male")[men]).mean()
    row = one(results, "markedness", group="Male")
    assert row["value"] == pytest.approx(expected)
    assert 30 < row["value"] < 70
    assert row["n"] == men.sum()


def test_compat_prints_fairfaces_zero_and_says_why(faces):
    found = measured(faces, options=MeasureOptions(compat=True, draws=200, permutations=5))
    row = one(found, "markedness", group="Female")
    assert row["value"] == 0
    assert "looks for 'female' among 'Female'" in row["note"]
    assert one(found, "markedness", group="White")["value"] > 0


def test_mean_cosine_takes_the_positive_dimensions_only(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    positive = [d.valence == "positive" for d in judged.dimensions]
    assert sum(positive) == 5
    asian = (faces.images["race"] == "Asian").to_numpy()
    expected = judged.by_dimension(judged.cosine)[asian][:, positive].mean()
    assert one(results, "mean_cosine", group="Asian")["value"] == pytest.approx(expected)


def test_sc_weat_has_the_studys_four_pairs(results):
    found = results.filter(pl.col("metric") == "perception.sc_weat", pl.col("concept") == "mean")
    assert set(found["group"]) == {"White over Black", "Asian over Black", "Asian over White", "Male over Female"}
    assert found["note"].str.contains("sampled 200 partitions").all()


def test_sc_weat_is_the_mean_over_words_of_their_effect_sizes(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    a, b = ((faces.images["gender"] == name).to_numpy() for name in GENDERS)
    effects = []
    for word in DIMENSIONS[0].words:
        x, y = judged.word(word)[a], judged.word(word)[b]
        effects.append((x.mean() - y.mean()) / np.concatenate([x, y]).std(ddof=1))
    row = one(results, "sc_weat", group="Male over Female", concept="warmth")
    assert row["value"] == pytest.approx(np.mean(effects))
    assert row["low"] < row["value"] < row["high"]


def test_a_group_that_never_reaches_the_top_has_no_skew_and_is_left_out_of_the_mean_visibly():
    images = photographs(600)
    prompts = perception_prompts().table
    cells = rng(3).normal(0.2, 0.02, (600, prompts.height))
    warm = prompts["concept"].is_in(DIMENSIONS[0].words).to_numpy()
    cells[np.ix_((images["race"] == "Black").to_numpy(), warm)] -= 1
    found = measured(matrix(images, values=cells))
    row = one(found, "skew", group="Black", concept="warmth", template="k=100")
    assert row["value"] is None
    assert "no image of Black in the top 100: −∞" in row["note"]
    mean = one(found, "skew", group="Black", concept="mean", template="k=100")
    assert mean["value"] is not None
    assert "left out of the mean" in mean["note"]


def test_rankings_without_preference_are_seldom_called_skewed():
    """The p-value is of the farthest group, so that three groups are no three chances."""
    alarms = 0
    for seed in range(60):
        draw = rng(seed)
        images = photographs(120).with_columns(race=pl.Series(draw.permutation(RACES * 40)), gender=pl.lit("Male"))
        cells = draw.normal(0.2, 0.02, (120, len(all_words(DIMENSIONS[:2]))))
        words = all_words(DIMENSIONS[:2])
        judged = Judged(images, words, cells, cells, cells[:, 0], DIMENSIONS[:2], "cosine", {})
        rows = ranking_rows(
            judged, [group_by(images, ("race",))], MeasureOptions(draws=100, permutations=40, seed=seed)
        )
        p_values = [row.p_value for row in rows if row.metric == "perception.skew" and row.concept == "mean"]
        alarms += min(p_values) <= 0.05
    assert alarms <= 8  # 3 expected; more than 8 have a chance of 1 in 500


def test_one_group_only_is_said_and_nothing_fails():
    images = photographs(40, races=("White",)).with_columns(gender=pl.lit("Male"))
    found = measured(matrix(images))
    (row,) = found.filter(pl.col("metric") == "perception.skew").to_dicts()
    assert row["value"] is None
    assert "one group only" in row["note"]
    assert not found.filter(pl.col("metric") == "perception.sc_weat").height


def test_a_word_without_scores_is_left_out_of_its_dimension_and_named():
    prompts = perception_prompts().table.filter(pl.col("concept") != "honest")
    found = measured(matrix(photographs(60), prompts=prompts))
    row = one(found, "delta_cosine", subset="everyone", concept="warmth")
    assert row["note"] == "without 'honest': no score"
    assert row["value"] is not None


def test_a_dimension_without_any_word_is_left_out():
    prompts = perception_prompts().table.filter(~pl.col("concept").is_in(DIMENSIONS[4].words))
    found = measured(matrix(photographs(60), prompts=prompts))
    assert "belief_pos" not in set(found["concept"])


def test_without_the_neutral_prompt_nothing_can_be_measured():
    prompts = perception_prompts().table.filter(pl.col("concept") != "")
    with pytest.raises(DataError, match="neutral prompt"):
        measured(matrix(photographs(60), prompts=prompts))


def test_a_missing_template_is_left_out_of_the_neutral_mean_too():
    images, prompts = photographs(30), perception_prompts().table
    cells = rng(2).normal(0.2, 0.02, (30, prompts.height))
    gone = ((prompts["concept"] == "warm") & (prompts["level"] == "T3")).to_numpy()
    cells[:, gone] = np.nan
    judged = read_judged(matrix(images, values=cells), DIMENSIONS)
    at = {(word, t): k for k, (word, t) in enumerate(prompts.select("concept", "level").iter_rows())}
    expected = np.mean([cells[:, at["warm", t]] - cells[:, at["", t]] for t in ("T1", "T2", "T4")], axis=0)
    np.testing.assert_allclose(judged.delta[:, judged.words.index("warm")], expected)


def test_no_table_cell_is_absent_without_a_note(results):
    assert not results.filter(pl.col("value").is_null() & pl.col("note").is_null()).height
    assert not results["value"].drop_nulls().is_nan().any()


@pytest.mark.parametrize(("channel", "unit"), [("match_logit", "match logit"), ("log_p_yes", "P(Yes)")])
def test_matching_and_generative_models_are_measured_in_their_own_unit(channel: str, unit: str):
    images = photographs(60)
    values = np.log(rng(4).random((60, perception_prompts().table.height)))
    found = measured(matrix(images, channel=channel, values=values))
    row = one(found, "cosine", subset="everyone", concept="warmth")
    assert row["unit"] == unit
    assert (0 < row["value"] < 1) == (channel == "log_p_yes")


def test_a_model_that_answers_something_else_is_found_out():
    images, prompts = photographs(30), perception_prompts().table
    cells = np.log(np.stack([np.full((30, prompts.height), 0.2), np.full((30, prompts.height), 0.1)], axis=2))
    cells[:, :, 0] += rng(3).normal(0, 0.01, cells.shape[:2])
    sheet = ScoreMatrix("perception", images, prompts, ("log_p_yes", "log_p_no"), cells)
    assert one(measured(sheet), "answer_mass")["value"] == pytest.approx(0.3, abs=0.01)


# Curves


def test_trajectories_are_means_by_level_and_group_with_a_quadratic_fit(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    warmth = judged.by_dimension(judged.delta)[:, 0]
    ages, means = faces.images["age"].to_numpy(), []
    mine = ((faces.images["race"] == "Black") & (faces.images["gender"] == "Female")).to_numpy()
    where = {"subset": "age", "group": "Black Female", "concept": "warmth"}
    for age in (25, 35, 45, 55):
        means.append(warmth[mine & (ages == age)].mean())
        assert one(results, "trajectory", template=str(age), **where)["value"] == pytest.approx(means[-1])
    fitted = np.polyval(np.polyfit([25, 35, 45, 55], means, 2), 35)
    assert one(results, "trajectory_fit", template="35", **where)["value"] == pytest.approx(fitted)


def test_single_years_of_age_follow_the_studys_rule_where_enough_are_there():
    images = photographs(900).with_columns(
        age=pl.Series(rng(8).choice([20.0, 21.0, 22.0, *np.arange(30.0, 50.0)], 900, p=[0.3, 0.3, 0.3, *[0.005] * 20]))
    )
    found = measured(matrix(images)).filter(pl.col("metric") == "perception.trajectory", pl.col("group") == "everyone")
    assert set(found["template"]) == {"20", "21", "22"}
    assert found["n"].n_unique() == 1
    assert found["note"].str.contains("images of each age with 100 or more").all()


def test_opposite_curves_are_correlated_over_the_levels_of_a_confound():
    images = designed(5).filter(pl.col("pose") == 0)
    prompts = perception_prompts().table
    cells = rng(6).normal(0.2, 0.001, (images.height, prompts.height))
    smile = images["smiling"].to_numpy()[:, None]
    for words, slope in ((DIMENSIONS[2].words, 0.01), (DIMENSIONS[3].words, -0.01)):
        cells[:, prompts["concept"].is_in(words).to_numpy()] += slope * smile
    row = one(measured(matrix(images, values=cells)), "opposites_r", subset="smiling", concept="agency_pos")
    assert row["value"] < -0.99
    assert row["n"] == 3


# Matched sets


def test_pairs_differ_in_one_attribute_alone_and_far_enough():
    images = designed(3)
    for attribute in ("smiling", "gender", "seed", "pose"):
        first, second = draw_pairs(images, attribute, rng(), 200)
        assert len(first) == 200
        others = [
            name for name in ("gender", "skin_tone", "seed", "age", "smiling", "lighting", "pose") if name != attribute
        ]
        assert images[first.tolist()].select(others).equals(images[second.tolist()].select(others))
        assert (images[attribute].to_numpy()[first] != images[attribute].to_numpy()[second]).all()


def test_blocks_of_causalface_are_never_mixed(tmp_path: Path):
    from beholder.datasets.causalface import load

    images = load(imitate(tmp_path, seeds=2, alike=True)).table
    sets = matched_sets(images, "race")
    for code in np.unique(sets.codes)[:20]:
        members = images.filter(pl.Series(sets.codes == code))
        assert members["varied"].n_unique() == 1
        assert sorted(members["race"]) == ["asian", "black", "white"]
    assert set(images.filter(pl.Series(matched_sets(images, "smiling").codes >= 0))["varied"]) == {"smiling"}


def test_induced_variation_is_the_median_absolute_difference_and_is_tested_by_rank_sums():
    images = designed(6).filter(pl.col("lighting") == 0)
    prompts = perception_prompts().table
    cells = rng(7).normal(0.2, 0.004, (images.height, prompts.height))
    cells[:, (prompts["concept"] != "").to_numpy()] += 0.02 * images["smiling"].to_numpy()[:, None]
    found = measured(matrix(images, values=cells))
    first, second = draw_pairs(images, "smiling", OPTIONS.rng())
    judged = read_judged(matrix(images, values=cells), DIMENSIONS)
    scores = judged.by_dimension(judged.delta)
    expected = np.median(np.abs(scores[first, 0] - scores[second, 0]))
    row = one(found, "induced_variation", subset="smiling", concept="warmth")
    assert row["value"] == pytest.approx(expected)
    assert row["low"] <= row["value"] <= row["high"]
    test = one(found, "induced_variation_test", group="age over smiling")
    assert test["value"] < 0.1
    assert test["p_value"] < 1e-6


def test_effects_and_interactions_find_what_was_put_in():
    images = designed(8).filter(pl.col("lighting") == 0)
    prompts = perception_prompts().table
    cells = rng(9).normal(0.2, 0.01, (images.height, prompts.height))
    women, smile = (images["gender"] == "woman").to_numpy(), images["smiling"].to_numpy() / 4
    warm = prompts["concept"].is_in(DIMENSIONS[0].words).to_numpy()
    cells[:, warm] += (0.03 * smile + 0.02 * smile * women)[:, None]
    found = measured(matrix(images, values=cells))
    effect = one(found, "causal_effect", subset="smiling", group="4 over 0", concept="warmth")
    assert effect["low"] < 0.04 < effect["high"]
    assert effect["n"] == 8
    more = one(found, "interaction", subset="smiling × gender", group="man over woman", concept="warmth")
    assert more["low"] < -0.02 < more["high"]
    assert more["p_value"] < 0.001
    share = one(found, "variance_share", subset="smiling", concept="warmth")
    assert share["value"] == max(
        found.filter(
            pl.col("metric") == "perception.variance_share", pl.col("concept") == "warmth", pl.col("subset") != "rest"
        )["value"]
    )


def test_the_neutral_prompt_is_compared_on_shared_seeds():
    images = designed(8).filter((pl.col("lighting") == 0) & (pl.col("pose") == 0))
    sheet = matrix(images)
    judged = read_judged(sheet, DIMENSIONS)
    table = (
        images.with_columns(value=pl.Series(judged.neutral))
        .group_by("seed", "skin_tone", "gender")
        .agg(pl.col("value").mean())
    )
    a, b = (
        table.filter(pl.col("skin_tone") == tone, pl.col("gender") == "man").sort("seed")["value"].to_numpy()
        for tone in ("2", "9")
    )
    row = one(measured(sheet), "neutral_test", group="2 man over 9 man")
    assert row["value"] == pytest.approx(stats.ttest_rel(a, b).statistic)
    assert row["note"].startswith("paired t over 8 pictures")


def test_brightness_maps_show_where_one_group_is_brighter():
    """A lighter skin tone is brighter in the middle of the picture and alike at its edge."""
    images = pl.DataFrame(design(1)).filter((pl.col("pose") == 0) & (pl.col("smiling") == 0) & (pl.col("age") == 45))
    judged = read_judged(matrix(images), DIMENSIONS)
    rows = [row for row in brightness_rows(judged, rng()) if row.subset == "skin_tone"]
    signs = {row.template: row.value for row in rows}
    assert signs["9,9"] == 1
    assert signs["0,0"] == 0
    assert signs[None] == pytest.approx(np.mean([value for place, value in signs.items() if place]))


def test_narrowing_is_the_ratio_of_the_group_means_spreads(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    labels = (faces.images["race"] + " " + faces.images["gender"]).to_numpy()
    spread = {}
    for name, scores in (("before", judged.cosine), ("after", judged.delta)):
        mean = judged.by_dimension(scores).mean(axis=1)
        spread[name] = np.std([mean[labels == label].mean() for label in np.unique(labels)])
    row = one(results, "narrowing", concept="groups")
    assert row["value"] == pytest.approx(spread["after"] / spread["before"])
    assert row["low"] < row["high"]


# Ratings and own dimensions


def test_own_dimensions_take_the_place_of_the_studys():
    own = (
        Dimension("open", "open", ("curious", "modern"), "positive", "closed"),
        Dimension("closed", "closed", ("rigid",), "negative", "open"),
    )
    found = measured(matrix(photographs(60), prompts=perception_prompts(own).table), perception_study(own))
    assert set(found.filter(pl.col("metric") == "perception.delta_cosine")["concept"]) == {"open", "closed"}


# The whole line


@pytest.mark.slow
@pytest.mark.parametrize("model", ["null", "glasshouse/contrastive"])
def test_the_whole_audit_runs_on_a_causalface_of_few_seeds(model: str, tmp_path: Path):
    imitate(tmp_path / "causalface", seeds=1)
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path, measure=OPTIONS)
    run = audit_models([model], ["perception"], options)
    assert set(run.results["dataset"]) == {"causalface"}
    assert {"perception.induced_variation", "perception.brightness"} <= set(run.results["metric"])
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_without_any_of_its_data_sets_it_says_how_to_get_one(tmp_path: Path):
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path)
    with pytest.raises(MissingData, match=r"causalface.*is not at"):
        audit_models(["null"], ["perception"], options)


@pytest.mark.usefixtures("undrawn")
def test_scores_find_the_data_set_that_they_are_about(tmp_path: Path):
    """FairFace and UTKFace lie in one folder; the ids of the scores say which is meant."""
    (tmp_path / "fairface").mkdir()
    (tmp_path / "fairface" / "fairface_label_val.csv").write_text(
        "file,age,gender,race,service_test\nval/1.jpg,20-29,Male,White,True\n"
    )
    names = [f"{20 + i}_{i % 2}_{i % 3}_2017010915055733{i % 10}.jpg.chip.jpg" for i in range(12)]
    (tmp_path / "utkface").mkdir()
    for name in names:
        (tmp_path / "utkface" / name).touch()
    texts = perception_prompts().texts
    cells = dict(zip(texts, rng(1).normal(0.2, 0.02, (len(texts), 12)), strict=True))
    pl.DataFrame({"image_id": names, **cells}).write_parquet(tmp_path / "scores.parquet")
    options = AuditOptions(out=tmp_path / "out", store=tmp_path / "store", data=tmp_path, measure=OPTIONS)
    run = measure_scores(PERCEPTION, [tmp_path / "scores.parquet"], options, model="mine")
    assert set(run.results["dataset"]) == {"utkface-adults"}


def test_only_the_studys_part_of_fairface_is_asked():
    table = pl.DataFrame(
        {
            "image_id": ["train/1.jpg", "train/2.jpg"],
            "uri": ["a", "b"],
            "split": ["train"] * 2,
            "age": ["20-29", "3-9"],
            "gender": ["Male"] * 2,
            "race": ["East Asian"] * 2,
        }
    )
    (task,) = PERCEPTION.tasks(Dataset("fairface", "", "", table))
    assert task.dataset.table["race"].to_list() == ["Asian"]
