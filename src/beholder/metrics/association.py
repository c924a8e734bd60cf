"""Association: how much of a model's belief falls on the right prompt, name or picture; and how near pictures lie.

Pure functions: arrays in, numbers out. No files and no models. Probabilities are shares of belief among the options
offered: 1 means all of it, 1/n means as much as a model that knows nothing gives to each of n options.
"""

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from beholder.core.errors import DataError
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


# Of pictures with pictures, without words, as iEAT tests it (Steed and Caliskan 2021): are the pictures of X nearer to
# those of A than to those of B, more so than the pictures of Y are?

MOST_DRAWN = 10_000  # arrangements up to which all are taken; of more, so many (the pictures at hand among them)
TIE = 1e-9  # relative differences below this are rounding


class ImageAssociation(NamedTuple):
    """An effect size with its one-sided p."""

    effect: float
    """Mean over X less mean over Y of the nearness to A rather than B, in standard deviations of X and Y together."""
    p_value: float  # how often pictures dealt out anew into X and Y give as much; it holds for this test alone
    arrangements: int  # how many were looked at
    exact: bool  # whether these are all there are


def image_association(
    x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, *, seed: int = 0
) -> ImageAssociation:
    """The test on image vectors, one row each and of any length; cosines are taken here.

    >>> x, y = [[1.0, 0.1], [1.0, 0.2]], [[0.1, 1.0], [0.2, 1.0]]
    >>> image_association(x, y, a=[[1.0, 0.0]], b=[[0.0, 1.0]]).arrangements
    6
    """
    sets = {name: _unit(name, given) for name, given in zip("xyab", (x, y, a, b), strict=True)}
    if len(widths := {vectors.shape[1] for vectors in sets.values()}) > 1:
        raise DataError(f"x, y, a and b must be vectors of one model: they are {sorted(widths)} numbers long.")
    first, second = (nearness(sets[name] @ sets["a"].T, sets[name] @ sets["b"].T) for name in "xy")
    return association_of(first, second, seed=seed)


def nearness(to_a: Array, to_b: Array) -> Array:
    """Each picture's mean cosine with A less that with B, of `[n_pictures, n_attributes]`."""
    return np.asarray(to_a.mean(axis=1) - to_b.mean(axis=1))


def association_of(x: Array, y: Array, *, seed: int = 0) -> ImageAssociation:
    """The test on each picture's nearness to A rather than B."""
    both, size = np.concatenate([x, y]), len(x)
    spread = float(both.std(ddof=1)) if len(both) > 1 else 0.0
    alike = spread <= TIE * float(np.abs(both).max(initial=0.0))
    effect = float("nan") if alike else float(x.mean() - y.mean()) / spread
    least = float(x.sum()) - TIE * float(np.abs(both).sum())  # the sum over X says as much as the difference of means
    count = comb(len(both), size)
    if count <= MOST_DRAWN:
        dealt = np.array(list(combinations(range(len(both)), size)))
    else:
        dealt = np.random.default_rng(seed).random((MOST_DRAWN, len(both))).argsort(axis=1)[:, :size]
        dealt[0] = np.arange(size)
    p_value = float((both[dealt].sum(axis=1) >= least).mean())
    return ImageAssociation(effect, p_value, len(dealt), exact=count <= MOST_DRAWN)


def _unit(name: str, given: npt.ArrayLike) -> Array:
    """Vectors of length 1; an error that names the set."""
    try:
        vectors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        vectors = np.empty(0)
    if vectors.ndim != 2 or not vectors.size:
        raise DataError(f"{name} must be a table of numbers with a row for each picture.")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise DataError(f"{name}: row {bad[0]} is no direction: its numbers are all 0, NaN or infinite.")
    return np.asarray(vectors / lengths)
