"""Berg's retrieval: whose pictures come first when words of character are asked for; MaxSkew and NDKL.

The shares that a ranking is held against are those of all pictures that are ranked (Berg's demographic parity), and
even ones (equal opportunity). Neither number is 0 without preference: `expected` is what shuffled people give. What is
judged is how many of the lists of the first k a picture is on, group by group: that is 0 apart without preference.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from beholder.comparison.groups import Groups, People, groups_of, people_of
from beholder.comparison.means import ShuffledGroups
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.metrics.association import descending, ndkl, skew_at_k
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.classes import COMPARED, Column, gap_rows, mean_rows
from beholder.studies.study import MeasureOptions

RETRIEVED = "classics.retrieved"
TOP = (1000, 100)  # the paper's k, and one for smaller sets; each only where it is at most half of what is ranked
SHUFFLED = 20  # shuffles behind an expected skew, which is a mean over hundreds of prompts
POOL, EVEN = "pool", "even"
MOST_SKEW, DIVERGENCE = "classics.max_skew", "classics.ndkl"
UNITS = {MOST_SKEW: "natural logarithm", DIVERGENCE: "nats"}
TOGETHER = "interval and p hold for all words and attributes at once"


def retrieval_rows(matrix: ScoreMatrix, options: MeasureOptions, *, words: bool = False) -> Iterator[Row]:
    """How often each group is on a list, and the paper's two numbers for every attribute."""
    whole = matrix.complete_rows()
    if not whole.images.height:
        return
    cosine, people = whole.quantity("cosine").cells, people_of(whole.images, options.person)
    every = groups_of(whole.images, [name for name in COMPARED if name in whole.images.columns])
    order, n = descending(cosine, options.rng()), len(cosine)
    k = next((k for k in TOP if 2 * k <= n), max(1, n // 4))
    columns = []
    for valence in whole.prompts["valence"].unique(maintain_order=True):
        own = order[(whole.prompts["valence"] == valence).to_numpy(), :k]
        listed = np.bincount(own.ravel(), minlength=n) / len(own)
        columns.append(Column(RETRIEVED, str(valence), f"k={k}", f"{len(own)} prompts", listed))
    yield from mean_rows(columns, every, people, options)
    yield from gap_rows(columns, every, people, options, TOGETHER)
    concepts = whole.prompts["concept"].to_list()
    for groups in every:
        known = np.flatnonzero(groups.codes >= 0)
        if len({*groups.codes[known]}) > 1:
            yield from _skew_rows(
                cosine[known],
                groups._replace(codes=groups.codes[known]),
                people.rows(known),
                k,
                concepts if words else [],
                options,
            )


def _skew_rows(
    cosine: Array, groups: Groups, people: People, k: int, concepts: Sequence[str], options: MeasureOptions
) -> Iterator[Row]:
    """MaxSkew and NDKL against the pool's shares and against even ones; word by word only if they may be shown."""
    order, n = descending(cosine, options.rng()), len(cosine)
    sizes = np.bincount(groups.codes, minlength=len(groups.names))
    desired = {POOL: sizes / n, EVEN: np.full(len(sizes), 1 / len(sizes))}
    few = min(SHUFFLED, options.permutations) if not options.values_only else 0
    shuffled = ShuffledGroups(groups, people, options.rng(), None, few).parts() if few else ()
    null = [[_skews(codes, order, shares, k).mean(axis=2) for shares in desired.values()] for codes in shuffled]
    for place, (name, shares) in enumerate(desired.items()):
        found = _skews(groups.codes[None], order, shares, k)[:, 0]
        expected = np.concatenate([each[place] for each in null], axis=1).mean(axis=1) if null else [None, None]
        for metric, own, chance in zip(UNITS, found, expected, strict=True):
            row = Row(metric, float(own.mean()), n, UNITS[metric], groups.attribute, template=f"k={k}", concept=name)
            yield row._replace(expected=None if chance is None else float(chance), note=f"mean over {len(own)} prompts")
            for word in dict.fromkeys(concepts):
                mine = own[np.array([each == word for each in concepts])]
                yield row._replace(concept=f"{name}: {word}", value=float(mine.mean()))


def _skews(codes: Codes, order: Codes, desired: Array, k: int) -> Array:
    """MaxSkew and NDKL of codes `[shuffles, images]` for every prompt: `[2, shuffles, prompts]`."""
    ranked = (codes[:, row] for row in order)
    both = [(skew_at_k(each, desired, k).max(axis=1), ndkl(each, desired)) for each in ranked]
    return np.moveaxis(np.array(both), 0, 2)
