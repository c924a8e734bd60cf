"""Simulations whose results the docs state: `python tools/simulations.py [compare] [gate]`. Takes some 15 minutes.

`compare` (docs/compare.md): how often two models that differ by chance alone are said to differ. `gate` (docs/gate.md):
how often a gate stops a model that has not changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from beholder._compare import PARTS, _judged, _paired
from beholder._gate import Rule, changed, judged
from beholder._options import AuditOptions
from beholder._run import Run
from beholder._steps import measure
from beholder.comparison.family import DIFFERENCE
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies import STUDIES
from beholder.studies.inquiry import Inquiry, open_inquiries
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import DESIGNS, WORLDS, draw


def means(matrices: Mapping[str, ScoreMatrix], options: MeasureOptions) -> Iterator[Row]:
    """Each gender's mean probability, the gap and the ratio, prompt by prompt."""
    matrix = matrices["made"]
    woman = (matrix.images["gender"] == "woman").to_numpy()
    cells = expit(matrix.values[:, :, 0])
    for prompt, column in enumerate(cells.T):
        known = {"woman": column[woman & ~np.isnan(column)], "man": column[~woman & ~np.isnan(column)]}
        place: dict[str, Any] = {"concept": str(prompt), "low": 0.0, "high": 1.0}
        for group, scores in known.items():
            yield Row("made.mean", float(scores.mean()), len(scores), "probability", group=group, **place)
        first, second = (float(scores.mean()) for scores in known.values())
        n, pair = sum(map(len, known.values())), {"group": "woman", "against": "man", **place}
        yield Row("made.gap", first - second, n, "probability", **pair)
        yield Row("made.ratio", first / second, n, "ratio", **pair)


def compare(worlds: int) -> None:
    """How often anything is called between two models that differ by chance alone, world by world."""
    made = prompt_set("made", [{"text": f"{i}", "level": "all", "concept": f"{i}"} for i in range(4)]).table
    study = replace(STUDIES["apa"], measures=(means,), metrics=())
    for world in WORLDS[:-1]:
        called = dict.fromkeys(DESIGNS, 0)
        for name, seed in product(DESIGNS, range(worlds)):
            rng = np.random.default_rng([seed, len(world)])
            one, other = (draw(world, DESIGNS[name], 4, rng) for _ in range(2))
            models = {
                which: [ScoreMatrix("made", one.table, made, ("score",), each.scores[:, :, None])]
                for which, each in (("first", one), ("second", other))
            }
            inquiry = Inquiry(study, Dataset("made", "1", "none", one.table))
            paired = _paired(inquiry, models, AuditOptions(seed=seed), Run(), PARTS)
            called[name] += DIFFERENCE in set(_judged(list(paired.values()))["verdict"])
        print(f"compare: {world}:", ", ".join(f"{name} {100 * count / worlds:.1f} %" for name, count in called.items()))


def random_results(inquiry: Inquiry, seed: int) -> pl.DataFrame:
    """What a study finds in a contrastive model whose cosines are chance."""
    rng = np.random.default_rng([9, seed])
    matrices = []
    for task in inquiry.study.tasks_of(answers=False)(inquiry.dataset):
        cosines = 0.02 * rng.normal(size=(len(task.dataset), len(task.prompts), 1))
        tables, place = (task.dataset.table, task.prompts.table), (task.dataset, task.kind, task.part)
        cells = cosines.astype(np.float32)
        matrices.append(ScoreMatrix(task.name, *tables, ("cosine",), cells, {"logit_scale": 100.0}, *place))
    return measure(inquiry, matrices, MeasureOptions(draws=200, permutations=20, seed=seed), model="chance")


def gate(worlds: int) -> None:
    """APA on 30 drawn people: `no worse` for every metric with an interval, last release and new one both chance."""
    (inquiry,) = open_inquiries(STUDIES["apa"], AuditOptions(limit=30), Run().record)
    stopped = numbers = 0
    for world in range(worlds):
        before, now = random_results(inquiry, 2 * world), random_results(inquiry, 2 * world + 1)
        certain = before.filter(pl.col("low").is_not_null())
        rules = [
            Rule(metric, require="no worse", better="higher" if rows["landmark"].null_count() else "closer")
            for (metric,), rows in certain.group_by("metric", maintain_order=True)
        ]
        verdicts = judged(now, rules, changes=changed(now, before))
        numbers, stopped = len(verdicts), stopped + any(verdict.stops for verdict in verdicts)
    print(f"gate: {len(rules)} rules over {numbers} numbers, {worlds:,} models that know nothing, seeds 0 to", end=" ")
    print(f"{2 * worlds - 1}: {stopped} failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", metavar="compare|gate")
    parser.add_argument("--worlds", type=int, help="default: 300 for compare, 400 for gate")
    options = parser.parse_args()
    which = options.which or ["compare", "gate"]
    if "compare" in which:
        compare(options.worlds or 300)
    if "gate" in which:
        gate(options.worlds or 400)
