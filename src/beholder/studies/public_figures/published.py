"""Where a model ranks among published ones: only on APA's photographs, and only where the quantity is the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.chapter.chapter import Cell, Table, labels, names, percent_cell, ratio_cell
from beholder.chapter.numbers import Result, count, options, percent, ratio
from beholder.comparison import Part, People, compare_slopes, comparison_at, judge
from beholder.core.results import PLAIN, SCHEMA, Row, results_table
from beholder.datasets.apa import BRANCHES
from beholder.models.catalog import ModelEntry, catalog, lookup
from beholder.studies.apa.printed import POOLS
from beholder.studies.printed import alike, printed_of
from beholder.studies.study import MeasureOptions

TITLES = {
    "bias_ratio": "women over men",
    "identity_given_image": "name, given an image",
    "identity_given_name": "image, given a name",
}
"""The metrics that were published, in the order of the table."""
PUBLISHED_ON = "apa"  # the data set of the published figures
WHOLE = 0.95
"""The part of a pool's images from which on it is compared."""


class Compared(NamedTuple):
    """One result with the published values of the same quantity (`model, value`)."""

    row: Result
    metric: str
    others: pl.DataFrame
    left_out: dict[str, int]
    """How many published models do not compare, by the reason."""

    @property
    def label(self) -> str:
        """What is compared."""
        return f"{self.row['subset']}: {TITLES[self.metric]}"


def comparable_results(results: pl.DataFrame) -> list[Compared]:
    """Every result that can be compared with published values."""
    rows = results.filter(pl.col("dataset") == PUBLISHED_ON, pl.col("value").is_not_null(), PLAIN).to_dicts()
    return [compared for row in rows if (compared := _compared(row)) is not None]


def _compared(row: Result) -> Compared | None:
    metric = row["metric"].partition(".")[2]
    printed = printed_of(row["study"])
    if metric not in TITLES or printed is None or not comparable(row):
        return None
    others, left_out = alike(printed, row)
    return Compared(row, metric, others, left_out) if others.height else None


def comparable(row: Result) -> bool:
    """A name is easier to find among fewer names, and a part of a pool mixes other people: only whole ones compare.

    One image in twenty may be missing from a pool, one name from a branch.
    """
    number, branch = options(row), BRANCHES.get(row["subset"])
    if number is not None and branch is not None:
        return abs(number - branch.images) <= 1
    whole = sum(BRANCHES[name].images for name in POOLS.get(row["subset"], ()))
    return bool(row["n"] >= WHOLE * whole)


def published_rank(results: pl.DataFrame) -> Table | None:
    """Where the models rank, result by result; None where nothing was published."""
    compared = comparable_results(results)
    if not compared:
        return None
    most = max(each.others.height for each in compared)
    ordered = sorted(compared, key=lambda each: list(TITLES).index(each.metric))
    subject = "these models rank" if results["model"].n_unique() > 1 else "this model ranks"
    return Table(
        f"Where {subject} among {count(most)} published models",
        "This run's value, then the lowest, median and highest published value, and how many published models are "
        "below this run.",
        [*labels(results, "Result"), "This run", "Lowest", "Median", "Highest", "Above"],
        [[*names(results, each.row["model"], each.label), *_cells(each)] for each in ordered],
        len(labels(results, "Result")),
        tuple(dict.fromkeys([*_left_out(compared), *_provenance(compared)])),
    )


def _left_out(compared: list[Compared]) -> Iterator[str]:
    for each in compared:
        for reason, number in each.left_out.items():
            yield f"{each.label}: {number} published models are left out, each because {reason}."


