"""What APA and P-FI measure on pictures of named people: association, gender ratio, identity.

One set of measures serves both studies, on photographs and in the embedded world. A task's `kind` says what is asked,
its `part` is the branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from beholder.core.results import Row
from beholder.metrics.association import chance, correct_rank, correct_share, first
from beholder.metrics.bootstrap import Resampler
from beholder.studies.public_figures.gaps import occupation_gap_rows
from beholder.studies.public_figures.identity import identity_rows
from beholder.studies.public_figures.levels import LEVELS, Array, Level, read_level, scored_branches
from beholder.studies.public_figures.ratios import other_ratio_rows, ratio_rows
from beholder.studies.rows import join, mean_row, people_shown, refusal_metric, refusal_rows
from beholder.studies.study import Matrices, Measure, MeasureOptions, Metric, read_metrics


def public_figure_measures(prefix: str, pools: dict[str, tuple[str, ...]]) -> tuple[Measure, ...]:
    """Measures whose metric names begin with `prefix`; `pools` names the branches pooled for bias."""
    return (
        partial(_association, prefix),
        partial(ratio_rows, prefix, pools),
        partial(other_ratio_rows, prefix, pools),
        partial(occupation_gap_rows, prefix, pools),
        partial(identity_rows, prefix),
        partial(_refusals, prefix),
    )


def public_figure_metrics(prefix: str) -> tuple[Metric, ...]:
    """What each metric means."""
    return (*read_metrics(Path(__file__).with_name("metrics.csv"), f"{prefix}."), refusal_metric(prefix))


# Association at three levels


def _association(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of the correct prompt and top-1, by branch and level."""
    for matrix in scored_branches(matrices).values():
        for name in LEVELS:
            level = read_level([matrix], name)
            if not level.concepts:
                continue
            shares, ranks = (correct_share(level.shares, level.correct), correct_rank(level.shares, level.correct))
            resampler = Resampler(people_shown(level.images), options.rng(), options.draws)
            by_chance, exchanged = chance(level.correct).share, _exchanged_answers(level)
            for metric, values in (("association", shares), ("association_top1", first(ranks))):
                row = mean_row(f"{prefix}.{metric}", values, resampler, half=options.compat)
                landmark = exchanged if metric == "association" else None
                within = "landmark: right answers exchanged within gender" if landmark is not None else None
                note = join((row.note, _unanswered(shares, name), level.left_out, within))
                yield row._replace(subset=matrix.part, concept=name, note=note, chance=by_chance, landmark=landmark)


def _exchanged_answers(level: Level) -> float | None:
    """The mean share if right answers were exchanged among people of one gender; None where all of them have one.

    Gender alone tells an actress's award from an actor's, and sports that women do from those that men do.
    """
    answered = np.asarray(level.correct.any(axis=1))
    known = "gender" in level.images.columns
    gender = level.images["gender"].fill_null("").to_numpy().astype(str) if known else answered.astype(str)
    expected, several = np.full(len(answered), np.nan), False
    for each in np.unique(gender[answered]):
        mine = answered & (gender == each)
        answers = level.correct[mine].mean(axis=0)
        several |= bool(((answers > 0) & (answers < 1)).any())
        expected[mine] = level.shares[mine] @ answers
    return float(np.nanmean(expected)) if several else None


def _unanswered(shares: Array, level: str) -> str | None:
    count = int(np.isnan(shares).sum())
    return f"{count} images have no correct prompt at the {level} level and are left out" if count else None


def _refusals(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """About whom the model refuses to answer, branch by branch."""
    yield from refusal_rows(prefix, {name: (matrix, "gender") for name, matrix in matrices.items()}, options)
