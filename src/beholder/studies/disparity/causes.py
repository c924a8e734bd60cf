"""Possible causes of a gap: how large and how many the objects are in images of each group, and their names.

The study looked for causes by eye. Boxes and names come from annotators. A difference explains a gap only as far as
the gap shrinks once the difference is removed; this is done for the area.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.family import FEWEST
from beholder.core.results import Row
from beholder.metrics.average_precision import measured
from beholder.studies.disparity.gaps import AP, Gaps
from beholder.studies.disparity.scores import Cells, ConceptScores, Sides
from beholder.studies.rows import join

AREA_BINS = 5
MEASURED = {
    "area": ("share of the picture", "largest box of the concept, mean over images that show it"),
    "instances": ("boxes", "boxes of the concept, mean over images that show it"),
}
NAMES_LISTED = 3  # how many names a note lists per group
IDS_LISTED, IDS_CONCEPTS = 10, 10  # image ids that a row lists; concepts with such rows: those with the widest gaps


def cause_rows(gaps: Gaps) -> Iterator[Row]:
    """Size, number and names of objects by group; the gap at equal sizes; the images behind the widest gaps."""
    data = gaps.data
    objects = data.objects()
    for column in MEASURED:
        table = _table(data, objects, column)
        for pair in data.pairs:
            yield from _difference_rows(data, pair, table, column)
    for pair in data.pairs:
        yield from _name_rows(data, pair, objects)
    yield from _same_area_rows(gaps, _table(data, objects, "area"))
    yield from _image_rows(gaps)


def _table(data: ConceptScores, objects: pl.DataFrame, column: str) -> Cells:
    """A number for every image and concept; NaN where the concept is not shown or the number is unknown."""
    table = np.full(data.scores.shape, np.nan)
    values = objects[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    table[objects["row"].to_numpy(), objects["column"].to_numpy()] = values
    return table


def _difference_rows(data: ConceptScores, pair: Sides, table: Cells, metric: str) -> Iterator[Row]:
    """The mean of each set, and their difference: described, not tested."""
    unit, meaning = MEASURED[metric]
    known = ~np.isnan(table)
    sizes = np.stack([known[data.sets[side]].sum(axis=0) for side in pair.both])
    with np.errstate(invalid="ignore"):
        means = np.stack([np.where(known, table, 0.0)[data.sets[side]].sum(axis=0) for side in pair.both]) / sizes
    for column in np.flatnonzero(sizes.all(axis=0)).tolist():
        concept, (first, second) = data.concepts[column], means[:, column].tolist()
        for index, group in enumerate((pair.group, pair.against)):
            row = Row(f"disparity.{metric}", float(means[index, column]), int(sizes[index, column]), unit, group=group)
            if index == 0 or len(data.groups.names) == 2:
                yield row._replace(concept=concept, note=meaning)
        yield pair.row(f"{metric}_gap", first - second, int(sizes[:, column].sum()), unit, concept=concept)


def _name_rows(data: ConceptScores, pair: Sides, objects: pl.DataFrame) -> Iterator[Row]:
    """How differently annotators name the concept in images of the two sets: 0: alike, 1: no common name."""
    first, second = (data.sets[index] for index in pair.both)
    named = (
        objects.select("row", "concept", pl.col("names").list.eval(pl.element().str.to_lowercase()))
        .with_columns(weight=1 / pl.col("names").list.len())
        .explode("names")
        .drop_nulls("names")
    )
    rows = named["row"].to_numpy()
    side = np.where(first[rows], 0, np.where(second[rows], 1, 2))
    counts = named.with_columns(pl.Series("side", side)).filter(pl.col("side") < 2)
    counts = counts.group_by("concept", "names", "side").agg(pl.col("weight").sum())
    several = counts.group_by("concept").agg(pl.col("names").n_unique(), pl.col("side").n_unique())
    kept = set(several.filter((pl.col("names") > 1) & (pl.col("side") == 2))["concept"])
    wide = counts.filter(pl.col("concept").is_in(list(kept))).pivot("side", index=["concept", "names"], values="weight")
    for (concept,), part in wide.fill_null(0.0).sort("concept", "names").group_by("concept", maintain_order=True):
        weights = part.select("0", "1").to_numpy()
        shares = weights / weights.sum(axis=0)
        value = float(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
        used = [_listed(part["names"].to_list(), shares[:, index]) for index in (0, 1)]
        note = f"{pair.group}: {used[0]}; {pair.against}: {used[1]}"
        yield pair.row("names", value, round(float(weights.sum())), "share", concept=str(concept), note=note)


def _listed(names: list[str], shares: Cells) -> str:
    order = np.argsort(-shares, kind="stable")[:NAMES_LISTED]
    return ", ".join(f"{names[k]} {100 * shares[k]:.0f} %" for k in order if shares[k] > 0)


def _same_area_rows(gaps: Gaps, areas: Cells) -> Iterator[Row]:
    """The matched gap when objects of each size have the same weight in every group."""
    data = gaps.data
    importance, kept = equal_areas(data, areas)
    tested = np.all([gaps.enough(pair) for pair in data.pairs], axis=0)
    columns = np.flatnonzero((kept >= FEWEST).all(axis=0) & tested)
    if not len(columns):
        return
    cells, there = data.scores[:, columns], data.present[:, columns]
    plain = measured(cells, there, data.sets).matched
    equal = measured(cells, there, data.sets, importance=importance[:, :, columns]).matched
    for pair in data.pairs:
        change = (equal[pair.first] - equal[pair.second]) - (plain[pair.first] - plain[pair.second])
        whole = gaps.gap(pair, matched=True)[columns]
        for index, column in enumerate(columns.tolist()):
            value = float(whole[index] + change[index])
            n, showing = (int(counts[pair.both, column].sum()) for counts in (kept, data.showing))
            left_out = f"{showing - n} images of other sizes left out" if showing > n else None
            note = join((f"{100 * whole[index]:+.1f} points before", left_out))
            yield pair.row("ap_gap_same_area", value, n, AP, concept=data.concepts[column], note=note)


def equal_areas(data: ConceptScores, areas: Cells) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int_]]:
    """Weights of images that give all sets the same distribution of sizes, and how many images of each set still count.

    Sizes are cut into five bins of equally many images. The weight of a bin in a set is its share among all images
    over its share in that set. A bin that some set lacks has weight 0; images without the concept have weight 1.
    """
    importance = np.ones((len(data.sets), *areas.shape), dtype=np.float32)
    kept = np.zeros((len(data.sets), areas.shape[1]), dtype=int)
    for column in range(areas.shape[1]):
        known = data.present[:, column] & ~np.isnan(areas[:, column]) & ~np.isnan(data.scores[:, column])
        if known.sum() < AREA_BINS:
            continue
        edges = np.quantile(areas[known, column], np.arange(1, AREA_BINS) / AREA_BINS)
        bins = np.searchsorted(edges, areas[:, column], side="left")
        counts = np.stack([np.bincount(bins[known & s], minlength=AREA_BINS) for s in data.sets])
        common = (counts > 0).all(axis=0)
        if not common.any():
            continue
        target = np.where(common, np.bincount(bins[known], minlength=AREA_BINS), 0)
        target = target / target.sum()
        for index, members in enumerate(data.sets):
            own = np.where(common, counts[index], 0)
            factor = np.where(common, target * own.sum() / np.maximum(own, 1), 0.0)
            shows_it = members & data.present[:, column]
            importance[index, shows_it, column] = np.where(known[shows_it], factor[bins[shows_it]], 0.0)
            kept[index, column] = int(own.sum())
    return importance, kept


def _image_rows(gaps: Gaps) -> Iterator[Row]:
    """For the widest gaps, the images of each group that lower precision most: concepts missed, or seen by mistake."""
    data, pair = gaps.data, gaps.data.pairs[0]
    widths = np.where(gaps.enough(pair), np.abs(gaps.gap(pair, matched=True)), -1.0)
    ids = data.images["image_id"].to_numpy()
    for column in np.argsort(-widths, kind="stable")[:IDS_CONCEPTS].tolist():
        if widths[column] < 0:
            return
        scores, shows = data.scores[:, column], data.present[:, column]
        for index, group in enumerate(data.groups.names):
            scored = data.sets[index] & ~np.isnan(scores)
            there, empty = np.flatnonzero(scored & shows), np.flatnonzero(scored & ~shows)
            value = outranked(scores[there], scores[empty])
            for subset, rows in (
                ("overlooked", there[np.argsort(scores[there], kind="stable")]),
                ("mistaken", empty[np.argsort(-scores[empty], kind="stable")]),
            ):
                note = ", ".join(ids[rows[:IDS_LISTED]])
                row = Row("disparity.outranked", value, len(there), "share", subset=subset, group=group, note=note)
                yield row._replace(concept=data.concepts[column])


def outranked(there: Cells, empty: Cells) -> float:
    """How often an image without the concept scores above one with it; ties count half. 0: never, 0.5: at random."""
    if not len(empty) or not len(there):
        return float("nan")
    left, right = (np.searchsorted(np.sort(empty), there, side=side) for side in ("left", "right"))
    return float(1 - np.mean(left + right) / (2 * len(empty)))
