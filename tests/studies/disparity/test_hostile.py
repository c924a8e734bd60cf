"""Names of groups and concepts come out whole, whatever they look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from beholder.core.read import write_table
from beholder.core.results import read_results
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.chapter import CHAPTER
from beholder.studies.disparity.findings import Pair, pairs

CONCEPTS = ("more or less tie", "2 | dogs · cats", "line\nbreak.n.01", "מטרייה over 👒")
GROUPS = {
    "two": ("60 and over", "2 or more less tall"),
    "the rest": ("the rest", "a less b"),
    "many": ("the rest", "x | y · z\nnew 👩🏽", "n" * 300),
}


@pytest.mark.slow
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_hostile_names_come_out_whole(
    object_world: Callable[..., ScoreMatrix],
    measure: Callable[..., pl.DataFrame],
    groups: tuple[str, ...],
    tmp_path: Path,
):
    ordered = sorted(groups)
    worse = {(ordered[0], CONCEPTS[0]): 1.9, (ordered[1], CONCEPTS[1]): 1.9}
    write_table(measure(object_world(450, CONCEPTS, worse, groups=groups), draws=60), tmp_path, "results")
    results = read_results(tmp_path)
    expected = [Pair(*ordered)] if len(groups) == 2 else [Pair(name, "all the rest", True) for name in ordered]
    assert pairs(results) == expected
    gaps = results.filter(pl.col("metric") == "disparity.ap_gap_matched")
    assert set(gaps.select("group", "against", "concept").iter_rows()) == {
        (*pair.names, concept) for pair in expected for concept in CONCEPTS
    }
    sentences = " ".join(f"{each.headline} {each.sentence}" for each in CHAPTER.findings(results))
    cells = {cell.text for table in CHAPTER.tables(results) for row in table.rows for cell in row}
    specs = json.dumps([each.spec(ink="black", width=600) for each in CHAPTER.figures(results)], ensure_ascii=False)
    assert set(CONCEPTS) | set(groups) <= cells
    for name in groups:
        assert f"“{name}”" in sentences
        assert json.dumps(name, ensure_ascii=False) in specs  # the key of a line in the reliability chart
    for concept in CONCEPTS:
        assert json.dumps(concept, ensure_ascii=False) in specs
    for pair in expected:
        second = pair.second if pair.rest else f"“{pair.second}”"
        assert f"“{pair.first}” less {second}" in cells
