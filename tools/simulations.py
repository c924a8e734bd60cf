"""Simulations whose results the docs state: `python tools/simulations.py [bounds] [gate]`. Takes some 2 minutes.

`bounds` (docs/compare.md): how often the interval of a difference of shares holds the truth, on the difference's own
scale and on one that keeps to the bounds. `gate` (docs/gate.md): how often a gate stops a model that has not changed.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

from beholder.audit import AuditOptions, measure
from beholder.gate import Rule, changed, judged
from beholder.metrics.jackknife import dealt, left_out_in_turn
from beholder.run import Run
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies import STUDIES
from beholder.studies.sheets import Sheet, open_sheets
from beholder.studies.study import MeasureOptions

PARTS = 20


def bounds(worlds: int, *, people: int = 200, shares: tuple[float, float] = (0.03, 0.96)) -> None:
    """Two shares of the same people, alike in half of what decides them; the truth is the shares' difference."""
    rng = np.random.default_rng(1)
    covered = {np.inf: 0, 1.0: 0}
    for _ in range(worlds):
        luck = rng.random(people)
        second = np.where(rng.random(people) < 0.5, luck, rng.random(people))
        difference = (second < shares[1]).astype(float) - (luck < shares[0])
        part = dealt(np.arange(people), np.zeros(people), PARTS, rng)
        without = np.array([[difference[part != turn].mean()] for turn in range(PARTS)])
        for reach in covered:
            interval = left_out_in_turn(difference.mean(keepdims=True), without, reach=reach)
            covered[reach] += int(interval.low[0] <= shares[1] - shares[0] <= interval.high[0])
    own, kept = (f"{100 * count / worlds:.1f}" for count in covered.values())
    print(f"bounds: shares of {shares[0]} and {shares[1]} of {people} people, {worlds:,} worlds, seed 1:")
    print(f"  the interval covers the truth in {kept} of 100 on the bounded scale, in {own} on the difference's own")


def random_results(sheet: Sheet, seed: int) -> pl.DataFrame:
    """What a study finds in a contrastive model whose cosines are chance."""
    rng = np.random.default_rng([9, seed])
    matrices = []
    for task in sheet.study.tasks_for(sheet.dataset, answers=False):
        cosines = 0.02 * rng.normal(size=(len(task.dataset), len(task.prompts), 1))
        tables, place = (task.dataset.table, task.prompts.table), (task.dataset, task.kind, task.part)
        cells = cosines.astype(np.float32)
        matrices.append(ScoreMatrix(task.name, *tables, ("cosine",), cells, {"logit_scale": 100.0}, *place))
    return measure(sheet, matrices, MeasureOptions(draws=200, permutations=20, seed=seed), model="chance")


def gate(worlds: int) -> None:
    """APA on 30 drawn people: `no worse` for every metric with an interval, last release and new one both chance."""
    (sheet,) = open_sheets(STUDIES["apa"], AuditOptions(limit=30), Run().record)
    stopped = numbers = 0
    for world in range(worlds):
        before, now = random_results(sheet, 2 * world), random_results(sheet, 2 * world + 1)
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
    parser.add_argument("which", nargs="*", metavar="bounds|gate")
    parser.add_argument("--worlds", type=int, help="default: 10,000 for bounds, 400 for gate")
    options = parser.parse_args()
    which = options.which or ["bounds", "gate"]
    if "bounds" in which:
        bounds(options.worlds or 10_000)
    if "gate" in which:
        gate(options.worlds or 400)
