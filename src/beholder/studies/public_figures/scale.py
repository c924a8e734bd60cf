"""Does scale help? Lines through models: association, b and identity against parameters and training pairs.

A run's models stand beside the published ones, whose numbers are the same quantity on the same photographs. Sizes are
the catalogue's; a model whose size is unknown is left out. Kinds of models (contrastive, matching, generative) have a
level each, so that a line never runs from one kind to another. Errors are robust to unequal spread (HC3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import stdtr, stdtrit

from beholder.core.results import SCHEMA, Row, results_table
from beholder.metrics.multiplicity import holm
from beholder.models.catalog import ModelEntry, catalog, lookup
from beholder.studies.printed import alike, printed_of
from beholder.studies.public_figures.published_rank import comparable
from beholder.studies.public_figures.queries import PUBLISHED_ON

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
    for (study, dataset), part in results.group_by(["benchmark", "dataset"], maintain_order=True):
        points = list(scale_points(part))
        own = [point for point in points if not point.published]
        if own:
            rows = _slopes(str(study), points)
            model = next(model for model in part["model"] if model in {point.model for point in own})
            made.append(results_table(rows, benchmark=str(study), model=model, dataset=str(dataset)))
    return pl.concat(made)


# Points


def scale_points(part: pl.DataFrame) -> Iterator[Point]:
    """Every model of known size with its numbers: those of the run, and the published ones that compare with them."""
    entries = {model: entry for model in part["model"].unique(maintain_order=True) if (entry := catalogued(model))}
    if not entries:
        return
    rows = part.filter(pl.col("model").is_in(list(entries)) & pl.col("value").is_not_null()).to_dicts()
    for model, entry in entries.items():
        yield from _of_rows(model, entry, [row for row in rows if row["model"] == model])
    if part["dataset"][0] == PUBLISHED_ON:
        yield from _published(part["benchmark"][0], rows, {entry.name for entry in entries.values()})


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


class Line(NamedTuple):
    """A slope with its interval and p of "it is 0"."""

    slope: float
    low: float
    high: float
    p_value: float
    n: int


def fitted(values: Array, sizes: Array, kinds: npt.NDArray[np.str_], others: Array | None = None) -> Line | None:
    """The slope of `values` on `sizes` with a level for each kind, adjusted for `others`; None with too few models.

    A kind with one model says nothing about slopes and is left out.
    """
    names, counts = np.unique(kinds, return_counts=True)
    kept = np.isin(kinds, names[counts > 1])
    columns = [sizes[kept], *([] if others is None else [others[kept]])]
    design = np.stack([*columns, *(kinds[kept] == name for name in names[counts > 1])], axis=1).astype(np.float64)
    n, k = design.shape
    if n < FEWEST_MODELS or np.linalg.matrix_rank(design) < k:
        return None
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T
    coefficients = weights @ values[kept]
    residuals = values[kept] - design @ coefficients
    leverage = np.einsum("ij,ji->i", design, weights)
    error = math.sqrt(((weights[0] * residuals / np.maximum(1 - leverage, 1e-9)) ** 2).sum())
    if not error > 0:
        return None
    reach = float(stdtrit(n - k, 0.975)) * error
    slope = float(coefficients[0])
    return Line(slope, slope - reach, slope + reach, float(2 * stdtr(n - k, -abs(slope) / error)), n)


def _slopes(study: str, points: list[Point]) -> list[Row]:
    """The slope of every measure on parameters, and on training pairs at equal parameters; corrected over all."""
    lines: list[tuple[str, Point, Line]] = []
    for measure, subset in dict.fromkeys((point.measure, point.subset) for point in points):
        mine = [point for point in points if (point.measure, point.subset) == (measure, subset)]
        mine = [point for point in mine if measure != "bias_ratio" or point.value > 0]
        for metric in (BY_SIZE, BY_PAIRS):
            line = _line(mine, metric)
            if line:
                lines.append((metric, mine[0], line))
    corrected = holm(np.array([[line.p_value for _, _, line in lines]]))[0]
    rows = []
    for (metric, point, line), p_value in zip(lines, corrected, strict=True):
        note = f"p: the slope is 0, Holm over {len(lines)} slopes; models of one series are alike"
        row = Row(f"{study}.{metric}", line.slope, line.n, PER_TENFOLD, subset=point.subset, concept=point.measure)
        rows.append(row._replace(low=line.low, high=line.high, p_value=float(p_value), landmark=0.0, note=note))
    return rows


def _line(points: list[Point], metric: str) -> Line | None:
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
    return fitted(values, pairs, kinds, parameters) if metric == BY_PAIRS else fitted(values, parameters, kinds)
