"""What the counts show: how often women and men are named, and whether a model knows the people that are named.

People with ambiguous names are left out, and every row says how many. Nobody is named in the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.metrics.adjusted_gap import adjusted_gap, adjusted_gap_draws
from beholder.metrics.bootstrap import FEWEST, Interval, Resampler, percentile_interval
from beholder.metrics.intervals import mean_estimate, studentised_interval
from beholder.metrics.rank_correlation import rank_correlation, rank_correlation_draws
from beholder.studies.apa.prompts import PLAYER
from beholder.studies.exposure.counting import Counts
from beholder.studies.exposure.people import WORD_TERMS
from beholder.studies.exposure.ratios import CAPTIONS, EVERYONE, bounded, corrected, ratio_rows, too_few
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.rows import join, mean_row
from beholder.studies.study import MeasureOptions, read_metrics

UNADJUSTED, ADJUSTED, CHANGE = "as measured", "at equal exposure", "change"
FEW_PEOPLE = f"fewer than {FEWEST} people: no interval"
METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))


def parts(people: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Each branch, then everyone: the people with unambiguous names, and a note on those left out."""
    branches = [(str(name), part) for (name,), part in people.group_by(["branch"], maintain_order=True)]
    for subset, part in (*branches, *([(EVERYONE, people)] if len(branches) > 1 else [])):
        clear = part.filter(pl.col("ambiguous").is_null())
        left = part.height - clear.height
        yield subset, clear, f"{left} of {part.height} left out: ambiguous names" if left else None


def count_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Mean, median and share never mentioned for women and men of each branch, and the ratios."""
    rows = []
    for subset, part, left_out in parts(people):
        for group in GROUPS:
            for row in _group_rows(part.filter(gender=group), options):
                rows.append(row._replace(subset=subset, group=group, note=join((row.note, left_out))))
        for row in ratio_rows(part, subset, options):
            rows.append(row._replace(note=join((row.note, left_out))))
    yield from corrected(rows)


def _group_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    values = people[CAPTIONS].to_numpy().astype(np.float64)
    metric, n = "exposure.captions", people.height
    if not n:
        yield Row(metric, None, 0, CAPTIONS, note="there is nobody to count")
        return
    resampler, few = _resampler(people, options), too_few(values)
    bounds = studentised_interval(mean_estimate(values, resampler))
    bounds = Interval(max(0.0, bounds.low), bounds.high)
    yield bounded(Row(metric, float(values.mean()), n, CAPTIONS), bounds, few)
    medians = np.concatenate([_medians(values, weights) for weights in resampler.weights()])
    median = Row(f"{metric}_median", float(np.median(values)), n, CAPTIONS)
    yield bounded(median, percentile_interval(medians), few)
    yield mean_row("exposure.never", (values == 0).astype(np.float64), resampler)


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
    """Captions against the model's `identity` of the same people."""
    for subset, part, left_out in parts(people):
        for row in (_correlation_row(part, options), *_gap_rows(part, options)):
            yield row._replace(subset=subset, note=join((row.note, left_out)))


def _correlation_row(people: pl.DataFrame, options: MeasureOptions) -> Row:
    row = Row("exposure.identity_correlation", None, people.height, "correlation")
    counts, identity, branches = _columns(people)
    if few := too_few(counts, result="correlation"):
        return row._replace(note=few)
    value = rank_correlation(counts, identity, branches)
    if np.isnan(value):
        return row._replace(note="all counts or all scores are alike: nothing to correlate")
    draws = rank_correlation_draws(counts, identity, _resampler(people, options), branches)
    return bounded(row._replace(value=value), percentile_interval(draws), None)


def _gap_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Women minus men, as measured and at equal captions, and the difference of the two."""
    people = people.filter(pl.col("gender").is_in(GROUPS))
    women = (people["gender"] == "woman").to_numpy()
    row = Row("exposure.identity_gap", None, people.height, "probability", concept=UNADJUSTED)
    if not 0 < women.sum() < people.height:
        yield row._replace(note="there are no women or no men")
        return
    counts, identity, branches = _columns(people)
    few = FEW_PEOPLE if min(women.sum(), (~women).sum()) < FEWEST else None
    resampler = _resampler(people, options)
    values, draws = {}, {}
    for concept, covariates in ((UNADJUSTED, counts[:, None][:, :0]), (ADJUSTED, np.log1p(counts)[:, None])):
        values[concept] = adjusted_gap(identity, women, covariates, branches)
        draws[concept] = adjusted_gap_draws(identity, women, covariates, branches, resampler)
    yield bounded(row._replace(value=values[UNADJUSTED]), percentile_interval(draws[UNADJUSTED]), few)
    if unnamed := too_few(counts, result="adjustment"):
        yield row._replace(concept=ADJUSTED, note=unnamed)
        return
    values[CHANGE], draws[CHANGE] = values[ADJUSTED] - values[UNADJUSTED], draws[ADJUSTED] - draws[UNADJUSTED]
    for concept in (ADJUSTED, CHANGE):
        yield bounded(row._replace(concept=concept, value=values[concept]), percentile_interval(draws[concept]), few)


def _columns(people: pl.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Captions, identity and the number of the branch."""
    branches = np.unique(people["branch"].to_numpy().astype(str), return_inverse=True)[1]
    return people[CAPTIONS].to_numpy().astype(np.float64), people["identity"].to_numpy(), branches
