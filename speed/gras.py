"""GRAS's tests of all traits and wordings are taken at once, many times as fast as scipy called for each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
from bench import Claim, alone, compared, main, timed
from scipy import stats

from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import all_grouped, read_answers
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

GROUPS = {"gender": 2, "race": 7, "age": 5, "skin_tone": 10}


def random_matrix(images: int, traits: int = 100) -> ScoreMatrix:
    """P(Yes) at random, float32 as the store keeps it; two thirds of the images in the FairFace part."""
    rng = np.random.default_rng(0)
    fair = np.arange(images) < images * 0.7126
    table: dict[str, list[str | None]] = {"image_id": [str(i) for i in range(images)]}
    table["part"] = ["fairface" if own else "aiface" for own in fair]
    for name, count in GROUPS.items():
        members = fair if name != "skin_tone" else ~fair
        labels = rng.integers(1, count + 1, images)
        table[name] = [str(label) if own else None for label, own in zip(labels, members, strict=True)]
    prompts = gras_prompts().table
    asked = prompts.filter(pl.col("concept").is_in(prompts["concept"].unique(maintain_order=True)[:traits].implode()))
    values = rng.random((images, asked.height, 1), dtype=np.float32)
    return ScoreMatrix("gras", pl.DataFrame(table), asked, ("score",), values)


def at_once(matrix: ScoreMatrix) -> None:
    """Welch's test of four attributes in every trait and wording."""
    for grouped in all_grouped(read_answers({"gras": matrix})):
        assert grouped.compared().test.p_value.size == matrix.prompts.height


def column_by_column(matrix: ScoreMatrix) -> None:
    """The same as the study's script takes them: one call of scipy for every trait and wording."""
    for attribute in GROUPS:
        labels = matrix.images[attribute]
        parts = [
            matrix.values[(labels == group).fill_null(False).to_numpy(), :, 0]
            for group in sorted(labels.drop_nulls().unique())
        ]
        for column in range(matrix.prompts.height):
            samples = [part[:, column] for part in parts]
            if len(samples) == 2:
                stats.ttest_ind(*samples, equal_var=False)
            else:
                stats.f_oneway(*samples, equal_var=False)


def group_tests(options: Namespace) -> Iterator[Claim]:
    """Ours against scipy in a loop, on the same matrix."""
    matrix = random_matrix(*(200, 4) if options.quick else (5010, 100))
    ways = [
        timed("ours", lambda: at_once(matrix)),
        timed("scipy, column by column", lambda: column_by_column(matrix), repeats=1),
    ]
    images, prompts = matrix.images.height, matrix.prompts.height
    yield compared(f"GRAS: group tests of {images:,} faces × {prompts} questions × 4 attributes", ways)


def whole_measure(images: int, traits: int) -> Callable[[], object]:
    """All of GRAS's numbers, with one shuffle for the published score and 999 for verdicts."""
    matrix, options = random_matrix(images, traits), MeasureOptions(permutations=1, shuffles=999)
    return lambda: sum(1 for _ in GRAS.measures.functions[0]({"gras": matrix}, options))


def whole(options: Namespace) -> Iterator[Claim]:
    """Time and memory of everything that GRAS measures."""
    sizes = [(200, 4)] if options.quick else [(5_010, 100), (20_000, 100)]
    ways = [
        alone(f"{images:,} faces × {5 * traits} questions", whole_measure, images, traits) for images, traits in sizes
    ]
    yield compared("GRAS: the whole measure with 999 shuffles, each in a process of its own", ways)


if __name__ == "__main__":
    main(group_tests, whole)
