"""Time grows in proportion to images, prompts, draws and caption bytes; with groups, about as their square.

Each curve is work of the product at growing sizes, on random scores or drawn people. The exponent is the slope of the
logarithm of processor time over that of the size, by least squares, with its 95 % interval. 1 is in proportion; a fixed
part, such as reading tables, makes it smaller. All pairs of groups are compared, so many groups take their square.
"""

from __future__ import annotations

import random
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from bench import Cell, Claim, main, timed
from disparity import draws_of
from exposure import made
from gras import random_matrix
from scipy import stats

from beholder._steps import measure
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.load import load_model
from beholder.prompts.prompt_set import PromptSet, prompt_set
from beholder.scores.fill import fill
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.store import Store
from beholder.studies import STUDIES
from beholder.studies.custom.study import custom_study
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import Mentions, Term
from beholder.studies.inquiry import Inquiry
from beholder.studies.study import MeasureOptions, Study

Work = Callable[[], object]


class Fit(NamedTuple):
    """The exponent of a power law, with its 95 % interval."""

    exponent: float
    low: float
    high: float


def power_law(sizes: Sequence[float], seconds: Sequence[float]) -> Fit:
    """How seconds grow with the size: as its power of the exponent.

    >>> power_law([1, 2, 4, 8], [3, 12, 48, 192]).exponent
    2.0
    """
    line = stats.linregress(np.log(sizes), np.log(seconds))
    margin = stats.t.ppf(0.975, len(sizes) - 2) * line.stderr
    return Fit(float(line.slope), float(line.slope - margin), float(line.slope + margin))


# What grows


