"""Disparity's main numbers: average precision by concept and group, the gaps, which are found, and possible causes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import family
from beholder.comparison.family import DIFFERENCE, FEWEST, Comparison, comparison_at, judge, part_from_null
from beholder.comparison.shuffles import arrangements
from beholder.core.results import Row
from beholder.core.types import Codes, Floating, Ints, Mask
from beholder.metrics import average_precision
from beholder.metrics.average_precision import LeaveOneOut, Precision, left_out, measured, resampled, shuffled
from beholder.metrics.calibration import NO_REACH
from beholder.metrics.intervals import NONE, exact_proportion_interval
from beholder.studies.disparity.scores import INDICATOR, ROUNDING, Cells, ConceptScores, Sides, spread
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

AP, COUNT = "average precision", "concepts"
FAULTLESS = "ranked without an error, or all scores equal: no interval"
FOUND_IN_FOUR_OF_FIVE = 2.8015852181129683  # standard errors of a gap that has p ≤ 0.05 in four of five data sets
ALONE = "found at p ≤ 0.05 in four of five such data sets; for one concept alone"
TOGETHER = "bounds hold for all concepts and the mean at once"


class Judgements(NamedTuple):
    """What the engine says of each pair: of all its gaps by concept, of their mean, and of their mean width."""

    gaps: dict[tuple[int, int], Comparison]  # by pair and concept; only those that were tested
    means: list[Comparison]
    widths: list[Comparison]
    inner: dict[str, dict[tuple[int, int], Comparison]]  # the gaps of each stratum


@dataclass(frozen=True)
class Gaps:
    """What the rows are computed from: sets × concepts (× draws)."""

    data: ConceptScores
    precision: Precision
    alone: tuple[LeaveOneOut, LeaveOneOut]  # with each image left out in turn: as it is, and at matched prevalence
    draws: Precision
    null: Floating  # matched gaps when people change groups: pairs × concepts × shuffles
    within: Floating  # the same within the strata; equal to `null` where there are none
    inner: Mapping[str, "Gaps"] = field(default_factory=dict)  # in each stratum with five people of every group

    def gap(self, pair: Sides, *, matched: bool) -> Cells:
        """First less second; matched: at one prevalence, less the gap that the counts alone produce."""
        gap = self.precision[matched][pair.first] - self.precision[matched][pair.second]
        return np.asarray(gap - self.expected(pair) if matched else gap)

    def expected(self, pair: Sides) -> Cells:
        """The mean matched gap with shuffled labels: average precision is too high where few images show a concept."""
        return _mean(self.null[self.data.pairs.index(pair)], axis=1)

    def shuffles(self, pair: Sides) -> Cells:
        """The matched gap in every shuffle, around its mean."""
        return np.asarray(self.null[self.data.pairs.index(pair)] - self.expected(pair)[:, None])

    def enough(self, pair: Sides) -> Mask:
        """Concepts that at least five people of both sets show, and at least five do not."""
        return np.asarray(self.data.fewest[self.data.pairs.index(pair)] >= FEWEST)

    @cached_property
    def judged(self) -> Judgements:
        """All gaps, also those of each stratum, and their means are one family; their widths are another."""
        pairs, layers = self.data.pairs, [self, *self.inner.values()]
        tests = [layer._numbers(index) for layer in layers for index in range(len(pairs))]
        gaps = [part_from_null(gap, null, people=people, rounding=ROUNDING) for gap, null, people in tests]
        every = judge([*gaps, *(self._mean_part(index) for index in range(len(pairs)))])
        wide = judge([self._mean_part(index, width=True) for index in range(len(pairs))])
        found = [
            {
                (index, int(column)): comparison_at(every[number * len(pairs) + index], place)
                for index in range(len(pairs))
                for place, column in enumerate(layer._tested(index))
            }
            for number, layer in enumerate(layers)
        ]
        means, widths = ([comparison_at(one, 0) for one in judged] for judged in (every[len(gaps) :], wide))
        return Judgements(found[0], means, widths, dict(zip(self.inner, found[1:], strict=True)))

    def _tested(self, index: int) -> Codes:
        return np.flatnonzero(self.enough(self.data.pairs[index]))

    def _numbers(self, index: int) -> tuple[Floating, Floating, Ints]:
        """Of a pair's tested concepts: gaps, shuffled gaps and the fewest people."""
        pair, columns = self.data.pairs[index], self._tested(index)
        gap = (self.precision.matched[pair.first] - self.precision.matched[pair.second])[columns]
        draws = (self.draws.matched[pair.first] - self.draws.matched[pair.second])[columns]
        people = np.where(self._movable(columns), self.data.fewest[index, columns], 0)
        return gap, widened(self.within[index, columns], draws).T, people

    def _mean_part(self, index: int, *, width: bool = False) -> family.Part:
        """The mean over concepts, of the gaps or of their widths, and the same in every shuffle."""
        gap, null, people = self._numbers(index)
        if width:
            centre = _mean(null, axis=0)
            gap, null = np.abs(gap - centre), np.abs(null - centre)
        value = np.array([gap.mean() if len(gap) else np.nan])
        fewest = int(people.min()) if len(people) else 0
        null = _mean(null, axis=1)[:, None]
        return part_from_null(value, null, people=fewest, one_sided=width, rounding=ROUNDING)

    def _movable(self, columns: Codes) -> Mask:
        """Whether people can change groups in enough ways."""
        data = self.data
        moves = average_precision.LabelShuffles(data.codes, data.people.codes, data.cells)
        known = ~np.isnan(data.scores)
        blocks = [moves.blocks(data.present[:, column], known[:, column])[1] for column in columns]
        ways = np.array([arrangements(moves.groups, each) for each in blocks], dtype=np.float64)
        return ways >= family.FEWEST_ARRANGEMENTS


