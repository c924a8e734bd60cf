"""Rows that every study makes: a mean with its interval and its n, whom a model refuses, and what a plan can find.

A plan runs the engine that judges an audit on noise for the data's own people, groups and strata. Spreads come from an
earlier run where one is named, else they are assumed, and every row says which.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.family import FEWEST, TOO_LITTLE, Part, comparison_at, judge
from beholder.comparison.groups import Groups, People, Strata, group_by, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.comparison.power import POWER, Design, Scores, detectable, people_needed
from beholder.core.options import EFFECT, option
from beholder.core.results import Row
from beholder.metrics.association import half_precision_mean
from beholder.metrics.intervals import Resampler, mean_interval
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import MeasureOptions, Metric

PROBABILITY = "probability"
NO_SPREAD = "all scores are alike: no interval"


def mean_row(metric: str, values: npt.NDArray[np.float64], resampler: Resampler, *, half: bool = False) -> Row:
    """A mean of probabilities, null with the reason without any; `half`: in float16, as APA's released scripts do."""
    known = values[~np.isnan(values)]
    if not known.size:
        return Row(metric, None, 0, PROBABILITY, note="no image to measure")
    value = half_precision_mean(known) if half else float(known.mean())
    low, high = mean_interval(values, resampler)
    few = min(known.size, resampler.n_clusters) < FEWEST
    why = f"fewer than {FEWEST} people: no interval" if few else NO_SPREAD if np.isnan(low) else None
    return Row(metric, value, known.size, PROBABILITY, low=low, high=high, note=why)


def refusal_metric(prefix: str) -> Metric:
    """What `refusal_rows` gives."""
    meaning = "share of images with a prompt the model refused to answer; p: does the group differ from everyone else"
    return Metric(f"{prefix}.refusal_share", "gender score judgements", PROBABILITY, meaning)


def refusal_rows(
    prefix: str, asked: Mapping[str, tuple[ScoreMatrix, str]], options: MeasureOptions, *, within: Sequence[str] = ()
) -> Iterator[Row]:
    """Whom the model refuses to answer about: the share of images with a refusal, each group against everyone else.

    `asked` has, by the rows' subset, what was scored and the attribute whose groups are compared: all are one family.
    Nothing where the model cannot refuse (it has no channel `refused`) or the attribute is unknown.
    """
    rng, made, parts = options.rng(), [], dict[str, Part]()
    for subset, (matrix, attribute) in asked.items():
        if "refused" in matrix.channels and attribute in matrix.images.columns:
            ever = np.asarray(matrix.refused(), dtype=np.float64).max(axis=1, initial=0.0)
            people, groups = people_of(matrix.images, options.person), group_by(matrix.images, (attribute,))
            large = groups.large(people)
            compared = large.names if len(large.names) > 1 else []
            made.append((subset, ever, people, groups, compared))
            if compared:
                strata, weights = strata_of(matrix.images, large, within, people), large.rest_weights(people)
                scale = {"shuffles": options.shuffles, "bounds": (0.0, 1.0), "strata": strata, "contrasts": weights}
                parts[subset] = compare_groups(ever, large, people, rng, **scale)  # type: ignore[arg-type]
    judged = dict(zip(parts, judge(list(parts.values())), strict=True))
    for subset, ever, people, groups, compared in made:
        for group in groups.names:
            mine = groups.mask(group)
            resampler = Resampler(people.codes[mine], options.rng(), options.draws)
            row = mean_row(f"{prefix}.refusal_share", ever[mine], resampler)
            note = join((row.note, "images with a refused prompt"))
            row = row._replace(subset=subset, group=group, verdict=TOO_LITTLE, note=note)
            if group in compared:
                found = comparison_at(judged[subset], (compared.index(group), 0))
                row = row._replace(p_value=found.p_value, p_at_most=found.at_most or None, verdict=found.verdict)
            yield row


def join(notes: Sequence[str | None]) -> str | None:
    """Several notes as one; None when there is none."""
    return "; ".join(note for note in notes if note) or None


