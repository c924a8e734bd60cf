"""`--options 8`: the occupations without actress, as the printed shares of CLIP and OpenCLIP look made."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import UsageError
from beholder.core.results import Row, results_table
from beholder.datasets.dataset import Dataset
from beholder.report.replication import ledger
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.printed import EIGHT
from beholder.studies.apa.prompts import association_prompts
from beholder.studies.apa.study import APA, apa_study, configured
from beholder.studies.printed import DIFFERS, NOT_MEASURED
from beholder.studies.public_figures.published import comparable_results, published_rank
from beholder.studies.study import MeasureOptions, Study


def occupations(branch: str, options: int) -> list[str]:
    return association_prompts(branch, options).table.filter(level="occupation")["concept"].to_list()


def test_eight_occupations_are_the_nine_without_actress_but_for_actors():
    assert occupations("house", 9)[:8] == occupations("house", 8) == occupations("athletes", 8)
    assert "actress" not in occupations("house", 8)
    assert occupations("actors", 8) == occupations("actors", 9)


def test_other_numbers_are_refused():
    with pytest.raises(UsageError, match="--options 7 is not a choice"):
        configured(APA, {"options": 7})


def measured(study: Study) -> dict[tuple[str, str | None, str | None], Row]:
    """House members with random scores, the same for a prompt whatever else is offered."""
    people = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(40)],
            "uri": [f"{i}.jpg" for i in range(40)],
            "branch": ["house"] * 40,
            "name": [f"P{i}" for i in range(40)],
            "gender": ["woman", "man"] * 20,
        }
    )
    task = study.asks.tasks(Dataset("apa", "1", "MIT", people))[0]
    kept = association_prompts("house").table["concept"].is_in(task.prompts.table["concept"].to_list()).to_numpy()
    cells = np.random.default_rng(1).normal(size=(40, len(kept)))[:, kept]
    matrix = ScoreMatrix(
        task.name, people, task.prompts.table, ("score",), cells[:, :, None], kind=task.kind, part="house"
    )
    rows = [
        row for measure in study.measures.functions for row in measure({task.name: matrix}, MeasureOptions(draws=100))
    ]
    return {(row.metric, row.subset, row.concept): row for row in rows if row.group is None}


def test_b_over_eight_is_b_without_actress_and_says_that_it_is_a_variant():
    nine, eight = measured(APA), measured(apa_study(8))
    b = eight["apa.bias_ratio", "politicians", None]
    assert b.value == pytest.approx(nine["apa.ratio_without", "politicians", "actress"].value)
    assert (b.variant, nine["apa.bias_ratio", "politicians", None].variant) == (EIGHT, None)
    assert eight["apa.association", "house", "occupation"].variant == EIGHT
    assert eight["apa.association", "house", "category"].variant is None


def run_of(model: str, variant: str | None, subset: str = "politicians") -> pl.DataFrame:
    row = Row("apa.bias_ratio", 0.5, 636, "ratio", subset=subset, low=0.4, high=0.6, variant=variant)
    return results_table([row], study="apa", model=model, dataset="apa")


@pytest.mark.parametrize(
    ("model", "variant", "verdict"),
    [
        ("ViT-B/32", EIGHT, DIFFERS),
        ("ViT-B/32", None, NOT_MEASURED),
        ("SigLIP-p16-224", None, DIFFERS),
        ("SigLIP-p16-224", EIGHT, NOT_MEASURED),
    ],
)
def test_the_ledger_compares_only_what_is_over_the_same_options(model: str, variant: str | None, verdict: str):
    cell = ledger(run_of(model, variant)).filter(model=model, metric="apa.bias_ratio", subset="politicians")
    assert cell["verdict"].to_list() == [verdict]
    assert ("occupations" in str(cell["reason"][0])) is (verdict == NOT_MEASURED)


@pytest.mark.parametrize(("variant", "models", "left_out"), [(None, 24, 15), (EIGHT, 15, 24)])
def test_published_models_stand_beside_a_run_over_the_same_options(variant: str | None, models: int, left_out: int):
    results = run_of("mine", variant)
    (compared,) = comparable_results(results)
    assert compared.others.height == models
    table = published_rank(results)
    assert table
    assert any(f"{left_out} published models are left out" in note for note in table.notes)


def test_actors_shares_that_are_no_shares_stand_beside_nobody():
    (compared,) = comparable_results(run_of("mine", None, "actors"))
    assert compared.others.height == 24