def widened(null: Floating, draws: Floating) -> Floating:
    """Shuffled gaps `[n_gaps, n_shuffles]`, as far apart as those of draws of people where these are farther apart."""
    # Shuffles mix the groups. Where a model gives all images of a group higher scores, or a small group is recognised
    # worse, they show too little of how far the ranking within each group varies.
    centre = _mean(null, axis=1)[:, None]
    drawn, moved = (np.sqrt(_mean((each - _mean(each, axis=1)[:, None]) ** 2, axis=1)) for each in (draws, null))
    factor = np.where((moved > ROUNDING) & (drawn > moved), drawn / np.maximum(moved, ROUNDING), 1.0)
    return np.asarray(centre + factor[:, None] * (null - centre))


def _mean(values: Floating | Cells, *, axis: int) -> Cells:
    """The mean of the finite values; NaN where there are none."""
    there = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, values, 0.0).sum(axis=axis) / there.sum(axis=axis))


def find_gaps(data: ConceptScores, options: MeasureOptions) -> Gaps:
    """Measure, resample and shuffle; also in each stratum."""
    cells, people = (data.scores, data.present), data.people.codes
    precision, alone = measured(*cells, data.sets), left_out(*cells, data.sets, people)
    draws = resampled(*cells, data.sets, data.resampler(options))
    # At least as many as there are draws: what few images alone produce is taken off matched gaps
    number = max(options.draws, options.shuffles)
    null = within = shuffled(*cells, data.codes, options.rng(), number, people=people)
    if data.cells is not None:
        within = shuffled(*cells, data.codes, options.rng(), options.shuffles, people=people, cells=data.cells)
    inner = {name: find_gaps(part, options) for name, part in data.each_stratum().items()}
    return Gaps(data, precision, alone, draws, null, within, inner)


def gap_rows(gaps: Gaps) -> Iterator[Row]:
    """All rows of one model: means first, then each concept."""
    yield from _mean_rows(gaps)
    for index, pair in enumerate(gaps.data.pairs):
        yield from _summary_rows(gaps, pair, index)
        yield from _pair_rows(gaps, pair, index)
    yield from _precision_rows(gaps)


