"""Human ratings beside the model's: do people and model order the same images, or the same groups, alike?

A table with the columns `image` or `group`, `trait` (a dimension or a word), `mean` and `n`. Both sides are put on one
scale (standard deviations within a trait) before departures are taken; departures are told for groups, never for a
single picture of anyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from beholder.benchmarks.perception_scores import Array, Judged, finest, groupings
from beholder.datasets.tables import read_table, require_columns
from beholder.errors import DataError
from beholder.results import Row

FEWEST_RATED = 4
"""Images or groups below which no correlation is given."""
CORRELATION, DEVIATIONS = "correlation", "standard deviations"


def read_ratings(path: Path) -> pl.DataFrame:
    """`kind` (image or group), `who`, `trait`, `mean`, `n`, checked."""
    raw = read_table(path).with_columns(pl.all().cast(pl.String))
    require_columns(raw, ["trait", "mean", "n"], path)
    kinds = [kind for kind in ("image", "group") if kind in raw.columns]
    if len(kinds) != 1:
        raise DataError(
            f"{path}: a table of ratings has one column 'image' or 'group'; it has: {', '.join(raw.columns)}."
        )
    numbers = raw.with_columns(pl.col("mean", "n").cast(pl.Float64, strict=False))
    for number, row in enumerate(numbers.iter_rows(named=True), start=2):
        lacking = [name for name in (*kinds, "trait", "mean", "n") if row[name] is None]
        if lacking:
            raise DataError(f"{path}: row {number} has no {lacking[0]} that can be read.")
    twice = numbers.select(*kinds, "trait").is_duplicated()
    if twice.any():
        row = numbers.filter(twice).row(0, named=True)
        raise DataError(f"{path}: {row[kinds[0]]!r} is rated on {row['trait']!r} more than once.")
    return numbers.select(pl.lit(kinds[0]).alias("kind"), pl.col(kinds[0]).alias("who"), "trait", "mean", "n")


def rating_rows(judged: Judged, ratings: pl.DataFrame) -> Iterator[Row]:
    """For every trait that both rate: correlation with its interval, and where the model departs most."""
    kind = ratings["kind"][0]
    for (trait,), part in ratings.group_by(["trait"], maintain_order=True):
        model = _model_scores(judged, str(trait), kind)
        if model is None:
            note = f"{trait!r} is no dimension and no word of this run"
            yield Row("perception.rating_r", None, 0, CORRELATION, subset=kind, concept=str(trait), note=note)
            continue
        joined = part.join(model, on="who", how="inner")
        yield from _trait_rows(joined, judged, kind, str(trait), part.height)


def _model_scores(judged: Judged, trait: str, kind: str) -> pl.DataFrame | None:
    """`who`, `score`: Δ of a dimension (by name or title) or of a word, for images or for groups."""
    by_name = {key: d for d in judged.dimensions for key in (d.name, d.title.lower())}
    known = trait.lower()
    if known in by_name:
        values = judged.delta[:, judged.places(by_name[known])].mean(axis=1)
    elif known in judged.words:
        values = judged.delta[:, judged.words.index(known)]
    else:
        return None
    if kind == "image":
        return pl.DataFrame({"who": judged.images["image_id"], "score": values})
    found = {
        name: float(values[groups.mask(name)].mean())
        for groups in groupings(judged.images)
        for name in groups.names
    }
    return pl.DataFrame({"who": list(found), "score": list(found.values())})


def _trait_rows(joined: pl.DataFrame, judged: Judged, kind: str, trait: str, asked: int) -> Iterator[Row]:
    human, model = joined["mean"].to_numpy(), joined["score"].to_numpy()
    row = Row("perception.rating_r", None, len(human), CORRELATION, subset=kind, concept=trait)
    unmet = f"{asked - len(human)} rated {kind}s are not in this run" if asked > len(human) else None
    if len(human) < FEWEST_RATED or np.ptp(human) == 0 or np.ptp(model) == 0:
        yield row._replace(note=f"fewer than {FEWEST_RATED} {kind}s to compare, or all alike")
        return
    found = stats.pearsonr(human, model)
    low, high = found.confidence_interval(0.95)
    ranks = stats.spearmanr(human, model).statistic
    note = f"Spearman {ranks:.2f}" + (f"; {unmet}" if unmet else "")
    yield row._replace(value=float(found.statistic), low=float(low), high=float(high), note=note)._replace(
        p_value=float(found.pvalue)
    )
    yield from _departures(joined, _standardised(model) - _standardised(human), judged, kind, trait)


def _departures(joined: pl.DataFrame, off: Array, judged: Judged, kind: str, trait: str) -> Iterator[Row]:
    """How far the model lies above people's ratings, group by group, the farthest first."""
    table = joined.select("who").with_columns(off=pl.Series(off))
    if kind == "image":
        groups = finest(judged.images)
        named = [groups.names[code] if code >= 0 else None for code in groups.codes]
        who = pl.DataFrame(
            {"who": judged.images["image_id"], "group": named}, schema_overrides={"group": pl.String}
        )
        table = table.join(who, on="who").drop_nulls("group").select(pl.col("group").alias("who"), "off")
    means = (
        table.group_by("who")
        .agg(pl.col("off").mean(), pl.len())
        .sort(pl.col("off").abs(), "who", descending=True)
    )
    for group, value, n in means.iter_rows():
        note = "model less people, each in standard deviations of the trait"
        row = Row("perception.rating_departure", value, n, DEVIATIONS, subset=kind, group=group, note=note)
        yield row._replace(concept=trait)


def _standardised(values: Array) -> Array:
    return np.asarray((values - values.mean()) / values.std())
