"""Names come from strangers: whatever they hold, they come out whole on the page, in the terminal, in every export."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console

from beholder._run import Run
from beholder._steps import measure
from beholder.core.read import read_own_csv
from beholder.datasets.dataset import SCHEMA as OBJECTS
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.report.exports import FORMATS
from beholder.report.page import render
from beholder.report.report import short_names
from beholder.report.summary import print_summary
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import custom_study
from beholder.studies.disparity.study import DISPARITY
from beholder.studies.gras.study import gras_study
from beholder.studies.inquiry import Inquiry
from beholder.studies.perception.prompts import Dimension
from beholder.studies.perception.study import perception_study
from beholder.studies.study import MeasureOptions, Study

HOSTILE = (
    "60 and over", "2 or more races", "A over B", "man less woman", "a with b", "x × y", "trait|T1", "a · b", "1e6",
    "line\nbreak", "tab\there", "😀 emoji", "עברית", "‮reversed", "<b>bold</b>", "</script><script>", "${x}", "{}", "%s",
    "[red]rich[/red]", "a, b; c: d", "'quoted' \"twice\"", "back\\slash", "=1+1", "& | # _ ~ ^ $ %", "x" * 300,
    "δ = 1e6",
)  # fmt: skip
OPTIONS = MeasureOptions(draws=100, permutations=20, delta=0.1, shuffles=299)
N = 60


def names(count: int) -> st.SearchStrategy[list[str]]:
    """Different names, each whole in itself: none is part of another."""
    text = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
    clean = text.map(lambda name: name.strip()).filter(
        lambda name: len(" ".join(name.split())) > 1 and not short_names([name])
    )
    return st.lists(clean, min_size=count, max_size=count, unique_by=lambda name: " ".join(name.split()))


def dataset(groups: dict[str, list[str]], objects: pl.DataFrame | None = None) -> Dataset:
    labels = {name: [values[i % len(values)] for i in range(N)] for name, values in groups.items()}
    ids = [str(i) for i in range(N)]
    table = pl.DataFrame({"image_id": ids, "uri": [f"{i}.jpg" for i in ids], **labels})
    return Dataset("photos", "1", "MIT", table, objects=objects)


def scores(columns: int, rng: np.random.Generator) -> Any:
    """Noise with an effect of the first group in the first columns, so that there is something to say."""
    cells = rng.uniform(0.3, 0.6, (N, columns, 1))
    cells[::2, : max(1, columns // 2)] += 0.35
    return cells.astype(np.float64)


def results(study: Study, data: Dataset, channel: str, model: str) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    matrices = [
        ScoreMatrix(
            task.name, task.dataset.table, task.prompts.table, (channel,), scores(len(task.prompts), rng),
            dataset=task.dataset, kind=task.kind, part=task.part,
        )
        for task in study.asks.tasks(data)
    ]  # fmt: skip
    return measure(Inquiry(study, data), matrices, OPTIONS, model=model)


def gras(drawn: list[str]) -> pl.DataFrame:
    traits = pl.DataFrame({"trait": drawn[:4], "valence": ["positive", "negative"] * 2})
    groups = {"gender": drawn[4:6], "race": drawn[5:8], "age": drawn[2:4], "skin_tone": ["1", "2"]}
    return results(gras_study(traits), dataset(groups), "score", drawn[8])


def perception(drawn: list[str]) -> pl.DataFrame:
    dimensions = [Dimension(drawn[k], drawn[k], (f"word{k}", f"other{k}"), "positive") for k in range(2)]
    groups = {"gender": drawn[4:6], "race": drawn[5:8]}
    return results(perception_study(dimensions), dataset(groups), "cosine", drawn[8])


def disparity(drawn: list[str]) -> pl.DataFrame:
    rows = [
        (str(i), concept, 1, 0.2, [concept]) for i in range(N) for k, concept in enumerate(drawn[:3]) if (i + k) % 3
    ]
    objects = pl.DataFrame(rows, schema=OBJECTS, orient="row")
    return results(DISPARITY, dataset({"gender": drawn[4:6]}, objects), "presence", drawn[8])


def custom(drawn: list[str]) -> pl.DataFrame:
    prompts = prompt_set("own", [{"text": f"a {k}", "concept": drawn[k], "level": drawn[3 + k // 2]} for k in range(4)])
    return results(custom_study(prompts, by=("race",)), dataset({"race": drawn[5:8]}), "cosine", drawn[8])


STUDIES: dict[str, Callable[[list[str]], pl.DataFrame]] = {
    "gras": gras,
    "perception": perception,
    "disparity": disparity,
    "custom": custom,
}


def crossed(value: str, drawn: list[str]) -> bool:
    """Whether a group is a crossing of named groups."""
    return any(value.startswith(name) for name in (*drawn, *KNOWN)) and any(value.endswith(n) for n in (*drawn, *KNOWN))


def words(text: str) -> str:
    """A text with its white space made even, as HTML and Markdown show it."""
    return " ".join(text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", STUDIES)
@given(drawn=names(9))
@settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_hostile_names_come_out_whole(name: str, drawn: list[str], tmp_path_factory: pytest.TempPathFactory):
    table = STUDIES[name](drawn)
    assert drawn[8] in set(table["model"])
    for column in ("group", "against"):
        foreign = set(table[column].drop_nulls()) - set(drawn) - KNOWN
        assert not [value for value in foreign if not crossed(value, drawn)], "a group is a name of the data"
    run, folder = Run(table), tmp_path_factory.mktemp("run")
    run.save(folder)
    run.save_findings(folder)
    assert read_own_csv(folder / "results.csv", {"model": pl.String})["model"][0] == drawn[8]
    said = words(html.unescape(re.sub(r"\\u003[cCeE]|\\u0026", _decoded, render(run.report))))
    entries = json.loads((folder / "findings.json").read_text())["findings"]
    out = io.StringIO()
    print_summary(run.report, Console(file=out, width=4000, color_system=None), verbose=True)
    exports = {kind: make(run.report) for kind, make in FORMATS.items()}
    for finding in run.findings:
        assert words(finding.sentence) in said
        assert words(finding.headline) in words(out.getvalue())
    for section in run.report.sections:
        for cell in (cell for each in section.tables for row in each.rows for cell in row if not each.long):
            assert words(cell.text) in words(out.getvalue()) or not cell.text
            assert words(cell.text) in said
    assert {entry["model"] for entry in entries} <= {drawn[8]}
    assert all(isinstance(text, str) and text for text in exports.values())


KNOWN = {"1", "2", "positive", "negative", "everyone", "green", "yellow", "red", "the rest", "everyone else", "all"}
KNOWN |= {"the most selected"}


def _decoded(match: re.Match[str]) -> str:
    return chr(int(match[0][2:], 16))