def _mean_rows(gaps: Gaps) -> Iterator[Row]:
    """The mean over the concepts that every group shows, as published."""
    data = gaps.data
    shared = (data.showing > 0).all(axis=0)
    n = int(shared.sum())
    for index, group in enumerate(data.groups.names):
        row = Row("disparity.mean_average_precision", None, n, AP, group=group)
        if not n:
            yield row._replace(note="no concept is shown in every group")
            continue
        value = float(gaps.precision.raw[index, shared].mean())
        low, high = spread(_mean(gaps.draws.raw[index, shared], axis=0), value)
        note = f"over the {n} concepts that every group shows; {int((data.codes == index).sum())} images"
        note += f"; ranked by {INDICATOR}s" if data.unit == INDICATOR else ""
        yield row._replace(value=value, low=low, high=high, note=note)
    for pair in data.pairs if n else []:
        value = float(gaps.gap(pair, matched=False)[shared].mean())
        note = f"mean over {n} concepts; depends on prevalence and on few images: read mean_ap_gap_matched"
        yield pair.row("mean_ap_gap", value, n, AP, note=note)


def _summary_rows(gaps: Gaps, pair: Sides, index: int) -> Iterator[Row]:
    """How many gaps are found; the mean gap; how wide gaps are on average, and how wide with shuffled labels."""
    enough, strata = gaps.enough(pair), gaps.data.strata
    n = int(enough.sum())
    row = pair.row("gap_spread", None, n, AP)
    if not n:
        yield row._replace(note=f"no concept is shown by {FEWEST} people of both groups")
        return
    layers = (gaps.judged.gaps, *gaps.judged.inner.values())
    found = {place for ones in layers for place, each in ones.items() if each.verdict == DIFFERENCE}
    count = sum(place == index for place, _ in found)
    note = f"of {n} concepts, all tested together"
    yield row._replace(metric="disparity.gaps_shown", unit=COUNT, value=float(count), note=note)
    values, null = gaps.gap(pair, matched=True)[enough], np.abs(gaps.shuffles(pair)[enough])
    note = f"mean over {n} concepts at matched prevalence; {TOGETHER}"
    mean = pair.row("mean_ap_gap_matched", float(values.mean()), n, AP, note=note)
    yield from gaps.judged.means[index].rows(mean, strata, least=-1.0, most=1.0)
    shuffles = _mean(null, axis=0)
    low, high = np.quantile(shuffles, [0.025, 0.975]).tolist()
    note = f"mean distance from 0 over {n} concepts, at matched prevalence"
    width = row._replace(value=float(np.abs(values).mean()), expected=float(shuffles.mean()), note=note)
    yield from gaps.judged.widths[index]._replace(low=np.nan, high=np.nan).rows(width, strata)
    chance = row._replace(metric="disparity.gap_spread_expected", value=width.expected, low=low, high=high)
    yield chance._replace(note="the same with shuffled labels")


def _precision_rows(gaps: Gaps) -> Iterator[Row]:
    """Average precision and prevalence of every concept in every group."""
    data = gaps.data
    for index, group in enumerate(data.groups.names):
        for column, concept in enumerate(data.concepts):
            showing, n = int(data.showing[index, column]), int(data.scored[index, column])
            low, high = exact_proportion_interval(showing, n) if n else NONE
            row = Row("disparity.prevalence", showing / n if n else None, n, PROBABILITY, group=group, concept=concept)
            yield row._replace(low=low, high=high, note=None if n else "no image of the group has a score")
            for metric, alone in zip(("average_precision", "average_precision_matched"), gaps.alone, strict=True):
                value = float(alone.value[index, column])
                reach = NO_REACH if showing < FEWEST else alone.reach(index, column)
                why = None
                if np.isnan(reach.below) and showing:
                    why = f"fewer than {FEWEST}: no interval" if showing < FEWEST else FAULTLESS
                    why = "every image shows it" if showing == n else why
                note = join((f"{showing} of {n} images show it", why))
                made = row._replace(metric=f"disparity.{metric}", value=value, unit=AP, note=note)
                yield made._replace(low=value - reach.below, high=value + reach.above)


