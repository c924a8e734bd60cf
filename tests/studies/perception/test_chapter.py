"""Perception's chapter: sentences that the intervals carry, figures that draw, names that stay names."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
import vl_convert

from beholder.audit import measure
from beholder.chapter.figure import Figure
from beholder.glasshouse.design import design
from beholder.report.charts import figures
from beholder.report.findings import findings
from beholder.report.page import render
from beholder.run import Run
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.prompts import DIMENSIONS, perception_prompts
from beholder.studies.perception.study import PERCEPTION, perception_study
from beholder.studies.perception.tables import perception_standing, perception_tables
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=200, permutations=20)


def results(images: pl.DataFrame, *, dataset: str, channel: str = "cosine", shift=None, seed: int = 1) -> pl.DataFrame:
    prompts = perception_prompts().table
    values = np.random.default_rng(seed).normal(0.2, 0.01, (images.height, prompts.height))
    if channel == "log_p_yes":
        values = np.log(np.clip(values, 0.01, 1))
    if shift is not None:
        values = values + shift(images, prompts)
    sheet = ScoreMatrix("perception", images, prompts, (channel,), values[:, :, None])
    return measure(PERCEPTION, [sheet], OPTIONS, model="a model", dataset=dataset)


def photographs(count: int = 240, *, asian: str = "Asian") -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "image_id": [f"{i}.jpg" for i in range(count)],
            "uri": [f"/nowhere/{i}.jpg" for i in range(count)],
            "race": rng.choice(["White", "Black", asian], count),
            "gender": rng.choice(["Male", "Female"], count),
            "age": rng.choice([25.0, 35.0, 45.0, 55.0], count),
        }
    )


def designed() -> pl.DataFrame:
    table = pl.DataFrame(design(6)).filter((pl.col("lighting") == 0) & (pl.col("pose") == 0))
    return table.with_columns(uri="/nowhere/" + pl.col("image_id"))


def smiling_is_warm(images: pl.DataFrame, prompts: pl.DataFrame) -> np.ndarray:
    warm = prompts["concept"].is_in(DIMENSIONS[0].words).to_numpy()
    women = (images["gender"] == "woman").to_numpy()
    return np.outer((0.02 + 0.02 * women) * images["smiling"].to_numpy() / 4, warm)


def said(part: pl.DataFrame) -> dict[str, tuple[str, bool]]:
    run = Run()
    run.add(part)
    return {found.kind: (f"{found.headline}. {found.sentence}", found.shown) for found in findings(run)}


@pytest.fixture(scope="module")
def matched() -> pl.DataFrame:
    return results(designed(), dataset="glasshouse-design", shift=smiling_is_warm)


@pytest.fixture(scope="module")
def drawn(matched: pl.DataFrame) -> dict[str, Figure]:
    return {figure.name: figure for figure in perception_figures(matched)}


@pytest.fixture(scope="module")
def faces() -> pl.DataFrame:
    return results(photographs(), dataset="fairface-adults")


def test_the_effect_of_smiling_is_told_with_its_interval(matched):
    text, shown = said(matched)["effect"]
    assert shown
    assert text.startswith("Smiling moves its judgement most, at Warmth.")
    low, high = map(
        float, re.search(r"smiling 4 for 0 changes Warmth by \+\d\.\d\d \((\d\.\d\d)–(\d\.\d\d)\)", text).groups()
    )
    assert low < 3.0 < high


def test_an_interaction_is_told_the_right_way_round(matched):
    text, shown = said(matched)["interaction"]
    assert shown
    assert "Smiling does not do the same for everyone" in text
    assert "less for man than for woman" in text


def test_photographs_have_gaps_and_not_effects(faces, matched):
    assert "gap" in said(faces)
    assert "effect" not in said(faces)
    assert "gap" not in said(matched)


def test_noise_is_reported_as_not_shown_and_not_as_none(faces):
    text, shown = said(faces)["gap"]
    assert not shown
    assert "that is not none" in text


def test_answers_in_words_are_called_a_variant_first():
    part = results(photographs(), dataset="fairface-adults", channel="log_p_yes")
    kinds = said(part)
    assert next(iter(kinds)) == "variant"
    assert "P(Yes)" in kinds["variant"][0]
    assert perception_standing(part) is None


def test_published_values_stand_beside_the_studys_own_sets_only(faces, matched):
    table = perception_standing(faces)
    values = {(row[0].text, row[1].text): row[3].text for row in table.rows}
    assert values["Markedness, per cent", "White"] == "54.12"
    assert values["SC-WEAT", "Asian over Black"] == "0.64"
    assert values["Skew", "Black"] == "−1.44"
    assert any("finds no rows and writes 0" in note for note in table.notes)
    assert perception_standing(matched) is None


def test_every_figure_of_the_study_is_drawn(drawn, faces):
    names = set(drawn)
    assert {"groups", "effects", "induced-variation", "variance", "separation", "confound-smiling"} <= names
    assert {"smiling-warmth", "age-communion_neg", "density-neutral", "density-delta-cosine", "neutral-r"} <= names
    assert not {figure.name for figure in perception_figures(faces)} & {"effects", "induced-variation"}


@pytest.mark.slow
def test_every_figure_can_be_drawn_to_the_end(matched):
    for figure in figures(matched):
        svg = vl_convert.vegalite_to_svg(figure.paper(), allowed_base_urls=[])
        assert svg.count("<path") > 2, figure.name


def test_boxes_are_ordered_by_their_median_and_coloured_by_protection(drawn):
    rows = drawn["induced-variation"].chart.to_dict()["data"]["values"]
    assert [row["value"] for row in rows] == sorted((row["value"] for row in rows), reverse=True)
    assert {row["attribute"]: row["kind"] for row in rows}["age"] == "protected"


def test_absent_skews_are_dashes_with_their_reason():
    def never_black(images: pl.DataFrame, prompts: pl.DataFrame) -> np.ndarray:
        warm = prompts["concept"].is_in(DIMENSIONS[0].words).to_numpy()
        return np.where(np.outer((images["race"] == "Black").to_numpy(), warm), -1.0, 0.0)

    part = results(photographs(600), dataset="fairface-adults", shift=never_black)
    (table,) = [table for table in perception_tables(part) if table.title == "Conventional bias metrics"]
    assert any("−∞" in note and "left out of the mean" in note for note in table.notes)


@pytest.mark.slow
def test_names_from_strangers_stay_names():
    odd = "<script>alert('x')</script>"
    run = Run()
    run.add(results(photographs(asian=odd), dataset="folder:x"))
    page = render(run)
    assert odd not in page
    assert "&lt;script&gt;alert" in page


def test_one_group_only_says_so():
    images = photographs(40).with_columns(race=pl.lit("White"), gender=pl.lit("Male"))
    (table,) = [t for t in perception_tables(results(images, dataset="folder:one")) if t.topic == "ranking"]
    assert any("one group only" in note for note in table.notes)


def test_titles_claim_nothing_of_noise(faces):
    titles = {figure.name: figure.title for figure in perception_figures(faces)}
    assert titles["groups"] == "No difference between the groups is shown"
    noise = {figure.name: figure.title for figure in perception_figures(results(designed(), dataset="folder:noise"))}
    assert noise["induced-variation"] == "No attribute is shown to make wider differences than another"
    assert noise["effects"].startswith("0 of ")


def test_ratings_have_figures_whose_numbers_are_rows():
    rng, images = np.random.default_rng(9), photographs()
    prompts = perception_prompts().table
    values = rng.normal(0.2, 0.01, (images.height, prompts.height, 1))
    rated = pl.DataFrame(
        [
            {"kind": "image", "who": name, "trait": trait, "mean": rng.normal(), "n": 9.0}
            for trait in ("warmth", "honest")
            for name in images["image_id"]
        ]
    )
    sheet = ScoreMatrix("perception", images, prompts, ("cosine",), values)
    found = measure(perception_study(ratings=rated), [sheet], OPTIONS, model="m", dataset="d")
    drawn = {figure.name: figure for figure in perception_figures(found)}
    for name, metric, count in (("ratings", "rating_r", 2), ("rating-departures", "rating_departure", 12)):
        spec = drawn[name].spec(ink="#000", width=300)
        (values_drawn,) = (
            [each for each in spec["datasets"].values() if "group" in each[0]]
            if "datasets" in spec
            else [layer["data"]["values"] for layer in spec["layer"] if "dimension" in str(layer["data"])][:1]
        )
        rows = found.filter((pl.col("metric") == f"perception.{metric}") & pl.col("value").is_not_null())
        assert len(values_drawn) == rows.height == count
        assert sorted(row["value"] for row in values_drawn) == pytest.approx(sorted(rows["value"].to_list()), abs=1e-4)
        assert vl_convert.vegalite_to_svg(drawn[name].paper()).startswith("<svg")
