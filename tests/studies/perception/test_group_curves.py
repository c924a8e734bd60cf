"""Slopes and curvature of crossed groups: equal to numpy's fits, and a group that stands out is found."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import OPTIONS, designed, matrix, measured, noise, one, photographs, words_of

from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def warmth_at(images: pl.DataFrame, cells: np.ndarray, attribute: str, race: str, gender: str) -> tuple[list, list]:
    """The levels, and the mean warmth of one group at each."""
    judged = read_judged(matrix(images, cells), DIMENSIONS)
    column = "race" if "race" in images.columns else "skin_tone"
    table = images.with_columns(value=pl.Series(judged.by_dimension(judged.delta)[:, 0]))
    mine = table.filter(**{column: race, "gender": gender}).group_by(attribute).agg(pl.col("value").mean())
    return mine.sort(attribute)[attribute].to_list(), mine.sort(attribute)["value"].to_list()


@pytest.mark.parametrize(
    ("images", "attribute", "race", "gender"),
    [(photographs(600), "age", "Black", "Female"), (designed(6, lighting=0, pose=0), "smiling", "9", "woman")],
    ids=["photographs", "matched sets"],
)
def test_slope_and_curvature_are_those_of_least_squares(images: pl.DataFrame, attribute: str, race: str, gender: str):
    cells = noise(images)
    levels, values = warmth_at(images, cells, attribute, race, gender)
    reach = max(levels) - min(levels)
    results = measured(matrix(images, cells))
    subset = f"{attribute} × {'race' if 'race' in images.columns else 'skin_tone'} × gender"
    where = {"subset": subset, "group": f"{race} {gender}", "concept": "warmth"}
    assert one(results, "slope", **where)["value"] == pytest.approx(reach * np.polyfit(levels, values, 1)[0])
    bent = np.polyfit(levels, values, 2)[0] * (reach / 2) ** 2
    assert one(results, "curvature", **where)["value"] == pytest.approx(bent)
    rest = results.filter(metric="perception.slope", subset=subset, concept="warmth")
    others = rest.filter(pl.col("group") != where["group"])["value"].mean()
    departure = one(results, "slope_departure", **where)
    assert departure["value"] == pytest.approx(one(results, "slope", **where)["value"] - others)


@pytest.mark.slow
def test_a_group_whose_curve_stands_out_is_told_with_both_numbers():
    images = photographs(900)
    mine = ((images["race"] == "Black") & (images["gender"] == "Female")).to_numpy()
    cells = noise(images)
    cells += np.outer(mine * (images["age"].to_numpy() - 40) / 30 * 0.02, words_of("warmth"))
    (finding,) = [each for each in perception_findings(measured(matrix(images, cells))) if each.kind == "stand_out"]
    assert finding.headline == "Over age, the curve of Black Female stands out from those of the other groups"
    assert "The rise over the whole range in Warmth is +" in finding.sentence
    assert "for Black Female and" in finding.sentence


@pytest.mark.slow
def test_ages_with_few_people_are_left_out():
    images = photographs(60)
    assert not measured(matrix(images), options=OPTIONS).filter(metric="perception.curvature_departure").height