def _pair_rows(gaps: Gaps, pair: Sides, index: int) -> Iterator[Row]:
    """The gap as published, the gap at matched prevalence, and the smallest gap that one test could show."""
    data = gaps.data
    raw, matched = (gaps.gap(pair, matched=kind) for kind in (False, True))
    expected, shuffles = gaps.expected(pair), gaps.shuffles(pair)
    for column, concept in enumerate(data.concepts):
        first, second = data.showing[pair.both, column].tolist()
        n, why = int(data.scored[pair.both, column].sum()), _absent(data, pair, column)
        notes = [f"shown by {first} and {second} images", why]
        row = pair.row("ap_gap", float(raw[column]), n, AP, concept=concept, note=join(notes))
        yield row
        comparison = gaps.judged.gaps.get((index, column))
        row = row._replace(metric="disparity.ap_gap_matched", value=float(matched[column]))
        if comparison is None:
            yield row._replace(verdict=None if np.isnan(matched[column]) else family.TOO_LITTLE)
            continue
        notes += [f"{100 * expected[column]:+.1f} points due to the counts alone removed", TOGETHER]
        judged = comparison.rows(row._replace(note=join(notes)), data.strata, least=-1.0, most=1.0)
        yield from (*judged, judged[0]._replace(metric="disparity.ap_gap_simultaneous"))
        for name, ones in gaps.judged.inner.items():
            if (index, column) in ones:
                own = row._replace(variant=f"{data.strata.variant}: {name}", note=TOGETHER)
                yield ones[index, column].on(own, least=-1.0, most=1.0)
        value, note = FOUND_IN_FOUR_OF_FIVE * float(np.nanstd(shuffles[column])), ALONE
        if value < ROUNDING:
            value, note = np.nan, "no shuffle changes the gap: all images are ranked alike"
        yield pair.row("gap_detectable", value, first + second, AP, concept=concept, note=note)


def _absent(data: ConceptScores, pair: Sides, column: int) -> str | None:
    """The reason why a gap has no value or no verdict, if it has none."""
    showing, scored = (table[pair.both, column] for table in (data.showing, data.scored))
    if not scored.all():
        return "one of the groups has no score"
    if not showing.all():
        return "no image of one group shows it: no gap"
    if (showing == scored).any():
        return "every image of one group shows it: no gap at matched prevalence"
    few = data.fewest[data.pairs.index(pair), column] < FEWEST
    return f"fewer than {FEWEST} people of one group with it or without it: not tested" if few else None


