"""Where a gap may come from: how large and how many the things are in pictures of each group, what they are called.

The study looked for this by eye. Boxes and names are annotators'; a difference here explains a gap only as far as the
gap shrinks when it is taken away, which is done for the area.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import stdtrit

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.group_tests import group_moments, welch_t
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.metrics.precision_gaps import measured, resampled
from beholder.studies.disparity.gaps import AP, Gaps, spread
from beholder.studies.disparity.scores import Cells, Pair, Seen
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

AREA_BINS = 5
MEASURED = {
    "area": ("share of the picture", "largest box of the concept, among images that show it"),
    "instances": ("boxes", "boxes of the concept, among images that show it"),
}
NAMES_SAID = 3
"""Names of a group that a note lists."""
IDS_SAID, IDS_CONCEPTS = 10, 10
"""Image ids that a row lists, and concepts that have such rows: those with the widest gaps."""


def cause_rows(gaps: Gaps, options: MeasureOptions) -> Iterator[Row]:
    """Size, number and names of things by group; the gap left at equal sizes; the images behind the widest gaps."""
    seen = gaps.seen
    objects = seen.objects()
    for column in MEASURED:
        table = _table(seen, objects, column)
        for pair in seen.pairs:
            yield from _difference_rows(seen, pair, table, column)
    for pair in seen.pairs:
        yield from _name_rows(seen, pair, objects)
    yield from _same_area_rows(gaps, _table(seen, objects, "area"), options)
    yield from _image_rows(gaps)


def _table(seen: Seen, objects: pl.DataFrame, column: str) -> Cells:
    """A number of every image and concept; NaN where it is not shown, or not known."""
    table = np.full(seen.scores.shape, np.nan)
    values = objects[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    table[objects["row"].to_numpy(), objects["column"].to_numpy()] = values
    return table


# Size and number


def _difference_rows(seen: Seen, pair: Pair, table: Cells, metric: str) -> Iterator[Row]:
    """Mean of each set, and the difference by Welch's test, interval included.

    Where things are skewed and few, as areas are, Student's quantile covers in 93 to 98 of 100 (a normal one in 92 to
    95, a studentised bootstrap in 89 to 97): docs/disparity.md.
    """
    unit, meaning = MEASURED[metric]
    names = ["first", "second"]
    members = [seen.sets[place] for place in (pair.first, pair.second)]
    labels = np.where(members[0], *names)
    moments = group_moments(table, labels, names)
    test = welch_t(moments)
    with np.errstate(invalid="ignore"):
        margin = stdtrit(test.df_within, 0.975) * np.sqrt((moments.variance / moments.size).sum(axis=0))
    enough = np.asarray((moments.size >= FEWEST).all(axis=0))
    adjusted = benjamini_hochberg(np.where(enough, test.p_value, np.nan))
    for column, concept in enumerate(seen.concepts):
        sizes, means = moments.size[:, column], moments.mean[:, column]
        if not sizes.all():
            continue
        for place, group in enumerate(pair.names):
            row = Row(f"disparity.{metric}", float(means[place]), int(sizes[place]), unit, group=group)
            if place == 0 or len(seen.groups) == 2:
                yield row._replace(concept=concept, note=meaning)
        value, width = float(means[0] - means[1]), float(margin[column])
        row = Row(f"disparity.{metric}_gap", value, int(sizes.sum()), unit, group=pair.name, concept=concept)
        if enough[column]:
            row = row._replace(low=value - width, high=value + width, p_value=float(adjusted[column]))
        yield row._replace(note="Welch's interval and p; p: Benjamini–Hochberg over concepts")


# Names


def _name_rows(seen: Seen, pair: Pair, objects: pl.DataFrame) -> Iterator[Row]:
    """How differently annotators name the concept in pictures of the two sets: 0 alike, 1 no name in common."""
    first, second = (seen.sets[place] for place in (pair.first, pair.second))
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
        said = [
            f"{group}: {_listed(part['names'].to_list(), shares[:, place])}" for place, group in enumerate(pair.names)
        ]
        n = round(float(weights.sum()))
        yield Row("disparity.names", value, n, "share", group=pair.name, concept=str(concept), note="; ".join(said))


def _listed(names: list[str], shares: Cells) -> str:
    order = np.argsort(-shares, kind="stable")[:NAMES_SAID]
    return ", ".join(f"{names[k]} {100 * shares[k]:.0f} %" for k in order if shares[k] > 0)


# The gap at equal sizes


def _same_area_rows(gaps: Gaps, areas: Cells, options: MeasureOptions) -> Iterator[Row]:
    """The matched gap when things of one size count as much in every group."""
    seen = gaps.seen
    importance, kept = equal_areas(seen, areas)
    tested = np.all([gaps.enough(pair) for pair in seen.pairs], axis=0)
    columns = np.flatnonzero((kept >= FEWEST).all(axis=0) & tested)
    if not len(columns):
        return
    cells, there = seen.scores[:, columns], seen.present[:, columns]
    plain = measured(cells, there, seen.sets).matched
    found = measured(cells, there, seen.sets, importance=importance[:, :, columns]).matched
    draws = resampled(cells, there, seen.sets, seen.resampler(options), importance=importance[:, :, columns]).matched
    for pair in seen.pairs:
        change = (found[pair.first] - found[pair.second]) - (plain[pair.first] - plain[pair.second])
        whole = gaps.gap(pair, matched=True)[columns]
        for place, column in enumerate(columns.tolist()):
            value = float(whole[place] + change[place])
            low, high = spread(draws[pair.first, place] - draws[pair.second, place], value)
            n = int(kept[[pair.first, pair.second], column].sum())
            out = int(seen.showing[[pair.first, pair.second], column].sum()) - n
            said = [
                f"{100 * whole[place]:+.1f} points before",
                f"{out} images of other sizes left out" if out else None,
            ]
            row = Row("disparity.ap_gap_same_area", value, n, AP, group=pair.name, concept=seen.concepts[column])
            yield row._replace(low=low, high=high, note=join(said))


def equal_areas(seen: Seen, areas: Cells) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int_]]:
    """What each image counts so that sizes are spread alike in all sets, and how many images of each set still count.

    Sizes are cut into five bins of equally many images; in a set, images of a bin count by the bin's share among all
    over its share there. A bin that some set lacks counts nowhere; images without the concept count 1.
    """
    importance = np.ones((len(seen.sets), *areas.shape), dtype=np.float32)
    kept = np.zeros((len(seen.sets), areas.shape[1]), dtype=int)
    for column in range(areas.shape[1]):
        known = seen.present[:, column] & ~np.isnan(areas[:, column]) & ~np.isnan(seen.scores[:, column])
        if known.sum() < AREA_BINS:
            continue
        edges = np.quantile(areas[known, column], np.arange(1, AREA_BINS) / AREA_BINS)
        bins = np.searchsorted(edges, areas[:, column], side="left")
        counts = np.stack([np.bincount(bins[known & s], minlength=AREA_BINS) for s in seen.sets])
        common = (counts > 0).all(axis=0)
        if not common.any():
            continue
        target = np.where(common, np.bincount(bins[known], minlength=AREA_BINS), 0)
        target = target / target.sum()
        for place, members in enumerate(seen.sets):
            own = np.where(common, counts[place], 0)
            factor = np.where(common, target * own.sum() / np.maximum(own, 1), 0.0)
            mine = members & seen.present[:, column]
            importance[place, mine, column] = np.where(known[mine], factor[bins[mine]], 0.0)
            kept[place, column] = int(own.sum())
    return importance, kept


# Images


def _image_rows(gaps: Gaps) -> Iterator[Row]:
    """For the widest gaps, which images of each group cost most: things overlooked, and things seen where none are."""
    seen, pair = gaps.seen, gaps.seen.pairs[0]
    widths = np.where(gaps.enough(pair), np.abs(gaps.gap(pair, matched=True)), -1.0)
    ids = seen.images["image_id"].to_numpy()
    for column in np.argsort(-widths, kind="stable")[:IDS_CONCEPTS].tolist():
        if widths[column] < 0:
            return
        scores, shows = seen.scores[:, column], seen.present[:, column]
        for place, group in enumerate(seen.groups):
            mine = seen.sets[place] & ~np.isnan(scores)
            there, empty = np.flatnonzero(mine & shows), np.flatnonzero(mine & ~shows)
            value = outranked(scores[there], scores[empty])
            for subset, rows in (
                ("overlooked", there[np.argsort(scores[there], kind="stable")]),
                ("mistaken", empty[np.argsort(-scores[empty], kind="stable")]),
            ):
                note = f"image ids: {', '.join(ids[rows[:IDS_SAID]])}"
                row = Row("disparity.outranked", value, len(there), "share", subset=subset, group=group, note=note)
                yield row._replace(concept=seen.concepts[column])


def outranked(there: Cells, empty: Cells) -> float:
    """How often an image without the concept scores above one with it, ties half: 0 never, 0.5 at random.

    >>> outranked(np.array([0.9, 0.4]), np.array([0.5, 0.1]))
    0.25
    """
    ordered = np.sort(empty)
    above = len(ordered) - np.searchsorted(ordered, there, side="right")
    level = np.searchsorted(ordered, there, side="right") - np.searchsorted(ordered, there, side="left")
    return float(np.mean(above + level / 2) / len(ordered)) if len(ordered) and len(there) else float("nan")
