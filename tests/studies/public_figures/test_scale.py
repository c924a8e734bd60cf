"""Across models: slopes on parameters and training pairs, over the run's models and published ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import judge, verdict_of
from beholder.core.results import Row, results_table
from beholder.studies.apa.printed import EIGHT, PRINTED
from beholder.studies.public_figures.chapter import scale_tables
from beholder.studies.public_figures.charts import scale_figures
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.published import fitted, scale_points, scale_rows

BRANCHES = {"actors": 100, "athletes": 109, "house": 436, "senate": 100, "mayors": 100}


def results(model: str, dataset: str = "apa", variant: str | None = None, *, share: float = 0.5) -> pl.DataFrame:
    rows = [Row("apa.bias_ratio", 0.8, 636, "ratio", subset="politicians", variant=variant)]
    rows += [
        Row(f"apa.identity_given_{given}", share, n, "probability", subset=branch, chance=1 / n)
        for given in ("image", "name")
        for branch, n in BRANCHES.items()
    ]
    rows += [Row("apa.association", share, 100, "probability", subset=b, concept="occupation") for b in BRANCHES]
    return results_table(rows, study="apa", model=model, dataset=dataset)


CLIP = "openai/clip-vit-base-patch32"


def test_a_slope_is_that_of_a_regression_by_hand():
    """Normal equations with a level for each kind; a kind with one model is left out."""
    rng = np.random.default_rng(4)
    sizes, others = rng.normal(size=14), rng.normal(size=14)
    kinds = np.array(["a"] * 9 + ["b"] * 4 + ["alone"])
    values = 0.5 * sizes + others + (kinds == "b") + 0.1 * rng.normal(size=14)
    line = fitted(values, sizes, kinds, rng, others)
    x = np.array([[sizes[i], others[i], kinds[i] == "a", kinds[i] == "b"] for i in range(13)], dtype=float)
    beta = np.linalg.solve(x.T @ x, x.T @ values[:13])
    assert line is not None
    assert (line[0].value.item(), line[1]) == (pytest.approx(beta[0]), 13)
    assert judge([line[0]])[0].found.item()


def test_slopes_of_noise_are_seldom_found():
    """24 models of three kinds whose spread grows with size."""
    rng, called = np.random.default_rng(5), 0
    kinds = np.repeat(["contrastive", "generative", "matching"], [14, 8, 2])
    for _ in range(100):
        sizes = rng.normal(8.5, 0.5, 24) + (kinds == "generative")
        values = (kinds == "generative") + 0.1 * (sizes - 7.0) * rng.normal(size=24)
        line = fitted(values, sizes, kinds, rng)
        assert line is not None
        called += judge([line[0]])[0].found.item()
    assert called <= 11


def test_published_models_are_averaged_over_the_branches_of_the_run():
    points = {(p.model, p.measure): p for p in scale_points(results(CLIP)) if p.measure != "bias_ratio"}
    printed = PRINTED.cells.filter(metric="apa.identity_given_image", printed_as="RN50")["printed"]
    assert points["RN50", "identity_given_image"].value == pytest.approx(printed.mean())
    assert len([key for key in points if key[1] == "identity_given_image"]) == 39
    assert ("ViT-B/32", "identity_given_image") not in points, "it is the run's own model"
    assert not points[CLIP, "identity_given_image"].published


def test_b_of_models_over_other_options_does_not_take_part():
    nine, eight = (
        {p.model for p in scale_points(results(CLIP, variant=variant)) if p.measure == "bias_ratio"}
        for variant in (None, EIGHT)
    )
    assert nine & eight == {CLIP}
    assert (len(nine), len(eight)) == (25, 15)  # of the eight's 15, the run's own model is one


def test_slopes_stand_with_the_run_s_first_model_of_known_size():
    both = pl.concat([results("my-own-model"), results(CLIP)])
    rows = scale_rows(both)
    assert set(rows["model"]) == {CLIP}
    assert set(rows["concept"]) == {"bias_ratio", "identity_given_image", "identity_given_name"}
    assert rows.filter(metric="apa.scale_parameters", concept="identity_given_image")["n"].to_list() == [39]
    assert rows["low"].null_count() == 0


@pytest.mark.parametrize("part", [results("my-own-model"), results(CLIP, "my_photographs")])
def test_without_a_model_of_known_size_or_enough_of_them_there_is_no_slope(part: pl.DataFrame):
    assert scale_rows(part).is_empty()
    assert list(scale_tables(part)) == []


def test_ten_models_on_other_photographs_are_enough_for_association():
    names = ["RN50", "RN101", "RN50x4", "RN50x16", "RN50x64", "ViT-B/32", "ViT-B/16", "ViT-L/14", "ViT-L/14@336px"]
    shares = np.linspace(0.2, 0.8, 10) + 0.01 * np.sin(np.arange(10))
    parts = [results(model, "mine", share=share) for model, share in zip([*names, "EVA-CLIP-8B"], shares, strict=True)]
    rows = scale_rows(pl.concat(parts))
    assert ("association", "occupation") in set(rows.select("concept", "subset").iter_rows())
    assert set(rows["n"]) == {10}


def slope(concept: str, value: float, p_value: float, subset: str | None = None) -> Row:
    row = Row("apa.scale_parameters", value, 39, "per tenfold", subset=subset, concept=concept, p_value=p_value)
    return row._replace(low=value - 0.03, high=value + 0.03, landmark=0.0, verdict=verdict_of(p_value, 39))


def test_a_slope_that_was_found_is_told_and_no_cause_is_claimed(make: SimpleNamespace):
    rows = [slope("identity_given_image", 0.1, 0.01), slope("bias_ratio", -0.2, 0.3, "politicians")]
    (finding,) = public_figure_findings(make.run(*rows).results)
    assert finding.headline == (
        "Over up to 39 models, more parameters go with more belief on the right name, given an image"
    )
    assert "+10.0 points (95 % interval +7.0 to +13.0; p = 0.010; 39 models)" in finding.sentence
    assert finding.sentence.endswith("so this need not be an effect of size.")
    (nearer,) = public_figure_findings(make.run(slope("bias_ratio", -0.2, 0.01, "politicians")).results)
    assert nearer.headline.endswith("go with a bias ratio nearer to 1 for politicians")
    (none,) = public_figure_findings(make.run(slope("bias_ratio", -0.2, 0.3, "politicians")).results)
    assert not none.shown


def test_models_are_drawn_by_size_and_by_pairs_among_published_ones():
    slopes = scale_rows(results(CLIP))
    figures = list(scale_figures(pl.concat([results(CLIP), slopes])))
    for figure, metric in zip(figures, ("apa.scale_parameters", "apa.scale_pairs"), strict=True):
        clearest = slopes.filter(metric=metric).sort("p_value")["concept"][0].replace("_", "-")
        assert figure.name.startswith(f"{clearest}-by-")
    assert "no slope was found" in figures[1].title
    assert list(scale_figures(results("my-own-model"))) == []
