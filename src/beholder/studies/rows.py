"""Rows that every study makes: a mean with its interval and its n."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison import (
    TOO_LITTLE,
    Groups,
    Part,
    People,
    compare_groups,
    comparison_at,
    group_by,
    judge,
    people_of,
    strata_of,
)
from beholder.comparison.family import Judged, not_judgeable
from beholder.core.results import Row
from beholder.metrics.association import half_precision_mean
from beholder.metrics.intervals import FEWEST, Resampler, mean_interval
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import MeasureOptions, Metric

PROBABILITY = "probability"
NO_SPREAD = "all scores are alike: no interval"


def mean_row(metric: str, values: npt.NDArray[np.float64], resampler: Resampler, *, half: bool = False) -> Row:
    """A mean of probabilities; null, with the reason, when there is nothing to take it of.

    `half` takes it in float16, as APA's released scripts do.
    """
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
    rng = options.rng()
    made = {
        subset: _Refusals.of(matrix, attribute, options, rng, within)
        for subset, (matrix, attribute) in asked.items()
        if "refused" in matrix.channels and attribute in matrix.images.columns
    }
    for (subset, each), judged in zip(made.items(), judge([each.part for each in made.values()]), strict=True):
        for row in each.rows(f"{prefix}.refusal_share", judged, options):
            yield row._replace(subset=subset)


class _Refusals(NamedTuple):
    """Which images have a refusal, and how the groups of one attribute compare."""

    ever: npt.NDArray[np.float64]
    people: People
    groups: Groups
    compared: list[str]
    """The groups that are large enough."""
    part: Part

    @classmethod
    def of(
        cls,
        matrix: ScoreMatrix,
        attribute: str,
        options: MeasureOptions,
        rng: np.random.Generator,
        within: Sequence[str],
    ) -> _Refusals:
        ever = np.asarray(matrix.refused(), dtype=np.float64).max(axis=1, initial=0.0)
        people, groups = people_of(matrix.images, options.person), group_by(matrix.images, (attribute,))
        large = groups.large(people)
        if len(large.names) < 2:
            return cls(ever, people, groups, [], not_judgeable(np.zeros(0, dtype=int)))
        part = compare_groups(
            ever,
            large,
            people,
            rng,
            strata=strata_of(matrix.images, large, within, people),
            contrasts=large.rest_weights(people),
            shuffles=options.shuffles,
            bounds=(0.0, 1.0),
        )
        return cls(ever, people, groups, large.names, part)

    def rows(self, metric: str, judged: Judged, options: MeasureOptions) -> Iterator[Row]:
        for group in self.groups.names:
            mine = self.groups.mask(group)
            resampler = Resampler(self.people.codes[mine], options.rng(), options.draws)
            row = mean_row(metric, self.ever[mine], resampler)
            row = row._replace(group=group, verdict=TOO_LITTLE, note=join((row.note, "images with a refused prompt")))
            if group in self.compared:
                found = comparison_at(judged, (self.compared.index(group), 0))
                row = row._replace(p_value=found.p_value, p_at_most=found.at_most or None, verdict=found.verdict)
            yield row


def join(notes: Sequence[str | None]) -> str | None:
    """Several notes as one; None when there is none."""
    return "; ".join(note for note in notes if note) or None
