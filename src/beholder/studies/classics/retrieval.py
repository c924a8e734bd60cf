"""Berg's retrieval: whose pictures come first when words of character are asked for; MaxSkew and NDKL.

The shares that a ranking is held against are those of all pictures that are ranked (Berg's demographic parity), and
even ones (equal opportunity). Neither number is 0 without preference: `expected` is what shuffled people give. What is
judged is how many of the lists of the first k a picture is on, and how far to the front it comes, group by group: both
are 0 apart without preference. The second also tells where k is half of all: then nearly everybody is on a list.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata

from beholder.comparison.groups import Groups, People, people_of
from beholder.comparison.means import ShuffledGroups
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.metrics.association import descending, ndkl, skew_at_k
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.classes import Column, compared_groups, gap_rows, mean_rows
from beholder.studies.study import MeasureOptions

TOP = (1000, 100)  # the paper's k, and one for smaller sets; each only where it is at most half of what is ranked
SHUFFLED = 20  # shuffles behind an expected skew, which is a mean over hundreds of prompts
UNITS = {"classics.max_skew": "natural logarithm", "classics.ndkl": "nats"}


def retrieval_rows(matrix: ScoreMatrix, options: MeasureOptions) -> Iterator[Row]:
    """How often each group is on a list, and the paper's two numbers for every attribute."""
    whole = matrix.complete_rows()
    if not whole.images.height:
        return
    cosine, people = whole.quantity("cosine").cells, people_of(whole.images, options.person)
    order, n, columns = descending(cosine, options.rng()), len(cosine), list[Column]()
    k = next((k for k in TOP if 2 * k <= n), max(1, n // 2))
    for valence in whole.prompts["valence"].unique(maintain_order=True):
        mine = (whole.prompts["valence"] == valence).to_numpy()
        listed = np.bincount(order[mine, :k].ravel(), minlength=n) / mine.sum()
        places = (rankdata(cosine[:, mine], axis=0).mean(axis=1) - 1) / max(n - 1, 1)
        for metric, listing, values in (("retrieved", f"k={k}", listed), ("place", "whole ranking", places)):
            columns.append(Column(f"classics.{metric}", str(valence), listing, f"{mine.sum()} prompts", values))
    every = compared_groups(whole.images)
    yield from mean_rows(columns, every, people, options)
    yield from gap_rows(columns, every, people, options)
    for groups in every:
        known = np.flatnonzero(groups.codes >= 0)
        if len({*groups.codes[known]}) > 1:
            part = groups._replace(codes=groups.codes[known]), people.rows(known)
            yield from _skew_rows(cosine[known], *part, k, options)


def _skew_rows(cosine: Array, groups: Groups, people: People, k: int, options: MeasureOptions) -> Iterator[Row]:
    """MaxSkew and NDKL, means over the prompts, against the pool's shares and against even ones."""
    order, sizes = descending(cosine, options.rng()), np.bincount(groups.codes, minlength=len(groups.names))
    few = ShuffledGroups(groups, people, options.rng(), None, SHUFFLED)
    codes = np.concatenate([groups.codes[None], *([] if options.values_only else few.parts())])
    for name, desired in (("pool", sizes / len(cosine)), ("even", np.full(len(sizes), 1 / len(sizes)))):
        for metric, (own, *shuffled) in zip(UNITS, _skews(codes, order, desired, k), strict=True):
            row = Row(metric, float(own), len(cosine), UNITS[metric], groups.attribute, concept=name, template=f"k={k}")
            expected = float(np.mean(shuffled)) if shuffled else None
            yield row._replace(expected=expected, note=f"mean over {len(order)} prompts")


def _skews(codes: Codes, order: Codes, desired: Array, k: int) -> Array:
    """MaxSkew and NDKL of codes `[shuffles, images]`, means over the prompts: `[2, shuffles]`."""
    ranked = (codes[:, row] for row in order)
    both = [(skew_at_k(each, desired, k).max(axis=1), ndkl(each, desired)) for each in ranked]
    return np.asarray(np.mean(both, axis=0))
