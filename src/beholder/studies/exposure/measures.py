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
from beholder.metrics.intervals import difference_estimate, mean_estimate, ratio_estimate, studentised_interval
from beholder.metrics.rank_correlation import rank_correlation, rank_correlation_draws
from beholder.studies.apa.prompts import PLAYER
from beholder.studies.exposure.counting import Counts
from beholder.studies.exposure.people import WORD_TERMS
from beholder.studies.public_figures.measures import GROUPS
from beholder.studies.rows import join, mean_row
from beholder.studies.study import MeasureOptions, read_metrics

EVERYONE = "all branches"
CAPTIONS = "captions"
MEAN, TYPICAL = "mean", "typical"
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
    for subset, part, left_out in parts(people):
        of_group = {group: part.filter(gender=group) for group in GROUPS}
        for group, members in of_group.items():
            for row in _group_rows(members, options):
                yield row._replace(subset=subset, group=group, note=join((row.note, left_out)))
        if all(members.height for members in of_group.values()):
            for row in _ratio_rows(of_group, options):
                yield row._replace(subset=subset, note=join((row.note, left_out)))


def _group_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    values = people[CAPTIONS].to_numpy().astype(np.float64)
    metric, n = "exposure.captions", people.height
    if not n:
        yield Row(metric, None, 0, CAPTIONS, note="there is nobody to count")
        return
    resampler, few = _resampler(people, options), _too_few(values)
    bounds = studentised_interval(mean_estimate(values, resampler))
    bounds = Interval(max(0.0, bounds.low), bounds.high)
    yield _bounded(Row(metric, float(values.mean()), n, CAPTIONS), bounds, few)
    medians = np.concatenate([_medians(values, weights) for weights in resampler.weights()])
    median = Row(f"{metric}_median", float(np.median(values)), n, CAPTIONS)
    yield _bounded(median, percentile_interval(medians), few)
    yield mean_row("exposure.never", (values == 0).astype(np.float64), resampler)


def _medians(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of every draw: the mean of the two values in its middle."""
    order, n = np.argsort(values), len(values)
    upto = weights[:, order].cumsum(axis=1)
    middle = [(upto > rank).argmax(axis=1) for rank in ((n - 1) // 2, n // 2)]
    return np.asarray(sum(values[order][each] for each in middle) / 2)


def _ratio_rows(of_group: dict[str, pl.DataFrame], options: MeasureOptions) -> Iterator[Row]:
    """Women over men, of means and of geometric means; groups are drawn apart."""
    n = sum(map(len, of_group.values()))
    row = Row("exposure.ratio", None, n, "ratio", concept=MEAN)
    counts = {group: members[CAPTIONS].to_numpy().astype(np.float64) for group, members in of_group.items()}
    if not (counts["woman"].any() and counts["man"].any()):
        yield row._replace(note="captions name no woman or no man")
        return
    rng = options.rng()  # one for both: equal seeds would draw women and men alike
    resamplers = {group: _resampler(of_group[group], options, rng) for group in GROUPS}
    means, logs = (
        [mean_estimate(change(counts[group]), resamplers[group]) for group in GROUPS]
        for change in (np.asarray, np.log1p)
    )
    ratio, typical, few = ratio_estimate(*means), difference_estimate(*logs), _too_few(*counts.values())
    yield _bounded(row._replace(value=ratio.value), studentised_interval(ratio, scale="log"), few)
    bounds = Interval(*np.exp(studentised_interval(typical)).tolist())
    yield _bounded(row._replace(concept=TYPICAL, value=float(np.exp(typical.value))), bounds, few)


def _resampler(people: pl.DataFrame, options: MeasureOptions, rng: np.random.Generator | None = None) -> Resampler:
    """Draws of people; the numbers of women and men in a branch are fixed."""
    strata = people.select(pl.struct("branch", "gender").rank("dense").cast(pl.Int64))["branch"].to_numpy()
    return Resampler(np.arange(people.height), rng or options.rng(), options.draws, strata=strata)


def _too_few(*groups: npt.NDArray[np.float64], result: str = "interval") -> str | None:
    """Why these counts cannot be resampled: there are few people, or few of them are named."""
    if min(map(len, groups)) < FEWEST:
        return f"fewer than {FEWEST} people: no {result}"
    if min(map(np.count_nonzero, groups)) < FEWEST:
        return f"captions name fewer than {FEWEST} people: no {result}"
    return None


def _bounded(row: Row, bounds: Interval, few: str | None) -> Row:
    """The row with its interval, or with the reason why it has none."""
    if few or not np.isfinite(bounds).all():
        return row._replace(note=join((row.note, few or "too little spread: no interval")))
    return row._replace(low=bounds.low, high=bounds.high)


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
    if few := _too_few(counts, result="correlation"):
        return row._replace(note=few)
    value = rank_correlation(counts, identity, branches)
    if np.isnan(value):
        return row._replace(note="all counts or all scores are alike: nothing to correlate")
    draws = rank_correlation_draws(counts, identity, _resampler(people, options), branches)
    return _bounded(row._replace(value=value), percentile_interval(draws), None)


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
    yield _bounded(row._replace(value=values[UNADJUSTED]), percentile_interval(draws[UNADJUSTED]), few)
    if unnamed := _too_few(counts, result="adjustment"):
        yield row._replace(concept=ADJUSTED, note=unnamed)
        return
    values[CHANGE], draws[CHANGE] = values[ADJUSTED] - values[UNADJUSTED], draws[ADJUSTED] - draws[UNADJUSTED]
    for concept in (ADJUSTED, CHANGE):
        yield _bounded(row._replace(concept=concept, value=values[concept]), percentile_interval(draws[concept]), few)


def _columns(people: pl.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Captions, identity and the number of the branch."""
    branches = np.unique(people["branch"].to_numpy().astype(str), return_inverse=True)[1]
    return people[CAPTIONS].to_numpy().astype(np.float64), people["identity"].to_numpy(), branches
