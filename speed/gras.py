"""GRAS's analysis at full size, as a ratio: all group tests of 5,010 × 500 at once against scipy, column by column.

`python speed/gras.py` also prints the time and peak memory of 100,000 × 500 in a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
import polars as pl
from scipy import stats

from beholder.metrics.group_tests import friedman, omega_squared, omega_squared_interval, repeated_measures_anova
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import all_grouped, read_answers, wording_share
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

GROUPS = {"gender": 2, "race": 7, "age": 5, "skin_tone": 10}


def random_matrix(images: int) -> ScoreMatrix:
    """P(Yes) at random, float32 as the store keeps it; two thirds of the images in the FairFace part."""
    rng = np.random.default_rng(0)
    fair = np.arange(images) < images * 0.7126
    table: dict[str, list[str | None]] = {"image_id": [str(i) for i in range(images)]}
    table["part"] = ["fairface" if own else "aiface" for own in fair]
    for name, count in GROUPS.items():
        members = fair if name != "skin_tone" else ~fair
        labels = rng.integers(1, count + 1, images)
        table[name] = [str(label) if own else None for label, own in zip(labels, members, strict=True)]
    values = rng.random((images, 500, 1), dtype=np.float32)
    return ScoreMatrix("gras", pl.DataFrame(table), gras_prompts().table, ("score",), values)


def all_tests(matrix: ScoreMatrix) -> None:
    """Four attributes, every test, effect size and correction; no shuffles."""
    answers = read_answers({"gras": matrix})
    for grouped in all_grouped(answers):
        compared = grouped.compared()
        compared.adjusted, wording_share(compared), compared.mean_gaps
        omega_squared(compared.moments), omega_squared_interval(compared.moments)
    fair = (answers.images["part"] == "fairface").to_numpy()
    repeated_measures_anova(answers.p_yes[fair])
    friedman(answers.p_yes[fair])


def column_by_column(matrix: ScoreMatrix) -> None:
    """The group tests as the study's script takes them: one call of scipy for every trait and wording."""
    for attribute in GROUPS:
        labels = matrix.images[attribute]
        parts = [
            matrix.values[(labels == group).fill_null(False).to_numpy(), :, 0]
            for group in sorted(labels.drop_nulls().unique())
        ]
        for column in range(500):
            samples = [part[:, column] for part in parts]
            if len(samples) == 2:
                stats.ttest_ind(*samples, equal_var=False)
            else:
                stats.f_oneway(*samples, equal_var=False)


def seconds(work: object, matrix: ScoreMatrix) -> float:
    """Time of one run."""
    began = time.perf_counter()
    work(matrix)  # type: ignore[operator]
    return time.perf_counter() - began


def ratio() -> None:
    """Ours against scipy in a loop, on the same matrix."""
    matrix = random_matrix(5010)
    ours = min(seconds(all_tests, matrix) for _ in range(5))
    loop = seconds(column_by_column, matrix)
    times = f"{loop:.2f} s for its group tests, {ours:.2f} s for everything"
    print(f"GRAS: {loop / ours:.0f} × as fast as scipy in a loop ({times})")


def large(images: int = 100_000) -> None:
    """Time and peak memory of the whole measure, shuffles aside."""
    matrix = random_matrix(images)
    began = time.perf_counter()
    rows = sum(1 for _ in GRAS.measures[0]({"gras": matrix}, MeasureOptions(permutations=1)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"GRAS: {images:,} × 500 in {time.perf_counter() - began:.0f} s, {peak:.2f} GB at the peak, {rows:,} rows")


if __name__ == "__main__":
    if sys.argv[1:] == ["--large"]:
        large()
    else:
        ratio()
        subprocess.run([sys.executable, __file__, "--large"], check=True)