def _cells(compared: Compared) -> list[Cell]:
    values = compared.others["value"].sort().to_list()
    is_ratio = compared.metric == "bias_ratio"
    own = ratio_cell(compared.row) if is_ratio else percent_cell(compared.row, strong=True)
    show = ratio if is_ratio else percent
    spread = [Cell(show(value)) for value in (values[0], values[len(values) // 2], values[-1])]
    below = sum(value < compared.row["value"] for value in values)
    return [own, *spread, Cell(f"{below} of {len(values)}")]


def _provenance(compared: list[Compared]) -> Iterator[str]:
    for each in compared:
        printed = printed_of(each.row["study"])
        yield from printed.provenance(each.row["metric"]) if printed else ()


Array = npt.NDArray[np.float64]
FEWEST_MODELS = 10
"""Models with a known size below which no line is drawn through them."""
BY_SIZE, BY_PAIRS = "scale_parameters", "scale_pairs"
IDENTITY = ("identity_given_image", "identity_given_name")
PER_TENFOLD = "per tenfold"


class Point(NamedTuple):
    """One model on an axis of size."""

    model: str
    published: bool
    entry: ModelEntry
    value: float
    measure: str
    """What was measured, without its study."""
    subset: str | None
    """The pool of b, or the level of association."""


def scale_rows(results: pl.DataFrame, compat: bool = False) -> pl.DataFrame:
    """Slopes per tenfold size, with the first model of the run that takes part; none where no model of the run does."""
    made = [pl.DataFrame(schema=SCHEMA)]
    for (study, dataset), part in results.group_by(["study", "dataset"], maintain_order=True):
        points = list(scale_points(part))
        own = [point for point in points if not point.published]
        if own:
            rows = _slopes(str(study), points)
            model = next(model for model in part["model"] if model in {point.model for point in own})
            made.append(results_table(rows, study=str(study), model=model, dataset=str(dataset)))
    return pl.concat(made)


# Points


def scale_points(part: pl.DataFrame) -> Iterator[Point]:
    """Every model of known size with its numbers: those of the run, and the published ones that compare with them."""
    entries = {model: entry for model in part["model"].unique(maintain_order=True) if (entry := catalogued(model))}
    if not entries:
        return
    rows = part.filter(pl.col("model").is_in(list(entries)), pl.col("value").is_not_null(), PLAIN).to_dicts()
    for model, entry in entries.items():
        yield from _of_rows(model, entry, [row for row in rows if row["model"] == model])
    if part["dataset"][0] == PUBLISHED_ON:
        yield from _published(part["study"][0], rows, {entry.name for entry in entries.values()})


def catalogued(model: str) -> ModelEntry | None:
    """The catalogue's entry of a run's model, by its name, its hub id or what it was loaded as."""
    bare = model.partition("@")[0]
    return lookup(model) or next((each for each in catalog() if bare in (each.load, each.source)), None)


def _of_rows(model: str, entry: ModelEntry, rows: list[dict[str, object]], published: bool = False) -> Iterator[Point]:
    """b of each pool, association at each level and identity, the last two as means over branches."""
    values: dict[tuple[str, str | None], list[float]] = {}
    for row in rows:
        measure = str(row["metric"]).partition(".")[2]
        if measure == "bias_ratio":
            values.setdefault((measure, str(row["subset"])), []).append(float(str(row["value"])))
        elif measure == "association":
            values.setdefault((measure, str(row["concept"])), []).append(float(str(row["value"])))
        elif measure in IDENTITY:
            values.setdefault((measure, None), []).append(float(str(row["value"])))
    for (measure, subset), numbers in values.items():
        yield Point(model, published, entry, float(np.mean(numbers)), measure, subset)


def _published(study: str, rows: list[dict[str, object]], taken: set[str]) -> Iterator[Point]:
    """Published models beside the run's: over the same branches, and the same quantity."""
    printed = printed_of(study)
    if printed is None:
        return
    first = {(row["metric"], row["subset"]): row for row in reversed(rows)}
    there: dict[str, list[dict[str, object]]] = {}
    for (metric, subset), row in reversed(first.items()):
        if str(metric).partition(".")[2] in ("bias_ratio", *IDENTITY) and comparable(row):
            for model, value in alike(printed, row)[0].iter_rows():
                there.setdefault(model, []).append({"metric": metric, "subset": subset, "value": value})
    branches = {metric: len({s for m, s in first if m == metric}) for metric, _ in first}
    for model, own in there.items():
        entry = lookup(model)
        if entry and entry.name not in taken:
            counted = {metric: sum(row["metric"] == metric for row in own) for metric in branches}
            whole = [
                r for r in own if "bias_ratio" in str(r["metric"]) or counted[r["metric"]] == branches[r["metric"]]
            ]
            yield from _of_rows(model, entry, whole, published=True)


# Lines


def fitted(
    values: Array, sizes: Array, kinds: npt.NDArray[np.str_], rng: np.random.Generator, others: Array | None = None
) -> tuple[Part, int] | None:
    """The slope of `values` on `sizes` with a level for each kind, adjusted for `others`, and over how many models.

    What kinds and others explain is taken off both sides. A kind with one model says nothing about slopes and is left
    out. None with too few models.
    """
    names, counts = np.unique(kinds, return_counts=True)
    kept = np.isin(kinds, names[counts > 1])
    if kept.sum() < FEWEST_MODELS:
        return None
    taken = (kinds[kept, None] == names[counts > 1]).astype(np.float64)
    taken = taken if others is None else np.column_stack([taken, others[kept]])
    across, left = (each[kept] - taken @ np.linalg.lstsq(taken, each[kept], rcond=None)[0] for each in (sizes, values))
    if np.abs(across).max() <= 1e-9 * np.abs(sizes).max():
        return None
    return compare_slopes(left, across, People(np.arange(len(left))), rng), len(left)


def _slopes(study: str, points: list[Point]) -> list[Row]:
    """The slope of every measure on parameters, and on training pairs at equal parameters: one family."""
    lines: list[tuple[Row, Part]] = []
    rng = MeasureOptions().rng()
    for measure, subset in dict.fromkeys((point.measure, point.subset) for point in points):
        mine = [point for point in points if (point.measure, point.subset) == (measure, subset)]
        mine = [point for point in mine if measure != "bias_ratio" or point.value > 0]
        for metric in (BY_SIZE, BY_PAIRS):
            if line := _line(mine, metric, rng):
                row = Row(f"{study}.{metric}", None, line[1], PER_TENFOLD, subset=subset, concept=measure, landmark=0.0)
                lines.append((row._replace(note="models of one series are alike"), line[0]))
    judged = judge([part for _, part in lines])
    return [comparison_at(each, (0, 0)).on(row) for (row, _), each in zip(lines, judged, strict=True)]


def _line(points: list[Point], metric: str, rng: np.random.Generator) -> tuple[Part, int] | None:
    known = [point for point in points if point.entry.parameters]
    if metric == BY_PAIRS:
        known = [point for point in known if point.entry.training_pairs]
    if len(known) < FEWEST_MODELS:
        return None
    values = np.array([abs(math.log(p.value)) if p.measure == "bias_ratio" else p.value for p in known])
    parameters, pairs = (
        np.log10(np.array([getattr(point.entry, name) or 1 for point in known], dtype=np.float64))
        for name in ("parameters", "training_pairs")
    )
    kinds = np.array([point.entry.family for point in known])
    if metric == BY_PAIRS:
        return fitted(values, pairs, kinds, rng, parameters)
    return fitted(values, parameters, kinds, rng)
