"""Do the printed tables of the perception study agree with themselves?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl
from scipy import stats

from beholder.studies.printed import EQUAL, Check, Printed

POINTS = {"smiling": 10, "lighting": 8, "pose": 5}
"""Values of each attribute over which Table S.2 correlates two curves."""
DESIRED = {"gender": {"male": 1 / 2, "female": 1 / 2}, "race": {"white": 1 / 3, "black": 1 / 3, "asian": 1 / 3}}
"""The share of each group without skew."""


def perception_checks(printed: Printed, ledger: pl.DataFrame) -> Iterator[Check]:
    """Every check of Tables S.1 and S.2."""
    yield _own_images(ledger.filter(metric="perception.markedness"))
    yield from _skews(ledger)
    yield _p_values(printed.table)
    averages = ledger.filter(source="perception_table_s2", concept="mean")
    obey = int((averages["verdict"] == EQUAL).sum())
    rule, finding = "The last row is the mean of the three above", f"{obey} of {averages.height} averages are."
    yield Check("perception", "Table S.2", rule, obey, averages.height, finding)


def _own_images(cells: pl.DataFrame) -> Check:
    listed = tuple(f"{row['dataset']}, {row['group']}: printed 0.00" for row in cells.to_dicts() if row["printed"] == 0)
    finding = "The released script compares `Male` with `male`, finds no rows and writes 0: they are unpublished."
    rule, n = "Markedness is of the group's own images", cells.height
    return Check("perception", "Table S.1", rule, n - len(listed), n, finding, listed)


def _skews(cells: pl.DataFrame) -> Iterator[Check]:
    """A mean of maxima is at least the maximum of the means; shares add up to 1, and exp of a mean log is no more."""
    maxima, skews = (cells.filter(metric=f"perception.{name}").to_dicts() for name in ("max_skew", "skew"))
    largest = {(row["dataset"], row["subset"]): row["printed"] for row in maxima}
    skew = {(row["dataset"], row["group"]): row["printed"] for row in skews}
    least = {key: max(skew[key[0], group] for group in DESIRED[key[1]]) - 0.01 for key in largest}
    low = [", ".join(key) for key, value in largest.items() if value < least[key]]
    n, rule = len(largest), "MaxSkew is at least the largest Skew"
    finding = f"{n - len(low)} of {n} MaxSkews are at least the largest Skew of their groups"
    finding += ", as means of maxima must be."
    yield Check("perception", "Table S.1", rule, n - len(low), n, finding, tuple(low))
    shares = {
        (dataset, attribute): sum(share * math.exp(skew[dataset, group]) for group, share in DESIRED[attribute].items())
        for dataset, attribute in largest
    }
    # Each Skew is rounded to two places.
    over = [f"{dataset}, {attribute}: {total:.3f}" for (dataset, attribute), total in shares.items() if total > 1.007]
    rule = "The shares that the Skews stand for add up to at most 1"
    yield Check("perception", "Table S.1", rule, n - len(over), n, f"{n - len(over)} of {n} do.", tuple(over))


def _p_values(table: pl.DataFrame) -> Check:
    """A p-value is printed as a figure or as a bound, `<0.01`."""
    keys = ["subset", "concept"]
    r = table.filter(metric="perception.opposites_r")
    p = table.filter(metric="perception.opposites_r.p_value").select(*keys, p="printed")
    both = r.join(p, on=keys)
    off = []
    for row in both.to_dicts():
        points, value, p_value = POINTS[row["subset"]], float(row["printed"]), row["p"]
        low, high = sorted(correlation_p(x, points) for x in (abs(value) - 0.005, abs(value) + 0.005))
        fits = low < 0.01 if p_value.startswith("<") else low - 0.005 <= float(p_value) <= high + 0.005
        if not fits:
            off.append(f"{row['concept']}, {row['subset']}: r = {value:g} over {points} points, p printed as {p_value}")
    rule, n = "p is that of r over the attribute's values", both.height
    finding = f"{n - len(off)} of {n} p-values follow from their r and the number of values."
    return Check("perception", "Table S.2", rule, n - len(off), n, finding, tuple(off))


def correlation_p(r: float, points: int) -> float:
    """Two-sided p of a Pearson correlation."""
    r = min(r, 1 - 1e-12)
    statistic = r * math.sqrt((points - 2) / (1 - r**2))
    return float(2 * stats.t.sf(statistic, points - 2))


def averages(cells: pl.DataFrame) -> pl.DataFrame:
    """The last row of Table S.2 from the three above it."""
    keys = ["model", "dataset", "metric", "subset"]
    rows = cells.filter(pl.col("metric").eq("perception.opposites_r") & pl.col("concept").ne("mean"))
    means = rows.group_by(keys, maintain_order=True).agg(value=pl.col("printed").mean())
    note = pl.lit("mean of the three printed correlations")
    bounds = {"low": pl.col("value") - 0.005, "high": pl.col("value") + 0.005}
    return means.with_columns(concept=pl.lit("mean"), **bounds, note=note)
