"""Models that know little go through both studies: no finding says more than they know."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.chapter.finding import Finding
from beholder.core.results import results_table
from beholder.datasets.dataset import Dataset
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import SPORTS
from beholder.studies.apa.study import APA
from beholder.studies.pfi.study import PFI
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.study import MeasureOptions, Study

BRANCHES = ("actors", "athletes", "house", "senate", "mayors")
EACH = 60


def people() -> Dataset:
    """Five branches with the labels that the real tables have."""
    rng = np.random.default_rng(1)
    rows = []
    for number, branch in enumerate(np.repeat(BRANCHES, EACH).tolist()):
        rows.append(
            {
                "image_id": str(number),
                "uri": f"{number}.jpg",
                "branch": branch,
                "name": f"P{number}",
                "gender": "woman" if rng.random() < 0.35 else "man",
                "party": str(rng.choice(["x", "y"])) if branch in BRANCHES[2:] else None,
                "sport": str(rng.choice(list(SPORTS)[:5])) if branch == "athletes" else None,
                "academy_award": str(rng.choice(["0", "1", "2"])) if branch == "actors" else None,
            }
        )
    return Dataset("apa", "1", "MIT", pl.DataFrame(rows, infer_schema_length=None))


LABELS = {"gender": ["gender"], "labels": ["gender", "party", "sport", "academy_award"], "noise": []}


def findings(study: Study, sees: str, seed: int = 11) -> dict[str, list[Finding]]:
    """A model whose scores of names are higher for people with the same labels; its other scores are noise.

    A word that names a gender gets more for people of that gender.
    """
    dataset, rng, matrices = people(), np.random.default_rng(seed), {}
    label = {row["name"]: [row[each] for each in LABELS[sees]] for row in dataset.table.to_dicts()}
    for task in study.asks.tasks(dataset):
        images, prompts = task.dataset.table, task.prompts.table
        cells = 0.5 * rng.normal(size=(images.height, prompts.height))
        concepts = prompts["concept"].to_list()
        if task.kind == "identity":
            for row, name in enumerate(images["name"]):
                for column, concept in enumerate(concepts):
                    cells[row, column] += 2.0 * sum(a == b for a, b in zip(label[name], label[concept], strict=True))
        elif sees != "noise":
            women = (images["gender"] == "woman").to_numpy()
            for column, concept in enumerate(concepts):
                if "actress" in concept or "actor" in concept:
                    cells[:, column] += 2.0 * (women if "actress" in concept else ~women)
        matrices[task.name] = ScoreMatrix(
            task.name, images, prompts, ("score",), cells[:, :, None], kind=task.kind, part=task.part
        )
    rows = [row for measure in study.measures.functions for row in measure(matrices, MeasureOptions(draws=200))]
    told: dict[str, list[Finding]] = {}
    for finding in public_figure_findings(results_table(rows, study=study.name, model=sees, dataset="apa")):
        told.setdefault(finding.kind, []).append(finding)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("study", [APA, PFI], ids=lambda study: study.name)
@pytest.mark.parametrize("sees", LABELS)
def test_nobody_is_known_by_name(study: Study, sees: str):
    told = findings(study, sees)
    assert not any(finding.shown for finding in told["identity"])
    for finding in told["association"]:
        assert "above chance" not in finding.headline, "a specialty is known by its gender at most"


@pytest.mark.slow
def test_noise_is_seldom_said_to_believe_less_of_women_or_men():
    """Six of 100 may be; of 60 seeds three were, for b and for wrong occupations alike."""
    told = [findings(APA, "noise", seed) for seed in range(8)]
    for kind in ("bias", "occupations"):
        assert sum(any(finding.shown for finding in each[kind]) for each in told) <= 2, kind
