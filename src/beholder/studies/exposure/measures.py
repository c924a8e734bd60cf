"""What the counts show: how often women and men are named, and whether a model knows the people that are named.

Nobody is named in the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import Part, compare_ranks, comparison_at, judge
from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, Resampler, percentile_interval
from beholder.metrics.intervals import mean_estimate, studentised_interval
from beholder.studies.apa.prompts import PLAYER
from beholder.studies.exposure.compared import as_ratio, parts, women_and_men
from beholder.studies.exposure.counting import Counts
from beholder.studies.exposure.people import WORD_TERMS
from beholder.studies.exposure.ratios import CAPTIONS, ratio_rows
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.rows import join, mean_row
from beholder.studies.study import MeasureOptions, read_metrics

UNADJUSTED, ADJUSTED, CHANGE = "as measured", "at equal exposure", "change"
METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))


def count_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Mean, median and share never mentioned for women and men of each branch, and the ratios."""
    for subset, part, left_out in parts(people):
        for group in GROUPS:
            for row in _group_rows(part.filter(gender=group), options):
                yield row._replace(subset=subset, group=group, note=join((row.note, left_out)))
    yield from ratio_rows(people, options)


def _group_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    values = _numbers(people, CAPTIONS)
    row = Row("exposure.captions", None, people.height, CAPTIONS)
    if not row.n:
        yield row._replace(note="there is nobody to count")
        return
    resampler = _resampler(people, options)
    mean = studentised_interval(mean_estimate(values, resampler))
    medians = np.concatenate([_medians(values, weights) for weights in resampler.weights()])
    yield _bounded(row._replace(value=float(values.mean())), Interval(max(0.0, mean.low), mean.high), values)
    median = row._replace(metric="exposure.captions_median", value=float(np.median(values)))
    yield _bounded(median, percentile_interval(medians), values)
    yield mean_row("exposure.never", (values == 0).astype(np.float64), resampler)


def _bounded(row: Row, bounds: Interval, counts: npt.NDArray[np.float64]) -> Row:
    """The row with its interval, or with the reason why it has none."""
    named = np.count_nonzero(counts)
    if named < FEWEST or not np.isfinite(bounds).all():
        few = f"captions name fewer than {FEWEST} people: no interval"
        return row._replace(note=few if named < FEWEST else "too little spread: no interval")
    return row._replace(low=bounds.low, high=bounds.high)


def _medians(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of every draw: the mean of the two values in its middle."""
    order, n = np.argsort(values), len(values)
    upto = weights[:, order].cumsum(axis=1)
    middle = [(upto > rank).argmax(axis=1) for rank in ((n - 1) // 2, n // 2)]
    return np.asarray(sum(values[order][each] for each in middle) / 2)


def _resampler(people: pl.DataFrame, options: MeasureOptions) -> Resampler:
    """Draws of people; the numbers of women and men in a branch are fixed."""
    strata = people.select(pl.struct("branch", "gender").rank("dense").cast(pl.Int64))["branch"].to_numpy()
    return Resampler(np.arange(people.height), options.rng(), options.draws, strata=strata)


def word_rows(counts: Counts, first: int) -> Iterator[Row]:
    """Captions for each word of the three levels, whose counts begin at index `first`."""
    gender = {word: group for group, word in PLAYER.items()}
    for index, term in enumerate(WORD_TERMS, start=first):
        inside = int(counts.inside[index])
        note = f"{inside:,} more contain it only within a longer term of its level" if inside else None
        row = Row("exposure.category", float(counts.apart[index]), counts.captions, CAPTIONS, subset=term.kind)
        yield row._replace(concept=term.text, group=gender.get(term.text), note=note)


def identity_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Captions against how well the model knows the same people: `gain` and `known` (see `known_by_name`)."""
    alone = people["known"].null_count()
    note = f"{alone} people share all labels with nobody: left out" if alone else None
    people = people.drop_nulls("known")
    for row in (*_correlation_rows(people, options), *_gap_rows(people, options)):
        yield row._replace(note=join((row.note, note)))


def _correlation_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Within branch and gender, all subsets as one family."""
    subsets, rng = list(parts(people)), options.rng()
    made = [_correlation(part, rng, options) for _, part, _ in subsets]
    for (subset, part, left_out), judged in zip(subsets, judge(made), strict=True):
        row = Row("exposure.identity_correlation", None, part.height, "correlation", subset=subset, note=left_out)
        if np.isnan(judged.value[0]):
            yield row._replace(note=join((left_out, "all counts or all scores are alike: nothing to correlate")))
        else:
            yield comparison_at(judged, 0).on(row, least=-1.0, most=1.0)


def _correlation(people: pl.DataFrame, rng: np.random.Generator, options: MeasureOptions) -> Part:
    blocks = people.select(pl.struct("branch", "gender").rank("dense"))["branch"].to_numpy()
    return compare_ranks(_numbers(people, CAPTIONS), _numbers(people, "known"), blocks, rng, options.shuffles)


def _gap_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Women over men, as measured and at equal captions: one family; and the change that this makes."""
    rng, compared, made = options.rng(), women_and_men(people, options), []
    for each in compared:
        gain, exposure = _numbers(each.table, "gain"), np.log1p(_numbers(each.table, CAPTIONS))
        made += [each.part(gain, rng, options), each.part(gain, rng, options, equal=exposure)]
    judged = iter(judge(made))
    for each, before, after in zip(compared, judged, judged, strict=True):
        row = Row("exposure.identity_gap", None, each.table.height, "ratio", subset=each.subset, note=each.note)
        for concept, found in ((UNADJUSTED, before), (ADJUSTED, after)):
            yield as_ratio(comparison_at(found, (0, 0)).on(row))._replace(concept=concept)
        yield as_ratio(row._replace(concept=CHANGE, value=float(after.value[0, 0] - before.value[0, 0])))


def _numbers(people: pl.DataFrame, column: str) -> npt.NDArray[np.float64]:
    return people[column].to_numpy().astype(np.float64)
