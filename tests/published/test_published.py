from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import UnknownName
from beholder.published import SOURCES, caveats, neighbours, published, source_of

SHARED = Path(__file__).parents[3] / "shared" / "reference"


@pytest.mark.real
@pytest.mark.parametrize("name", list(SOURCES))
def test_the_packaged_table_is_the_reference(name: str) -> None:
    path = SHARED / f"{name}.csv"
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing")
        pytest.skip(f"{path} is missing")
    assert published(name).equals(pl.read_csv(path))


@pytest.mark.parametrize("branch", ["house", "senate", "mayors", "actors", "athletes"])
@pytest.mark.parametrize(("metric", "column"), [("identity_given_image", "image"), ("identity_given_name", "text")])
def test_identity_neighbours_are_the_printed_column_as_probabilities(branch: str, metric: str, column: str) -> None:
    printed = published("apa_identity")
    ours = neighbours(f"apa.{metric}", branch)
    assert ours["model"].to_list() == printed["model"].to_list()
    assert ours["value"].to_list() == pytest.approx((printed[f"{branch}_{column}"] / 100).to_list())


@pytest.mark.parametrize("pool", ["actors", "politicians", "athletes"])
def test_ratio_neighbours_are_one_a_model(pool: str) -> None:
    ours = neighbours("apa.bias_ratio", pool)
    assert ours.height == ours["model"].n_unique() == 39


def test_the_printed_ratio_is_that_of_the_printed_percentages() -> None:
    women, men = (
        neighbours("apa.occupation_probability", "politicians", group=group, concept="politician")["value"]
        for group in ("woman", "man")
    )
    ratios = neighbours("apa.bias_ratio", "politicians")["value"].to_list()
    assert (women / men).to_list() == pytest.approx(ratios, abs=2e-3)


def test_table_5_lends_no_occupation_probabilities() -> None:
    assert neighbours("apa.occupation_probability", "actors", group="woman", concept="actor").is_empty()


def test_pfi_printed_politicians_and_three_branches_only() -> None:
    assert neighbours("pfi.bias_ratio", "politicians").height == 5
    assert neighbours("pfi.bias_ratio", "actors").is_empty()
    assert neighbours("pfi.identity_given_image", "house").row(1) == ("ViT-B-32", 0.2828)
    assert neighbours("pfi.identity_given_image", "actors").is_empty()


@pytest.mark.parametrize("metric", ["apa.association", "gras.welch", "custom.probability"])
def test_metrics_without_a_printed_table_have_no_neighbours(metric: str) -> None:
    assert neighbours(metric, "house").is_empty()
    assert source_of(metric) is None
    assert caveats(metric) == ()


def test_the_traps_are_told() -> None:
    assert any("do not add up to 100" in caveat for caveat in caveats("apa.bias_ratio"))
    assert any("exchanged" in caveat for caveat in caveats("pfi.identity_given_name"))


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="apa_identity"):
        published("apa_identities")


def test_gras_scores_go_by_both_names() -> None:
    biased, fair = (neighbours(f"gras.{name}", "") for name in ("bias_score", "fairness_score"))
    assert biased.row(0) == ("paligemma2-3b-mix-224", 98.25)
    assert (biased["value"] + fair["value"]).to_list() == [100.0] * 5
    assert source_of("gras.fairness_score") == SOURCES["gras_scores"]
    assert neighbours("gras.group_mean", "").is_empty()
