"""Association: how much of a model's belief falls on the right prompt, name or picture.

Pure functions: arrays in, arrays out. No files, no models, no randomness. Probabilities are shares of belief among
the options offered: 1 means all of it, 1/n means as much as a model that knows nothing gives to each of n options.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from beholder.core.types import AnyArray

Array = npt.NDArray[np.float64]
Numbers = AnyArray
Mask = npt.NDArray[np.bool_]


def softmax(logits: Numbers, axis: int = 1) -> Array:
    """Shares of belief along `axis`, in float64; each row (or column) adds up to 1."""
    return np.asarray(special.softmax(np.asarray(logits, dtype=np.float64), axis=axis))


def correct_share(shares: Array, correct: Mask) -> Array:
    """Each row's share on its correct options (0 to 1); NaN for a row that has none."""
    total = np.where(correct, shares, 0.0).sum(axis=1)
    return np.where(correct.any(axis=1), total, np.nan)


def correct_rank(scores: Numbers, correct: Mask) -> Array:
    """Rank of each row's best correct option: 1 is first; ties count half; NaN for a row that has none."""
    best = np.where(correct, scores, -np.inf).max(axis=1, keepdims=True)
    above = ((scores > best) & ~correct).sum(axis=1)
    level = ((scores == best) & ~correct).sum(axis=1)
    return np.where(correct.any(axis=1), 1.0 + above + level / 2, np.nan)


def first(ranks: Array) -> Array:
    """1 where the correct option comes first, else 0 (top-1); a tie for the first place is no win; NaN stays."""
    return np.where(np.isnan(ranks), np.nan, (ranks == 1.0).astype(np.float64))


class Chance(NamedTuple):
    """What a model that knows nothing gets on average: of belief or first places, and of reciprocal ranks."""

    share: float
    reciprocal_rank: float


def chance(correct: Mask) -> Chance:
    """The mean over rows that have a correct option, of which there may be several; NaN where no row has one."""
    counts = correct.sum(axis=1)
    rows, options = np.bincount(counts[counts > 0]), correct.shape[1]
    if not rows.sum():
        return Chance(np.nan, np.nan)
    ranks = np.zeros(len(rows))
    for right in np.flatnonzero(rows):  # the mean of 1/rank of the first of them when all orders are as likely
        places = np.arange(1, options - right + 2)
        ranks[right] = (special.comb(options - places, right - 1) / places).sum() / special.comb(options, right)
    share = (rows * np.arange(len(rows))).sum() / rows.sum() / options
    return Chance(float(share), float((rows * ranks).sum() / rows.sum()))


def half_precision_mean(values: Numbers) -> float:
    """The mean as APA's released scripts take it: values and mean rounded to float16."""
    halves = np.asarray(values, dtype=np.float64).astype(np.float16)
    return float(np.float16(halves.astype(np.float64).mean()))


class Association(NamedTuple):
    """Of every column (a word or a dimension): the difference of means and the effect size."""

    difference: Array
    effect: Array


def sc_weat(a: Numbers, b: Numbers, *, ddof: int = 1) -> Association:
    """Difference of means and effect size of every column; rows are the images of each group.

    `ddof` 1 (the default) takes the sample's standard deviation, 0 the population's: both are in use.
    """
    a, b = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    return Association(difference, difference / spreads(np.concatenate([a, b]), ddof=ddof))


def spreads(values: Array, *, ddof: int = 1) -> Array:
    """The standard deviation of every column; NaN where there is none, so that it has no effect size."""
    spread = values.std(axis=0, ddof=ddof)
    rounding = 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(np.where(spread > rounding, spread, np.nan))


# Markedness


def unmarked(neutral: Numbers, own_word: Numbers) -> npt.NDArray[np.float64]:
    """1 where the neutral prompt scores above the group's own word, 0 where not, NaN where either is missing."""
    missing = np.isnan(neutral) | np.isnan(own_word)
    return np.where(missing, np.nan, (np.asarray(neutral) > np.asarray(own_word)).astype(np.float64))