SEED = 8


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan."""

    data: Path | None = None
    dataset: str | None = None
    power: float = option(POWER, "Probability of finding the effect.", min=0.05, max=0.999, panel=EFFECT)
    effect: float | None = option(
        None,
        "Show how many images this effect needs (a gap in probability; 1 − b for a ratio).",
        kind=float,
        min=1e-6,
        panel=EFFECT,
    )
    results: pl.DataFrame | None = None  # an earlier run, for its spreads
    person: str | None = None  # the column that says who is shown; without it, the first of `comparison.people.COLUMNS`


class Planned(NamedTuple):
    """One comparison that a study will make: who is compared, within what, and how far scores of people lie apart."""

    metric: str
    groups: Groups
    scores: Scores  # how scores lie apart within a group, in `unit`; with a mean, they are probabilities
    source: str  # where the spread comes from
    unit: str = "probability"
    strata: Strata | None = None
    columns: int = 1
    what: str = "prompts"  # what the columns are
    rests: bool = False  # whether each of more than two groups is also compared with everyone else
    concept: str | None = None  # what the row is about; without it, the attribute


def detectable_rows(planned: Sequence[Planned], people: People, options: PlanOptions) -> Iterator[Row]:
    """`plan.detectable` of each comparison, all judged as one family, and `plan.images_needed` with `--effect`.

    The value is how far the smallest group that is compared must lie from all others. Where no two groups have five
    people there is none: the verdict is "too little data".
    """
    large = [each.groups.large(people) for each in planned]
    designs = []
    for each, groups in zip(planned, large, strict=True):
        several = each.rests and len(groups.names) > 2
        contrasts = np.concatenate([groups.pair_weights(), groups.rest_weights(people)]) if several else None
        designs.append(Design(groups, each.strata, each.columns, contrasts, each.scores))
    gaps = detectable(designs, people, np.random.default_rng(SEED), power=options.power)
    for each, groups, gap in zip(planned, large, gaps, strict=True):
        row = Row("plan.detectable", gap, int((groups.codes >= 0).sum()), each.unit, subset=each.metric)
        row = row._replace(concept=each.concept or each.groups.attribute)
        if len(groups.names) < 2:
            needed = f"two groups of at least {FEWEST} people are needed"
            yield row._replace(verdict=TOO_LITTLE, note=f"{described(each.groups, people)}: {needed}")
            continue
        none = "" if np.isfinite(gap) else "; no difference can be found"
        times = people_needed(gap, options.effect) if options.effect and not none else None
        row = row._replace(note=_note(each, groups, people) + none)
        yield from plan_rows(row, None if times is None else row.n * times, options)


def _note(each: Planned, groups: Groups, people: People) -> str:
    one = f"one of {each.columns} {each.what}, " if each.columns > 1 else ""
    other = "the other" if len(groups.names) == 2 else "the others"
    within = f"{each.strata.variant}; " if each.strata is not None and each.strata.variant else ""
    return f"{described(groups, people)}: {one}the smallest group against {other}; {within}{each.source}"


def described(groups: Groups, people: People) -> str:
    """How many groups of how many people: `2 groups of 1 to 2 people`."""
    sizes = sorted(groups.sizes(people))
    spread = "no" if not sizes else f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    return f"{len(sizes)} group{'' if len(sizes) == 1 else 's'} of {spread} people"


def plan_rows(row: Row, needed: float | None, options: PlanOptions) -> Iterator[Row]:
    """The row, and how many images the effect takes where one was named."""
    yield row
    if needed is not None:
        note = f"to find {options.effect:g} with {100 * options.power:g} % power; {row.note}"
        yield row._replace(metric="plan.images_needed", value=float(np.ceil(needed)), unit="images", note=note)


def of_run(options: PlanOptions, metric: str, **place: str) -> pl.DataFrame | None:
    """The rows of a metric in the earlier run; None without one."""
    if options.results is None:
        return None
    return options.results.filter(pl.col("metric").str.ends_with(f".{metric}")).filter(**place)
