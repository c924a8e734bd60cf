"""What the counts show: how often women and men are named, and whether a model knows them. Nobody is named here."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.family import FEWEST, Comparison, Judged, Part, comparison_at, judge, not_judgeable
from beholder.comparison.groups import Groups, People, Strata, people_of, strata_of
from beholder.comparison.means import OPEN, compare_groups, levels_of, ratio_bounds
from beholder.comparison.shuffles import centred, compare_ranks
from beholder.core.results import Row
from beholder.core.types import Array
from beholder.metrics.intervals import Interval, Resampler, mean_estimate, percentile_interval, studentised_interval
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.exposure.counting import Counts
from beholder.studies.exposure.mentions import WORD_TERMS
from beholder.studies.public_figures.identity import IDENTITY, known_by_name
from beholder.studies.public_figures.measures import GROUPS, PLAYERS, has_both, over, women_and_men
from beholder.studies.rows import join, mean_row
from beholder.studies.study import MeasureOptions, read_metrics
from beholder.studies.worlds import GENDER_ONLY, WOMAN, Trial, World

EVERYONE = "all branches"
SAME = 0.99  # share of the variance of gender that a number explains from which they are the same


def parts(people: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Each branch, then everyone: the people with unambiguous names, and a note on those left out."""
    branches = [(str(name), part) for (name,), part in people.group_by(["branch"], maintain_order=True)]
    for subset, part in (*branches, *([(EVERYONE, people)] if len(branches) > 1 else [])):
        clear = part.filter(pl.col("ambiguous").is_null())
        left = part.height - clear.height
        yield subset, clear, f"{left} of {part.height} left out: ambiguous names" if left else None


class Compared(NamedTuple):
    """Women and men of one branch, or of all."""

    subset: str
    table: pl.DataFrame
    groups: Groups
    people: People
    strata: Strata
    note: str | None

    def part(
        self, values: Array, rng: np.random.Generator, options: MeasureOptions, *, equal: Array | None = None
    ) -> Part:
        """Women less men in every column, within branches; with `equal`, at equal values of that number."""
        # Nothing is compared where that number is the same for all within their branches, or says who is a woman.
        strata, women = self.strata, self.groups.mask(0).astype(np.float64)
        if equal is not None:
            member, number = (centred(each, strata.cells) for each in (women, equal))
            if not (member @ number) ** 2 < SAME * (member @ member) * (number @ number):
                return not_judgeable(np.full((1, 1), min(self.groups.sizes(self.people))))
            strata = strata._replace(design=np.column_stack([strata.design, equal]))
        return compare_groups(values, self.groups, self.people, rng, strata=strata, shuffles=options.shuffles)


def compared_subsets(people: pl.DataFrame, options: MeasureOptions) -> list[Compared]:
    """Each branch, then all of them, as far as they have both women and men."""
    made = []
    for subset, part, left_out in parts(people):
        table = part.filter(pl.col("gender").is_in(GROUPS))
        groups, who = women_and_men(table), people_of(table, options.person)
        if has_both(groups):
            strata = strata_of(table, groups, ("branch",), who)
            made.append(Compared(subset, table, groups, who, strata, join((left_out, strata.note))))
    return made


def as_ratio(row: Row) -> Row:
    """A difference of logarithms as a ratio."""
    far, numbers = np.log(OPEN), (row.value, row.low, row.high)
    value, low, high = (None if each is None else float(np.exp(np.clip(each, -far, far))) for each in numbers)
    return row._replace(value=value, low=low, high=high)


RATIO, CAPTIONS = "exposure.ratio", "captions"
MEAN, TYPICAL = "mean", "typical"
CRUDE = {MEAN: "mean, crude", TYPICAL: "typical, crude"}  # concepts of the ratios over all people at once


def ratio_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """The ratio of means and that of geometric means of 1 + captions, and the crude ones."""
    # The typical ratios of all subsets are one family, and decide. Those of the means have bounds of their own family
    # and no verdict: a few famous people decide them.
    compared, rng = compared_subsets(people, options), options.rng()
    counts = [_numbers(each.table, CAPTIONS) for each in compared]
    logs = judge([each.part(np.log1p(count), rng, options) for each, count in zip(compared, counts, strict=True)])
    parts = [each.part(count, rng, options) for each, count in zip(compared, counts, strict=True)]
    for each, count, typical, part, mean in zip(compared, counts, logs, parts, judge(parts), strict=True):
        for row in _rows(each, count, comparison_at(typical, (0, 0)), part, mean):
            yield row._replace(subset=each.subset, note=join((row.note, each.note)))


def _rows(compared: Compared, counts: Array, typical: Comparison, part: Part, mean: Judged) -> Iterator[Row]:
    """That of the means may be open-ended. Crude ones also follow which branches are named often: not tested."""
    row = Row(RATIO, None, compared.table.height, "ratio", concept=MEAN)
    values = np.column_stack([counts, np.log1p(counts)])
    crude = women, men = [values[compared.groups.mask(group)].mean(axis=0) for group in (0, 1)]
    if not women[0] and not men[0]:
        yield row._replace(note="captions name nobody")
        return
    low = high = np.nan
    if min(compared.groups.sizes(compared.people)) >= FEWEST:
        levels = levels_of(values, compared.groups, compared.people, compared.strata)
        women, men = levels.first, levels.second
        low, high = (float(bound[0]) for bound in ratio_bounds(levels, mean, part))
    yield row._replace(value=over(women[0], men[0]), low=low, high=high)
    yield as_ratio(typical.on(row)._replace(concept=TYPICAL, value=float(women[1] - men[1])))
    if compared.subset == EVERYONE:
        women, men = crude
        yield row._replace(value=over(women[0], men[0]), concept=CRUDE[MEAN])
        yield row._replace(value=float(np.exp(women[1] - men[1])), concept=CRUDE[TYPICAL])


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
    # Draws of people; the numbers of women and men in a branch are fixed.
    resampler = Resampler(np.arange(people.height), options.rng(), options.draws, strata=_cells(people))
    mean = studentised_interval(mean_estimate(values, resampler))
    medians = np.concatenate([_medians(values, weights) for weights in resampler.weights()])
    yield _bounded(row._replace(value=float(values.mean())), Interval(max(0.0, mean.low), mean.high), values)
    median = row._replace(metric="exposure.captions_median", value=float(np.median(values)))
    yield _bounded(median, percentile_interval(medians), values)
    yield mean_row("exposure.never", (values == 0).astype(np.float64), resampler)


