"""A run's models among published ones, on APA's photographs: where they rank, and whether scale helps.

Kinds of models (contrastive, matching, generative) have a level each, so that a line never runs between kinds.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.chapter.chapter import Cell, Table, percent_cell, ratio_cell, tabled
from beholder.chapter.numbers import Result, count, options, percent, ratio
from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import People
from beholder.comparison.means import compare_slopes
from beholder.core.results import PLAIN, SCHEMA, Row, results_table
from beholder.core.types import Array
from beholder.datasets.apa import BRANCHES
from beholder.models.catalog import ModelEntry, catalog, lookup
from beholder.studies.apa.printed import POOLS
from beholder.studies.printed import alike, printed_of
from beholder.studies.study import MeasureOptions

TITLES = {
    "bias_ratio": "women over men",
    "identity_given_image": "name, given an image",
    "identity_given_name": "image, given a name",
}  # the metrics that were published, in the order of the table
PUBLISHED_ON = "apa"  # the data set of the published figures
WHOLE = 0.95  # the part of a pool's images from which on it is compared


class Compared(NamedTuple):
    """One result with the published values of the same quantity (`model, value`)."""

    row: Result
    metric: str
    others: pl.DataFrame
    left_out: dict[str, int]  # how many published models do not compare, by the reason

    @property
    def label(self) -> str:
        """What is compared."""
        return f"{self.row['subset']}: {TITLES[self.metric]}"


def comparable_results(results: pl.DataFrame) -> list[Compared]:
    """Every result that can be compared with published values."""
    rows = results.filter(pl.col("dataset") == PUBLISHED_ON, pl.col("value").is_not_null(), PLAIN).to_dicts()
    made = []
    for row in rows:
        metric, printed = row["metric"].partition(".")[2], printed_of(row["study"])
        if metric in TITLES and printed is not None and comparable(row):
            made.append(Compared(row, metric, *alike(printed, row)))
    return [each for each in made if each.others.height]


def comparable(row: Result) -> bool:
    """A name is easier to find among fewer names, and a part of a pool mixes other people: only whole ones compare."""
    # One image in twenty may be missing from a pool, one name from a branch.
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
    subject = "these models rank" if results["model"].n_unique() > 1 else "this model ranks"
    left_out = [
        f"{each.label}: {number} published models are left out, each because {reason}."
        for each in compared
        for reason, number in each.left_out.items()
    ]
    sources = {(each.row["metric"]): printed_of(each.row["study"]) for each in compared}
    return tabled(
        results,
        [_ranked(each) for each in sorted(compared, key=lambda each: list(TITLES).index(each.metric))],
        [("Result", "label")],
        [("This run", "own"), ("Lowest", "low"), ("Median", "middle"), ("Highest", "high"), ("Above", "above")],
        title=f"Where {subject} among {count(max(each.others.height for each in compared))} published models",
        caption="This run's value, then the lowest, median and highest published value, and how many published models "
        "are below this run.",
        notes=[*left_out, *(note for name, source in sources.items() if source for note in source.provenance(name))],
    )


def _ranked(compared: Compared) -> dict[str, str | Cell]:
    values, row = compared.others["value"].sort().to_list(), compared.row
    is_ratio = compared.metric == "bias_ratio"
    show = ratio if is_ratio else percent
    spread = {"low": show(values[0]), "middle": show(values[len(values) // 2]), "high": show(values[-1])}
    own = ratio_cell(row) if is_ratio else percent_cell(row, strong=True)
    above = f"{sum(value < row['value'] for value in values)} of {len(values)}"
    return {"model": row["model"], "label": compared.label, "own": own, **spread, "above": above}


# Does scale help? Lines through models: association, b and identity against parameters and training pairs

FEWEST_MODELS = 10  # models with a known size below which no line is drawn through them
AXES = {"scale_parameters": "parameters", "scale_pairs": "training pairs"}
# What is put against size, and the column by which it is: the pool of b, the level of association.
SPLIT = {"bias_ratio": "subset", "association": "concept", "identity_given_image": None, "identity_given_name": None}


class Point(NamedTuple):
    """One model on an axis of size: a number by what was measured, without its study, and its pool or level."""

    model: str
    published: bool
    entry: ModelEntry
    value: float
    measure: str
    subset: str | None


def scale_rows(results: pl.DataFrame, compat: bool = False) -> pl.DataFrame:
    """Slopes per tenfold size, with the first model of the run that takes part; none where no model of the run does."""
    made = [pl.DataFrame(schema=SCHEMA)]
    for (study, dataset), part in results.group_by(["study", "dataset"], maintain_order=True):
        points = list(scale_points(part))
        if own := {point.model for point in points if not point.published}:
            model = next(model for model in part["model"] if model in own)
            rows = _slopes(str(study), points)
            made.append(results_table(rows, study=str(study), model=model, dataset=str(dataset)))
    return pl.concat(made)


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


def _of_rows(model: str, entry: ModelEntry, rows: list[Result], published: bool = False) -> Iterator[Point]:
    """b of each pool, association at each level and identity, the last two as means over branches."""
    values: dict[tuple[str, str | None], list[float]] = {}
    for row in rows:
        measure = row["metric"].partition(".")[2]
        if measure in SPLIT:
            column = SPLIT[measure]
            values.setdefault((measure, row[column] if column else None), []).append(row["value"])
    for (measure, subset), numbers in values.items():
        yield Point(model, published, entry, float(np.mean(numbers)), measure, subset)


def _published(study: str, rows: list[Result], taken: set[str]) -> Iterator[Point]:
    """Published models beside the run's: over the same branches, and the same quantity."""
    printed = printed_of(study)
    first = {(row["metric"], row["subset"]): row for row in reversed(rows)}
    there: dict[str, list[Result]] = {}
    for (metric, subset), row in reversed(first.items()):
        if printed and metric.partition(".")[2] in TITLES and comparable(row):
            for model, value in alike(printed, row)[0].iter_rows():
                there.setdefault(model, []).append({"metric": metric, "subset": subset, "value": value})
    branches = Counter(metric for metric, _ in first)
    for model, own in there.items():
        entry, counted = lookup(model), Counter(row["metric"] for row in own)
        if entry and entry.name not in taken:
            whole = {metric for metric, number in counted.items() if number == branches[metric]}
            kept = [row for row in own if row["metric"].endswith("bias_ratio") or row["metric"] in whole]
            yield from _of_rows(model, entry, kept, published=True)