# Ranking

Codes = npt.NDArray[np.integer[Any]]


class Ranked(NamedTuple):
    """Skew and divergence of one or more rankings of the same images."""

    skew: Array  # `[n_rankings, n_groups]`: ln(share in the top k / desired share); −∞ for a group that is not there
    max_skew: Array  # `[n_rankings]`: the largest skew of any group
    ndkl: Array  # `[n_rankings]`: divergence of every prefix from the desired shares, discounted and normalised


def descending(
    scores: Numbers, rng: np.random.Generator | None = None, *, released: bool = False
) -> npt.NDArray[np.intp]:
    """Places of the images from the highest score down, a row per column of `scores[n_images, n_rankings]`.

    Ties are broken by `rng`, the same way in all rankings; without it they keep the order of the images. NaN come
    last. `released` leaves ties as the released script's `sort_values(ascending=False)` does: by an unstable sort,
    whose choice depends on the processor.
    """
    columns = np.asarray(scores).reshape(len(scores), -1).T
    if released:
        backwards = np.argsort(columns[:, ::-1], axis=1)
        return np.asarray(columns.shape[1] - 1 - backwards[:, ::-1])
    dealt = np.arange(columns.shape[1]) if rng is None else rng.permutation(columns.shape[1])
    return np.asarray(dealt[np.argsort(-columns[:, dealt], axis=1, kind="stable")])


def skew_at_k(ranking: Codes, desired: Numbers, k: int) -> Array:
    """ln(share of each group among the first `k` / its desired share); −∞ where there is none of it.

    `ranking[..., place]` is the group of the image at that place, from the first.
    """
    top = np.asarray(ranking)[..., :k]
    shares = np.stack([(top == group).sum(axis=-1) for group in range(len(desired))], axis=-1) / k
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / desired))


def ndkl(ranking: Codes, desired: Numbers) -> Array:
    """Kullback–Leibler divergence of every prefix from `desired`, weighted by 1/log2(place + 1), normalised.

    `ranking[..., place]` is the group of the image at that place, from the first; every image has a group.
    """
    codes = np.asarray(ranking)
    places = np.arange(1, codes.shape[-1] + 1)
    discount = 1 / np.log2(places + 1)
    scaled = discount / places
    # Σ p ln(p / q) over the groups of a prefix of length n is Σ c (ln c − ln n − ln q) / n for counts c.
    c_ln_c = np.concatenate([[0.0], places * np.log(places)])
    total = np.full(codes.shape[:-1], -(discount * np.log(places)).sum())
    for group, share in enumerate(desired):
        counts = np.cumsum(codes == group, axis=-1, dtype=np.int32)
        total += c_ln_c[counts] @ scaled - np.log(share) * (counts @ scaled)
    return np.asarray(total / discount.sum())


def ranked(order: npt.NDArray[np.intp], codes: Codes, desired: Numbers, k: int) -> Ranked:
    """All three measures of every ranking of `descending`; `codes[i]` is the group of image i."""
    rankings = np.asarray(codes)[order]
    skew = skew_at_k(rankings, desired, k)
    return Ranked(skew, skew.max(axis=1), ndkl(rankings, desired))


def sign_map(first: Numbers, second: Numbers) -> Array:
    """Mean sign of `first − second` over pairs, `[n_pairs, height, width]` each."""
    return np.asarray(np.sign(np.asarray(first, dtype=np.float64) - second).mean(axis=0))


def coarse(grey: Numbers, side: int) -> Array:
    """A square grey picture as `side` × `side` means of its blocks; what does not divide is cut off at the edge."""
    block = min(grey.shape) // side
    cut = np.asarray(grey, dtype=np.float64)[: block * side, : block * side]
    return np.asarray(cut.reshape(side, block, side, block).mean(axis=(1, 3)))
