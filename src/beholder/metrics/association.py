"""Association: how much of a model's belief falls on the right prompt, name or picture.

Pure functions: arrays in, arrays out. No files, no models, no randomness. Probabilities are shares of belief among
the options offered: 1 means all of it, 1/n means as much as a model that knows nothing gives to each of n options.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from beholder.core.types import AnyArray, Array, Codes, Integers, Mask


def softmax(logits: AnyArray, axis: int = 1) -> Array:
    """Shares of belief along `axis`, in float64; each row (or column) adds up to 1."""
    return np.asarray(special.softmax(np.asarray(logits, dtype=np.float64), axis=axis))


def correct_share(shares: Array, correct: Mask) -> Array:
    """Each row's share on its correct options (0 to 1); NaN for a row that has none."""
    return np.where(correct.any(axis=1), np.where(correct, shares, 0.0).sum(axis=1), np.nan)


def correct_rank(scores: AnyArray, correct: Mask) -> Array:
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


def half_precision_mean(values: AnyArray) -> float:
    """The mean as APA's released scripts take it: values and mean rounded to float16."""
    halves = np.asarray(values, dtype=np.float64).astype(np.float16)
    return float(np.float16(halves.astype(np.float64).mean()))


def spreads(values: Array, *, ddof: int = 1) -> Array:
    """The standard deviation of every column; NaN where there is none, so that it has no effect size."""
    spread = values.std(axis=0, ddof=ddof)
    rounding = 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(np.where(spread > rounding, spread, np.nan))


def unmarked(neutral: AnyArray, own_word: AnyArray) -> Array:
    """1 where the neutral prompt scores above the group's own word, 0 where not, NaN where either is missing."""
    missing = np.isnan(neutral) | np.isnan(own_word)
    return np.where(missing, np.nan, (np.asarray(neutral) > np.asarray(own_word)).astype(np.float64))


def descending(scores: AnyArray, rng: np.random.Generator | None = None, *, released: bool = False) -> Codes:
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


def skew_at_k(ranking: Integers, desired: AnyArray, k: int) -> Array:
    """ln(share of each group among the first `k` / its desired share); −∞ where there is none of it."""
    # `ranking[..., place]` is the group of the image at that place, from the first.
    top = np.asarray(ranking)[..., :k]
    shares = np.stack([(top == group).sum(axis=-1) for group in range(len(desired))], axis=-1) / k
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / desired))


def ndkl(ranking: Integers, desired: AnyArray) -> Array:
    """Kullback–Leibler divergence of every prefix from `desired`, weighted by 1/log2(place + 1), normalised."""
    # `ranking[..., place]` is the group of the image at that place, from the first; every image has a group.
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


def sign_map(first: AnyArray, second: AnyArray) -> Array:
    """Mean sign of `first − second` over pairs, `[n_pairs, height, width]` each."""
    return np.asarray(np.sign(np.asarray(first, dtype=np.float64) - second).mean(axis=0))


def coarse(grey: AnyArray, side: int) -> Array:
    """A square grey picture as `side` × `side` means of its blocks; what does not divide is cut off at the edge."""
    block = min(grey.shape) // side
    cut = np.asarray(grey, dtype=np.float64)[: block * side, : block * side]
    return np.asarray(cut.reshape(side, block, side, block).mean(axis=(1, 3)))