def _bounded(row: Row, bounds: Interval, counts: Array) -> Row:
    """The row with its interval, or with the reason why it has none."""
    if np.count_nonzero(counts) < FEWEST:
        return row._replace(note=f"captions name fewer than {FEWEST} people: no interval")
    if not np.isfinite(bounds).all():
        return row._replace(note="too little spread: no interval")
    return row._replace(low=bounds.low, high=bounds.high)


def _medians(values: Array, weights: Array) -> Array:
    """The median of every draw: the mean of the two values in its middle."""
    order, n = np.argsort(values), len(values)
    upto = weights[:, order].cumsum(axis=1)
    middle = [(upto > rank).argmax(axis=1) for rank in ((n - 1) // 2, n // 2)]
    return np.asarray(sum(values[order][each] for each in middle) / 2)


def _cells(people: pl.DataFrame) -> npt.NDArray[np.int64]:
    """A number for each person: equal where branch and gender are."""
    return people.select(pl.struct("branch", "gender").rank("dense").cast(pl.Int64))["branch"].to_numpy()


def word_rows(counts: Counts, first: int) -> Iterator[Row]:
    """Captions for each word of the three levels, whose counts begin at index `first`."""
    gender = {word: group for group, word in PLAYERS.items()}
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
    subsets, rng, made = list(parts(people)), options.rng(), []
    for _, part, _ in subsets:
        captions, known = _numbers(part, CAPTIONS), _numbers(part, "known")
        made.append(compare_ranks(captions, known, _cells(part), rng, options.shuffles))
    for (subset, part, left_out), judged in zip(subsets, judge(made), strict=True):
        row = Row("exposure.identity_correlation", None, part.height, "correlation", subset=subset, note=left_out)
        if np.isnan(judged.value[0]):
            yield row._replace(note=join((left_out, "all counts or all scores are alike: nothing to correlate")))
        else:
            yield comparison_at(judged, 0).on(row, least=-1.0, most=1.0)


def _gap_rows(people: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Women over men, as measured and at equal captions: one family; and the change that this makes."""
    rng, compared, made = options.rng(), compared_subsets(people, options), []
    for each in compared:
        gain, exposure = _numbers(each.table, "gain"), np.log1p(_numbers(each.table, CAPTIONS))
        made += [each.part(gain, rng, options), each.part(gain, rng, options, equal=exposure)]
    judged = iter(judge(made))
    for each, before, after in zip(compared, judged, judged, strict=True):
        row = Row("exposure.identity_gap", None, each.table.height, "ratio", subset=each.subset, note=each.note)
        for concept, found in ((UNADJUSTED, before), (ADJUSTED, after)):
            yield as_ratio(comparison_at(found, (0, 0)).on(row))._replace(concept=concept)
        yield as_ratio(row._replace(concept=CHANGE, value=float(after.value[0, 0] - before.value[0, 0])))


def _numbers(people: pl.DataFrame, column: str) -> Array:
    return people[column].to_numpy().astype(np.float64)


# Tried with a world whose first score says how often captions name someone, the others what a model sees. A name stands
# for its gender and for nothing else that a picture shows: no model of these worlds knows anyone.

SEEN = 4  # numbers that a model takes from a picture
CAPTIONS_DIFFER = (RATIO, "exposure.named")


def _measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Ratios of captions, and captions against what the model knows of the same people."""
    captions = np.floor(np.exp(4 + 1.5 * np.clip(world.scores[:, 0], -10, 10)))
    pictures = world.table.rename({"person": "name"}).with_columns(captions=captions)
    people = pictures.unique("name", keep="first", maintain_order=True).with_columns(
        captions=pl.col("captions").fill_nan(0).cast(pl.Int64),
        ambiguous=pl.when(pl.col("captions").is_nan()).then(pl.lit("unknown")),
    )
    yield from ratio_rows(people, options)
    known = pl.concat(known_by_name(each) for each in _matrices(pictures, world.scores[:, 1:], options))
    yield from identity_rows(people.join(known, on="name", maintain_order="left"), options)


def _matrices(pictures: pl.DataFrame, seen: Array, options: MeasureOptions) -> Iterator[ScoreMatrix]:
    """One for each branch: how well each name fits each picture."""
    rng = options.rng()
    for (branch,), part in pictures.with_row_index().group_by(["branch"], maintain_order=True):
        names = part.unique("name", keep="first", maintain_order=True)
        traits = rng.standard_normal((names.height, SEEN)) + np.where(names["gender"] == WOMAN, 1, -1)[:, None]
        cells = seen[part["index"].to_numpy()] @ traits.T
        prompts = identity_prompts("names", "{}", names["name"].to_list()).table
        yield ScoreMatrix("names", part, prompts, ("logit_true",), cells[:, :, None], kind=IDENTITY, part=str(branch))


TRIALS = Trial(prompts=1 + SEEN, measure=_measure_world, true={GENDER_ONLY: CAPTIONS_DIFFER}, found=CAPTIONS_DIFFER)