def fitted(
    values: Array, sizes: Array, kinds: npt.NDArray[np.str_], rng: np.random.Generator, others: Array | None = None
) -> tuple[Part, int] | None:
    """The slope of `values` on `sizes` with a level for each kind, adjusted for `others`, and over how many models."""
    # What kinds and others explain is taken off both sides. A kind with one model says nothing about slopes and is left
    # out. None with too few models.
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
        mine = [p for p in points if (p.measure, p.subset) == (measure, subset) and p.entry.parameters]
        if measure == "bias_ratio":
            mine = [p._replace(value=abs(math.log(p.value))) for p in mine if p.value > 0]
        paired = [p for p in mine if p.entry.training_pairs]
        for metric, known in zip(AXES, (mine, paired), strict=True):
            parameters = np.log10([p.entry.parameters or 1 for p in known])
            pairs = np.log10([p.entry.training_pairs or 1 for p in known])
            values, kinds = np.array([p.value for p in known]), np.array([p.entry.family for p in known])
            sizes, others = (pairs, parameters) if known is paired else (parameters, None)
            if line := fitted(values, sizes, kinds, rng, others):
                row = Row(f"{study}.{metric}", None, line[1], "per tenfold", subset=subset, concept=measure)
                lines.append((row._replace(landmark=0.0, note="models of one series are alike"), line[0]))
    judged = judge([part for _, part in lines])
    return [comparison_at(each, (0, 0)).on(row) for (row, _), each in zip(lines, judged, strict=True)]