def people(count: int, groups: int = 2) -> Dataset:
    """Drawn people, again and again under new names, dealt into teams; as photographs come, in no design."""
    design = load_dataset("glasshouse-design")
    table = design.table.drop("seed").sample(fraction=1, shuffle=True, seed=0)
    table = pl.concat([table] * -(-count // len(design))).head(count)
    numbers = np.arange(count)
    named = table.with_columns(
        image_id=pl.Series([f"person {number}" for number in numbers]),
        team=pl.Series([f"team {number}" for number in numbers % groups]),
    )
    return replace(design, table=named)


def words(count: int) -> PromptSet:
    """Prompts that differ in a number."""
    rows = [{"text": f"a person of kind {n}", "concept": f"kind {n}", "level": "kinds"} for n in range(count)]
    return prompt_set("kinds", rows)


def measured(study: Study, dataset: Dataset, options: MeasureOptions) -> Work:
    """A study's whole measure of random cosines."""
    rng, matrices = np.random.default_rng(0), []
    for task in study.tasks_of(answers=False)(dataset):
        cosines = rng.normal(0.2, 0.02, (len(task.dataset), len(task.prompts), 1)).astype(np.float32)
        tables, place = (task.dataset.table, task.prompts.table), (task.dataset, task.kind, task.part)
        matrices.append(ScoreMatrix(task.name, *tables, ("cosine",), cosines, {"logit_scale": 100.0}, *place))
    return lambda: measure(Inquiry(study, dataset), matrices, options, model="chance")


def own_prompts(images: int = 2000, prompts: int = 8, groups: int = 4, draws: int = 500) -> Work:
    """A user's prompts, compared between teams."""
    return measured(custom_study(words(prompts), by=["team"]), people(images, groups), MeasureOptions(draws=draws))


def perception(images: int) -> Work:
    """All seven analyses of perception."""
    return measured(STUDIES["perception"], people(images), MeasureOptions(draws=200))


def gras(images: int = 2000, traits: int = 20, shuffles: int = 10) -> Work:
    """GRAS's whole measure."""
    matrix, options = random_matrix(images, traits), MeasureOptions(permutations=shuffles)
    return lambda: list(STUDIES["gras"].measures.functions[0]({"gras": matrix}, options))


def filled(images: int = 40, prompts: int = 20) -> Work:
    """The embedded contrastive model on drawn people, pictures to store."""
    scorer, task = model(), Task("growth", people(images), words(prompts))

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill([task], scorer, Store(Path(folder)))

    return work


@cache
def model() -> object:
    """Loaded once."""
    return load_model("glasshouse/contrastive")


def captions(megabytes: float, folder: Path) -> Work:
    """Exposure's count of 844 names in a file of captions."""
    names, texts = vocabulary()
    path, text = folder / f"{megabytes}.txt", "\n".join(texts) + "\n"
    path.write_text(text * max(1, round(megabytes * 1e6 / len(text.encode()))))
    mentions = Mentions([Term("name", name) for name in names])
    return lambda: count_captions([CaptionFile(path)], mentions)


@cache
def vocabulary() -> tuple[list[str], list[str]]:
    """Names, and captions of about half a megabyte."""
    return made(7_000, random.Random(1))


# Curves


class Curve(NamedTuple):
    """Work at growing sizes of one thing."""

    over: str
    what: str
    work: Callable[[int], Work]
    sizes: Sequence[int]


def curves(folder: Path) -> Iterator[Curve]:
    """Every curve."""
    yield Curve("images", "own prompts, measured", lambda n: own_prompts(images=n), (1000, 2000, 4000, 8000, 16_000))
    yield Curve("images", "GRAS, measured", lambda n: gras(images=n), (1000, 2000, 4000, 8000, 16_000))
    yield Curve("images", "perception, measured", perception, (1000, 2000, 4000, 8000))
    yield Curve("images", "filling, pictures to store", lambda n: filled(images=n), (20, 40, 80, 160))
    yield Curve("images", "disparity's bootstrap", lambda n: draws_of(n, 20, 100), (4000, 8000, 16_000, 32_000, 64_000))
    yield Curve("prompts", "own prompts, measured", lambda n: own_prompts(prompts=n), (32, 64, 128, 256, 512))
    yield Curve("prompts", "GRAS, measured", lambda n: gras(traits=n // 5), (60, 125, 250, 500))
    yield Curve("prompts", "filling, pictures to store", lambda n: filled(8, n), (1000, 2000, 4000, 8000))
    yield Curve("groups", "own prompts, measured", lambda n: own_prompts(groups=n), (4, 8, 16, 32, 64))
    yield Curve("draws", "own prompts, measured", lambda n: own_prompts(draws=n), (500, 1000, 2000, 4000, 8000))
    yield Curve("draws", "disparity's bootstrap", lambda n: draws_of(4000, 20, n), (200, 400, 800, 1600, 3200))
    yield Curve("shuffles", "GRAS, measured", lambda n: gras(1000, shuffles=n), (500, 1000, 2000, 4000))
    yield Curve("caption MB", "exposure, names counted", lambda n: captions(n, folder), (4, 8, 16, 32, 64))


def seconds(work: Work) -> float:
    """Of the processor: the least of three runs, of one if that takes more than a second."""
    first = timed("", work, repeats=1).processor
    return first if first > 1 else min(first, timed("", work, repeats=2).processor)


def line(curve: Curve) -> list[Cell]:
    """The curve's row: sizes, processor time, the exponent, and that between the two largest sizes."""
    spent = [seconds(curve.work(size)) for size in curve.sizes]
    fit, (*_, before, last) = power_law(curve.sizes, spent), zip(curve.sizes, spent, strict=True)
    end = np.log(last[1] / before[1]) / np.log(last[0] / before[0])
    spans = f"{curve.sizes[0]:,} to {curve.sizes[-1]:,}", f"{spent[0]:.2f} to {spent[-1]:.2f}"
    return [curve.over, curve.what, *spans, f"{fit.exponent:.2f}", f"{fit.low:.2f} to {fit.high:.2f}", f"{end:.2f}"]


def growth(options: Namespace) -> Iterator[Claim]:
    """One row for each curve."""
    columns = ["over", "work", "sizes", "processor seconds", "exponent", "95 %", "at the end"]
    with tempfile.TemporaryDirectory() as folder:
        if options.quick:
            for curve in curves(Path(folder)):
                curve.work(max(1, curve.sizes[0] // 50))()
        rows = [] if options.quick else [line(curve) for curve in curves(Path(folder))]
    yield Claim("Growth: processor time grows as the size to the power of the exponent", columns, rows)


if __name__ == "__main__":
    main(growth)