# Possible causes: size, number and names of the objects, as annotators give them. The study looked for causes by eye.
# A difference explains a gap only as far as the gap shrinks once it is removed; this is done for the area.

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
    yield from same_mix_rows(gaps, "ap_gap_same_area", *equal_areas(data, _table(data, objects, "area")))
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
    means = np.stack([_mean(table[data.sets[side]], axis=0) for side in pair.both])
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
    named = objects.select("row", "concept", pl.col("names").list.eval(pl.element().str.to_lowercase()))
    named = named.with_columns(weight=1 / pl.col("names").list.len()).explode("names").drop_nulls("names")
    rows = named["row"].to_numpy()
    side = np.where(first[rows], 0, np.where(second[rows], 1, 2))
    counts = named.with_columns(side=side).filter(pl.col("side") < 2)
    counts = counts.group_by("concept", "names", "side").agg(pl.col("weight").sum())
    several = counts.group_by("concept").agg(pl.col("names").n_unique(), pl.col("side").n_unique())
    kept = set(several.filter((pl.col("names") > 1) & (pl.col("side") == 2))["concept"])
    wide = counts.filter(pl.col("concept").is_in(list(kept))).pivot("side", index=["concept", "names"], values="weight")
    for (concept,), part in wide.fill_null(0.0).sort("concept", "names").group_by("concept", maintain_order=True):
        weights = part.select("0", "1").to_numpy()
        shares = weights / weights.sum(axis=0)
        value = float(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
        used = []
        for order, own in zip(np.argsort(-shares, axis=0, kind="stable")[:NAMES_LISTED].T, shares.T, strict=True):
            used.append(", ".join(f"{part['names'][int(k)]} {100 * own[k]:.0f} %" for k in order if own[k] > 0))
        note = f"{pair.group}: {used[0]}; {pair.against}: {used[1]}"
        yield pair.row("names", value, round(float(weights.sum())), "share", concept=str(concept), note=note)


def same_mix_rows(gaps: Gaps, metric: str, importance: npt.NDArray[np.float32], kept: Ints) -> Iterator[Row]:
    """The matched gap when images of each kind, such as objects of each size, have the same weight in every group."""
    data = gaps.data
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
            left_out = f"{showing - n} images of kinds that a group lacks left out" if showing > n else None
            note = join((f"{100 * whole[index]:+.1f} points before", left_out))
            yield pair.row(metric, value, n, AP, concept=data.concepts[column], note=note)


def equal_areas(data: ConceptScores, areas: Cells) -> tuple[npt.NDArray[np.float32], Ints]:
    """Weights that give all sets the same distribution of a number, in five bins of equally many images."""
    bins = np.full(areas.shape, -1)
    for column in range(areas.shape[1]):
        known = data.present[:, column] & ~np.isnan(areas[:, column]) & ~np.isnan(data.scores[:, column])
        if known.sum() >= AREA_BINS:
            edges = np.quantile(areas[known, column], np.arange(1, AREA_BINS) / AREA_BINS)
            bins[known, column] = np.searchsorted(edges, areas[known, column], side="left")
    return equal_mix(data, bins, AREA_BINS)


def equal_mix(data: ConceptScores, bins: Ints, number: int) -> tuple[npt.NDArray[np.float32], Ints]:
    """Weights that give all sets the same mix of bins (−1: unknown), and how many images of each set count."""
    # The weight of a bin in a set is its share among all images over its share in that set. A bin that some set lacks
    # has weight 0; images without the concept have weight 1.
    importance = np.ones((len(data.sets), *bins.shape), dtype=np.float32)
    kept = np.zeros((len(data.sets), bins.shape[1]), dtype=int)
    for column, mine in enumerate(bins.T):
        known = data.present[:, column] & (mine >= 0) & ~np.isnan(data.scores[:, column])
        counts = np.stack([np.bincount(mine[known & s], minlength=number) for s in data.sets])
        common = (counts > 0).all(axis=0)
        if not common.any():
            continue
        target = np.where(common, np.bincount(mine[known], minlength=number), 0)
        target = target / target.sum()
        for index, members in enumerate(data.sets):
            own = np.where(common, counts[index], 0)
            factor = np.where(common, target * own.sum() / np.maximum(own, 1), 0.0)
            shows_it = members & data.present[:, column]
            importance[index, shows_it, column] = np.where(known[shows_it], factor[mine[shows_it]], 0.0)
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
            for subset, rows, sign in (("overlooked", there, 1), ("mistaken", empty, -1)):
                note = ", ".join(ids[rows[np.argsort(sign * scores[rows], kind="stable")[:IDS_LISTED]]])
                row = Row("disparity.outranked", value, len(there), "share", subset=subset, group=group, note=note)
                yield row._replace(concept=data.concepts[column])


def outranked(there: Cells, empty: Cells) -> float:
    """How often an image without the concept scores above one with it; ties count half. 0: never, 0.5: at random."""
    if not len(empty) or not len(there):
        return float("nan")
    left, right = (np.searchsorted(np.sort(empty), there, side=side) for side in ("left", "right"))
    return float(1 - np.mean(left + right) / (2 * len(empty)))
