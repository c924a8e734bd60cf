"""What APA and P-FI measure on pictures of named people: association, gender ratio, identity.

One set of measures serves both studies, on photographs and in the embedded world. A task's `kind` says what is asked,
its `part` is the branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from beholder.comparison import (
    FEWEST,
    Exchanged,
    Groups,
    Strata,
    compare_groups,
    comparison_at,
    exchanged,
    judge,
    people_of,
)
from beholder.core.results import WITHIN, Row
from beholder.metrics.association import chance, correct_rank, correct_share, first
from beholder.metrics.intervals import Resampler
from beholder.studies.public_figures.identity import identity_rows
from beholder.studies.public_figures.levels import (
    GROUPS,
    LEVELS,
    Array,
    Level,
    Pool,
    Pools,
    Tested,
    read_level,
    scored_branches,
    scored_pools,
    tested_rows,
)
from beholder.studies.public_figures.phrases import either_word
from beholder.studies.public_figures.ratios import ratio_rows
from beholder.studies.rows import PROBABILITY, join, mean_row, refusal_metric, refusal_rows
from beholder.studies.study import Matrices, Measure, MeasureOptions, Metric, read_metrics


def occupation_gap_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Women minus men for every wrong occupation of every pool, and of every branch where a pool has several."""
    rng, places = options.rng(), [place for pool in scored_pools(pools, matrices, options) for place in _places(pool)]
    parts = [
        compare_groups(shares, groups, pool.people, rng, strata=strata, shuffles=options.shuffles, bounds=(0.0, 1.0))
        for pool, _, shares, groups, strata, _ in places
    ]
    for (pool, concepts, shares, groups, strata, branch), judged in zip(places, judge(parts), strict=True):
        women, men = groups.sizes(pool.people)
        plain = shares[groups.mask(0)].mean(axis=0) - shares[groups.mask(1)].mean(axis=0)
        few = f"fewer than {FEWEST} people in a group" if min(women, men) < FEWEST else None
        note = join((few, strata.note if strata else None))
        for column, concept in enumerate(concepts):
            row = Row(f"{prefix}.occupation_gap", None, women + men, PROBABILITY, concept=concept, note=note)
            row = row._replace(subset=branch or pool.name, variant=f"{WITHIN}branch" if branch else None)
            compared = comparison_at(judged, (0, column), *GROUPS)
            value = float(plain[column]) if np.isnan(compared.value) else compared.value
            yield compared.on(row, least=-1.0, most=1.0)._replace(value=value)


Place = tuple[Pool, list[str], Array, Groups, Strata | None, str | None]
"""Wrong occupations and their shares, of a pool within its branches or of one branch."""


def _places(pool: Pool) -> Iterator[Place]:
    concepts, shares = wrong_occupations(pool.level)
    if pool.both and concepts:
        yield pool, concepts, shares, pool.groups, pool.strata, None
        for branch, groups in pool.branches():
            if min(groups.sizes(pool.people)) > 0:
                yield pool, concepts, shares, groups, None, branch


def wrong_occupations(level: Level) -> tuple[list[str], Array]:
    """The occupations that are wrong for everyone, and each image's share of belief on them."""
    words = [either_word(concept) for concept in level.concepts]
    right = {word for column, word in enumerate(words) if level.correct[:, column].any()}
    wrong = [word for word in dict.fromkeys(words) if word not in right]
    shares = [level.shares[:, [each == word for each in words]].sum(axis=1) for word in wrong]
    return wrong, np.stack(shares, axis=1) if shares else np.empty((level.images.height, 0))


# What APA and P-FI measure on pictures of named people


def public_figure_measures(prefix: str, pools: Pools) -> tuple[Measure, ...]:
    """Measures whose metric names begin with `prefix`; `pools` names the branches pooled for bias."""
    return (
        partial(association_rows, prefix),
        partial(ratio_rows, prefix, pools),
        partial(occupation_gap_rows, prefix, pools),
        partial(identity_rows, prefix),
        partial(_refusals, prefix),
    )


def public_figure_metrics(prefix: str) -> tuple[Metric, ...]:
    """What each metric means."""
    return (*read_metrics(Path(__file__).with_name("metrics.csv"), f"{prefix}."), refusal_metric(prefix))


# Association at three levels


def association_rows(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of the correct prompt and top-1, by branch and level: all that has a contrast is one family."""
    family, rng = [], options.rng()
    for matrix in scored_branches(matrices).values():
        for name in LEVELS:
            level = read_level([matrix], name)
            if not level.concepts:
                continue
            people = people_of(level.images, options.person)
            shares, ranks = correct_share(level.shares, level.correct), correct_rank(level.shares, level.correct)
            resampler = Resampler(people.codes, options.rng(), options.draws)
            for metric, values in (("association", shares), ("association_top1", first(ranks))):
                row = mean_row(f"{prefix}.{metric}", values, resampler, half=options.compat)
                note = join((row.note, _unanswered(shares, name), level.left_out))
                row = row._replace(subset=matrix.part, concept=name, chance=chance(level.correct).share, note=note)
                made = _exchanged_answers(level, rng, options) if metric == "association" else None
                family.append(Tested(row, made, ("gender",)))
    yield from tested_rows(family)


def _exchanged_answers(level: Level, rng: np.random.Generator, options: MeasureOptions) -> Exchanged | None:
    """Right answers exchanged among people of one gender: gender alone tells an actress's award from an actor's."""
    answered = np.flatnonzero(level.correct.any(axis=1))
    if not len(answered):
        return None
    answers, answer = np.unique(level.correct[answered], axis=0, return_inverse=True)
    images = level.images[answered]
    known, first_of, person = np.unique(people_of(images, options.person).codes, return_index=True, return_inverse=True)
    gender = images["gender"].fill_null("").to_numpy().astype(str) if "gender" in images.columns else person * 0
    beliefs = np.zeros((len(known), len(answers)))
    np.add.at(beliefs, person, level.shares[answered] @ answers.T)
    beliefs /= np.bincount(person)[:, None]
    blocks = np.unique(gender, return_inverse=True)[1][first_of]
    return exchanged(beliefs, answer.ravel()[first_of], blocks, rng, options.shuffles)


def _unanswered(shares: Array, level: str) -> str | None:
    count = int(np.isnan(shares).sum())
    return f"{count} images have no correct prompt at the {level} level and are left out" if count else None


def _refusals(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """About whom the model refuses to answer, branch by branch."""
    yield from refusal_rows(prefix, {name: (matrix, "gender") for name, matrix in matrices.items()}, options)
