"""Published values of other models stand beside ours, in our units and under their printed names."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.studies.apa.printed import PRINTED
from beholder.studies.printed import Source, printed_of


def neighbours(metric: str, subset: str = "", **more: str) -> pl.DataFrame:
    printed = printed_of(metric.partition(".")[0])
    return printed.neighbours(metric, subset, **more) if printed else pl.DataFrame(schema={"model": pl.String})


def source_of(metric: str) -> Source | None:
    printed = printed_of(metric.partition(".")[0])
    return printed.source_of(metric) if printed else None


def caveats(metric: str) -> tuple[str, ...]:
    source = source_of(metric)
    return source.caveats if source else ()


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


@pytest.mark.parametrize("branch", ["house", "senate", "mayors", "actors", "athletes"])
@pytest.mark.parametrize("metric", ["apa.identity_given_image", "apa.identity_given_name"])
def test_identity_neighbours_are_the_printed_column(branch: str, metric: str) -> None:
    printed = PRINTED.cells.filter(metric=metric, subset=branch)
    assert neighbours(metric, branch).rows() == printed.select("printed_as", "printed").rows()
    assert printed.height == 39


def test_identity_neighbours_are_probabilities() -> None:
    assert neighbours("apa.identity_given_image", "senate").row(2) == ("RN50", 0.8521)


@pytest.mark.parametrize(
    ("group", "concept"), [("woman", "actor"), ("woman", "actress"), ("man", "actor"), ("man", "teacher")]
)
def test_table_5_lends_no_occupation_probabilities(group: str, concept: str) -> None:
    assert neighbours("apa.occupation_probability", "actors", group=group, concept=concept).is_empty()


def test_pfi_printed_politicians_and_three_branches_only() -> None:
    assert neighbours("pfi.bias_ratio", "politicians").height == 5
    assert neighbours("pfi.bias_ratio", "actors").is_empty()
    assert neighbours("pfi.identity_given_image", "house").row(1) == ("ViT-B-32", 0.3076)
    assert neighbours("pfi.identity_given_image", "actors").is_empty()


@pytest.mark.parametrize("metric", ["apa.association", "gras.welch", "custom.probability"])
def test_metrics_without_a_printed_table_have_no_neighbours(metric: str) -> None:
    assert neighbours(metric, "house").is_empty()
    assert source_of(metric) is None
    assert caveats(metric) == ()


def test_caveats_name_the_traps() -> None:
    assert any("do not add up to 100" in caveat for caveat in caveats("apa.bias_ratio"))
    assert any("reads the other way" in caveat for caveat in caveats("pfi.identity_given_name"))


def test_gras_scores_go_by_both_names() -> None:
    biased, fair = (neighbours(f"gras.{name}") for name in ("bias_score", "fairness_score"))
    assert biased.row(0) == ("paligemma2-3b-mix-224", 98.25)
    both = biased.join(fair, on="model", how="left", suffix="_fair").with_columns(
        sum=pl.col("value") + pl.col("value_fair")
    )
    assert both["sum"].to_list() == [100.0] * 4 + [None]  # Phi-4's 0.00 was never printed
    source = source_of("gras.fairness_score")
    assert source
    assert source.name == "gras_scores"
    assert neighbours("gras.group_mean").is_empty()
