"""People's ratings and the model's scores: do both put the same images, or the same groups, in the same order?

A table with the columns `image` or `group`, `trait` (a dimension or a word), `mean` and `n`. Both sides are put on one
scale (standard deviations within a trait) before departures are taken. Departures are given for groups, never for a
single picture of anyone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.tables import read_table, require_columns
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.clustered import CellMeans
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.studies.perception.families import family
from beholder.studies.perception.scores import Array, Judged, finest, groupings
from beholder.studies.rows import join

FEWEST_RATED = 4
"""The fewest images or groups for which a correlation is given."""
SEED_OF_DRAWS = 20260801
CORRELATION, DEVIATIONS = "correlation", "standard deviations"


def read_ratings(path: Path) -> pl.DataFrame:
    """`kind` (image or group), `who`, `trait`, `mean`, `n`, checked."""
    raw = read_table(path).with_columns(pl.all().cast(pl.String))
    require_columns(raw, ["trait", "mean", "n"], path)
    kinds = [kind for kind in ("image", "group") if kind in raw.columns]
    if len(kinds) != 1:
        needed = "a table of ratings has one column 'image' or 'group'"
        raise DataError(f"{path}: {needed}; it has: {', '.join(raw.columns)}.")
    numbers = raw.with_columns(pl.col("mean", "n").cast(pl.Float64, strict=False))
    for number, row in enumerate(numbers.iter_rows(named=True), start=2):
        lacking = [name for name in (*kinds, "trait", "mean", "n") if row[name] is None]
        lacking += [name for name in ("mean", "n") if not lacking and not math.isfinite(row[name])]
        if lacking:
            raise DataError(f"{path}: row {number} has no {lacking[0]} that can be read.")
    twice = numbers.select(*kinds, "trait").is_duplicated()
    if twice.any():
        row = numbers.filter(twice).row(0, named=True)
        raise DataError(f"{path}: {row[kinds[0]]!r} is rated on {row['trait']!r} more than once.")
    return numbers.select(pl.lit(kinds[0]).alias("kind"), pl.col(kinds[0]).alias("who"), "trait", "mean", "n")


def rating_rows(judged: Judged, ratings: pl.DataFrame) -> Iterator[Row]:
    """For every trait that both rate: correlation with its interval, and where the model departs most."""
    kind, correlated = ratings["kind"][0], []
    for (trait,), part in ratings.group_by(["trait"], maintain_order=True):
        model = _model_scores(judged, str(trait), kind)
        if model is None:
            note = f"{trait!r} is neither a dimension nor a word of this run"
            row = Row("perception.rating_r", None, 0, CORRELATION, subset=kind, concept=str(trait), note=note)
            correlated.append((row, part))
        else:
            joined = part.join(model, on="who", how="inner")
            correlated.append((_correlation(joined, judged, kind, str(trait), part.height), joined))
    known = [row for row, _ in correlated if row.value is not None]
    p_values = [np.nan if row.p_value is None else row.p_value for row, _ in correlated]
    for (row, joined), p_value in zip(correlated, benjamini_hochberg(np.array(p_values)), strict=True):
        yield row._replace(p_value=float(p_value))
        if row.value is not None:
            yield from _departures(joined, judged, kind, str(row.concept), len(known))


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
    every = [(groups, name) for groups in groupings(judged.images) for name in groups.names]
    means = {name: float(values[groups.mask(name)].mean()) for groups, name in every}
    return pl.DataFrame({"who": list(means), "score": list(means.values())})


def _correlation(joined: pl.DataFrame, judged: Judged, kind: str, trait: str, asked: int) -> Row:
    human, model = joined["mean"].to_numpy(), joined["score"].to_numpy()
    row = Row("perception.rating_r", None, len(human), CORRELATION, subset=kind, concept=trait)
    unmet = f"{asked - len(human)} rated {kind}s are not in this run" if asked > len(human) else None
    if len(human) < FEWEST_RATED or np.ptp(human) == 0 or np.ptp(model) == 0:
        return row._replace(note=join((f"fewer than {FEWEST_RATED} {kind}s to compare, or all alike", unmet)))
    correlation = stats.pearsonr(human, model)
    together = _together(joined, judged, kind)
    ranks = f"Spearman {stats.spearmanr(human, model).statistic:.2f}"
    row = row._replace(value=float(correlation.statistic), note=join((ranks, unmet, together)))
    if together:
        return row
    low, high = correlation.confidence_interval(0.95)
    return row._replace(low=float(low), high=float(high), p_value=float(correlation.pvalue))


def _together(joined: pl.DataFrame, judged: Judged, kind: str) -> str | None:
    """Why the rated images or groups are not independent, so that r has no interval; None if they are."""
    if kind == "image":
        return "no interval: a person's pictures are not independent" if judged.repeated else None
    rated = set(joined["who"])
    shared = sum(bool(rated & set(groups.names)) for groups in groupings(judged.images))
    return "no interval: groups that share images are not independent" if shared > 1 else None


def _departures(joined: pl.DataFrame, judged: Judged, kind: str, trait: str, traits: int) -> Iterator[Row]:
    """How far the model is above people's ratings, for groups of five or more, the farthest first."""
    off = _standardised(joined["score"].to_numpy()) - _standardised(joined["mean"].to_numpy())
    of_images = kind == "image"
    rows = list(_image_departures(joined, off, judged, traits) if of_images else _group_departures(joined, off, judged))
    note = "model less people, each in standard deviations of the trait"
    note += f"; interval holds for all groups at once, p × {traits} traits" if of_images else ""
    for row in sorted(rows, key=lambda row: -abs(row.value or 0.0)):
        yield row._replace(subset=kind, concept=trait, note=note)


def _image_departures(joined: pl.DataFrame, off: Array, judged: Judged, traits: int) -> Iterator[Row]:
    """The mean over a group's rated images; bounds hold for all groups at once, p is multiplied by the traits."""
    groups = finest(judged.images)
    row_of = {image: row for row, image in enumerate(judged.images["image_id"])}
    rows = np.array([row_of[image] for image in joined["who"]])
    cells = CellMeans(off, groups.codes[rows], judged.clusters[rows], len(groups.names))
    large = np.flatnonzero(cells.n >= FEWEST)
    if not len(large):
        return
    weights = np.eye(len(groups.names))[large]
    together = family(cells.combined(weights).value, cells.spread(weights), np.random.default_rng(SEED_OF_DRAWS))
    for place, code in enumerate(large.tolist()):
        row = together.row(place, Row("perception.rating_departure", None, int(cells.n[code]), DEVIATIONS))
        p_value = None if row.p_value is None else min(1.0, traits * row.p_value)
        yield row._replace(group=groups.names[code], p_value=p_value)


def _group_departures(joined: pl.DataFrame, off: Array, judged: Judged) -> Iterator[Row]:
    """One number for each group; n counts its images."""
    sizes = {name: int(groups.mask(name).sum()) for groups in groupings(judged.images) for name in groups.names}
    for name, value in zip(joined["who"], off.tolist(), strict=True):
        if sizes[name] >= FEWEST:
            yield Row("perception.rating_departure", value, sizes[name], DEVIATIONS, group=name)


def _standardised(values: Array) -> Array:
    return np.asarray((values - values.mean()) / values.std())
