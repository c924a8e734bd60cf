"""Which wrong occupations does the model give to women more than to men? One difference for each, one family.

Differences are taken within branches, so that a branch with many women does not pass for an effect of gender; each
branch is in the family too. Two words for one occupation ("actor", "actress") count as one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beholder.comparison import FEWEST, Groups, Strata, compare_groups, comparison_at, judge
from beholder.core.results import WITHIN, Row
from beholder.studies.public_figures.levels import GROUPS, Array, Level, Pool, Pools, scored_pools
from beholder.studies.public_figures.phrases import either_word
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import Matrices, MeasureOptions


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
