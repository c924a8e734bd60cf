"""Means of groups: contrasts and slopes of many columns at once, within strata, each person counted once.

A unit is a person in one group: the mean over the pictures. What strata explain is taken off; groups' means come from
least squares (with cells, that weighs them as Mantel and Haenszel do); errors are Welch's: each group has its own
spread. A shuffle moves the weights of the units within their blocks, which is the same as moving the labels.
Someone who is shown in several groups is a block of their own: compared with themselves.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from beholder.comparison import family
from beholder.comparison.family import FEWEST, SURE, Judged, Part
from beholder.comparison.groups import Groups, People, Strata, no_strata
from beholder.comparison.shuffles import SHUFFLES, Shuffles
from beholder.core.types import Array, Codes, Floating, Mask

Powers = tuple[Array, Array, Array]  # sums of values, of their squares and of their cubes
HELD = 1 << 23  # numbers worked on at once
NOTHING = 1e-12  # relative to the largest score: differences below this are rounding errors
MOST_SKEW = 3.0  # more than so few people can tell
OPEN = 1e6  # stands for a ratio's upper bound where the second mean may be 0
SMALL = 10  # people below whom a group's own spread is not trusted to be smaller than that of all groups together


class Units(NamedTuple):
    """One row for every person and group that occur together."""

    values: Array  # `[n_units, n_columns]`; NaN where the person has no score
    groups: Codes
    blocks: Codes  # units that may change groups with each other have one number
    design: Array  # what is taken off besides the blocks' own levels
    levels: Codes | None
    """Whose mean is taken off: cells of the strata, or people shown in several groups; None for all as one."""

    def rows(self, keep: Mask) -> "Units":
        levels = None if self.levels is None else np.unique(self.levels[keep], return_inverse=True)[1]
        return Units(self.values[keep], self.groups[keep], self.blocks[keep], self.design[keep], levels)


class Membership(NamedTuple):
    """Which pictures are one unit, and which units may change groups with each other."""

    inside: Codes  # the pictures that have a group
    unit: Codes  # the unit of each of them
    keys: Codes  # person, group and cell of every unit: `[3, n_units]`
    blocks: Codes
    several: Mask  # units of people who are shown in several groups: each such person is a block


def membership(groups: Groups, people: People, cells: Codes) -> Membership:
    """Pictures of one person in one group and one cell are one unit."""
    inside = np.flatnonzero(groups.codes >= 0)
    triples = np.stack([people.codes[inside], groups.codes[inside], cells[inside]])
    keys, unit = np.unique(triples, axis=1, return_inverse=True)
    shown_in = np.bincount(np.unique(keys[:2], axis=1)[0])  # in how many groups each person is shown
    several = shown_in[keys[0]] > 1
    blocks = np.where(several, keys[2].max(initial=0) + 1 + keys[0], keys[2])
    return Membership(inside, unit.ravel(), keys, blocks, several)


def units_of(values: Array, groups: Groups, people: People, strata: Strata) -> Units:
    """Pictures of one person in one group (and one stratum) as one unit."""
    inside, member, keys, blocks, several = membership(groups, people, strata.cells)
    many = keys.shape[1]
    levels = None if not several.any() and not keys[2].any() else np.unique(blocks, return_inverse=True)[1]
    if many == len(inside):
        order = np.argsort(member)
        return Units(values[inside][order], keys[1], blocks, strata.design[inside][order], levels)
    gather = sparse.csr_array((np.ones(len(member)), (member, np.arange(len(member)))), shape=(many, len(member)))
    there = ~np.isnan(values[inside])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (gather @ np.where(there, values[inside], 0.0)) / (gather @ there.astype(np.float64))
        design = (gather @ strata.design[inside]) / gather.sum(axis=1)[:, None]
    return Units(np.asarray(means), keys[1], blocks, np.asarray(design), levels)


class ShuffledGroups:
    """The groups' codes of all images as shuffles of people make them: for statistics that no mean tells."""

    # People change groups within cells of the strata, also where these are thin: a rank has no residual.

    def __init__(
        self, groups: Groups, people: People, rng: np.random.Generator, strata: Strata | None, shuffles: int = SHUFFLES
    ) -> None:
        crossed = None if strata is None else strata.crossed
        cells = np.zeros(len(groups.codes), dtype=np.intp) if crossed is None else crossed.codes
        self._groups, self._member = groups, membership(groups, people, cells)
        self.moves = Shuffles(self._member.keys[1], self._member.blocks, rng, shuffles)

    def parts(self) -> Iterator[Codes]:
        """Codes, `[some shuffles, n_images]`, part after part."""
        inside, unit, keys, *_ = self._member
        for part in self.moves.parts(HELD // max(1, len(self._groups.codes))):
            codes = np.full((len(part), len(self._groups.codes)), -1, dtype=np.intp)
            codes[:, inside] = keys[1][part][:, unit]
            yield codes

    def part(self, statistic: Callable[[Codes], Array], *, people: int) -> Part:
        """Numbers `[some shuffles, …]` of codes `[some shuffles, n_images]`, judged by what shuffles make of them."""
        value = statistic(self._groups.codes[None])[0]
        return self.moves.judged(value, [statistic(codes) for codes in self.parts()], people=people)


class _Fit:
    """Least squares with what strata explain taken off: weights that turn residuals into groups' means."""

    def __init__(self, units: Units, groups: int) -> None:
        self.units, n = units, len(units.groups)
        member = (units.groups[:, None] == np.arange(groups)).astype(np.float64)
        taken = self._without_levels(np.column_stack([member, units.design]))
        vectors, lengths, _ = np.linalg.svd(taken[:, groups:], full_matrices=False)
        self._basis = basis = vectors[:, lengths > 1e-9 * lengths.max(initial=1.0)]
        own = taken[:, :groups] - basis @ (basis.T @ taken[:, :groups])
        self.member, self.size = member, member.sum(axis=0)
        self.spread = np.asarray(np.linalg.pinv(own.T @ own, rcond=1e-9, hermitian=True))
        """Turns groups' sums of residuals into their means, where nothing is taken off additively."""
        self.weights = self.spread @ own.T
        level = np.full(n, 1 / n) if units.levels is None else 1 / np.bincount(units.levels)[units.levels]
        leverage = level + (basis**2).sum(axis=1) - 1 / n
        self._stretch = 1 / np.sqrt(np.clip(1 - leverage, 0.05, 1.0))
        levels = 1 if units.levels is None else int(units.levels.max(initial=0)) + 1
        self.free = max(n - levels - basis.shape[1] - groups + 1, 1)

    def _without_levels(self, columns: Array) -> Array:
        if self.units.levels is None:
            return np.asarray(columns - columns.mean(axis=0))
        counts = np.bincount(self.units.levels).astype(np.float64)
        gather = sparse.csr_array((np.ones(len(columns)), (self.units.levels, np.arange(len(columns)))))
        return np.asarray(columns - ((gather @ columns) / counts[:, None])[self.units.levels])

    def residuals(self, values: Array) -> Array:
        """What strata leave of the values; rounding errors become 0."""
        left = self._without_levels(values)
        left = left - self._basis @ (self._basis.T @ left) if self._basis.shape[1] else left
        return np.asarray(np.where(np.abs(left) <= NOTHING * np.abs(values).max(axis=0, initial=0.0), 0.0, left))

    def stretched(self, left: Array) -> Array:
        """Residuals made as wide as the errors are, of which strata took a part."""
        return np.asarray(left * self._stretch[:, None])


class _Estimates(NamedTuple):
    """`[…, n_contrasts, n_columns]` each."""

    value: Array
    error: Array
    freedom: Array
    skew: Array | float = 0.0


def _estimates(
    means: Array, powers: Powers, size: Array, contrasts: Array, shares: tuple[Array, Array], free: float
) -> _Estimates:
    """From groups' means, and sums of stretched residuals, their squares and cubes: `[…, n_groups, n_columns]`."""
    # `shares` are what each group's spread, and its skewness, weigh in the error of each contrast.
    n, (sums, squares, cubes), (spreads, skews) = size[:, None], powers, shares
    centre = sums / n
    third = cubes - centre * (3 * squares - 2 * n * centre * centre)
    third = third * n / np.maximum((n - 1) * (n - 2), 1)
    variance = np.maximum(squares - sums**2 / n, 0.0)
    variance = np.where(variance <= NOTHING * np.maximum(squares, 1e-300), 0.0, variance) / np.maximum(n - 1, 1)
    pooled = ((n - 1) * variance).sum(axis=-2, keepdims=True) / np.maximum((n - 1).sum(), 1)
    # A group without spread has that of all; a small one at least that: few skewed scores look narrower than they are.
    variance = np.where((variance > 0) & (n >= SMALL), variance, np.maximum(variance, pooled))
    value = np.matmul(contrasts, means)
    squared = np.matmul(spreads, variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(squared > 0, np.matmul(skews, third) / (squared * np.sqrt(squared)), 0.0)
        parts = np.matmul(spreads**2 / np.maximum(size - 1, 1), variance**2)
        freedom = np.minimum(np.where(parts > 0, squared**2 / parts, np.inf), free)
    scale = np.abs(means).max(axis=-2, keepdims=True)
    value = np.where(np.abs(value) <= NOTHING * scale, 0.0, value)
    return _Estimates(value, np.sqrt(squared), np.maximum(freedom, 1.0), np.clip(skew, -MOST_SKEW, MOST_SKEW))


def compare_groups(
    values: Floating,
    groups: Groups,
    people: People,
    rng: np.random.Generator,
    *,
    strata: Strata | None = None,
    contrasts: Array | None = None,
    departures: bool = False,
    shuffles: int = SHUFFLES,
    bounds: tuple[float, float] | None = None,
) -> Part:
    """Contrasts of groups in every column of `values[n_images, n_columns]`: a part of a family, `[contrasts, columns]`.

    Contrasts are rows of weights that add up to 0; without them every two groups are compared. With `departures` the
    numbers are each group's distance from what the strata add up to. `bounds` are the ends of the scores' scale.
    """
    values = np.asarray(values, dtype=np.float64).reshape(len(groups.codes), -1)
    strata = no_strata(len(values)) if strata is None else strata
    contrasts = (np.eye(len(groups.names)) if departures else groups.pair_weights()) if contrasts is None else contrasts
    units = units_of(values, groups, people, strata)

    def compared(there: Mask, columns: Mask) -> Part:
        return _compared(units.rows(there), contrasts, rng, shuffles, departures, bounds, columns)

    return _by_pattern(units.values, len(contrasts), compared)


def _by_pattern(values: Array, rows: int, compared: Callable[[Mask, Mask], Part]) -> Part:
    """Columns that lack the same scores are compared together, over the rows that have one: `[rows, n_columns]`."""
    there, pattern_of = ~np.isnan(values), np.zeros(values.shape[1], dtype=np.intp)
    patterns = there[:, :1] if values.shape[1] else np.ones((len(values), 1), dtype=bool)
    if not there.all():
        patterns, pattern_of = np.unique(there, axis=1, return_inverse=True)
    columns = [pattern_of.ravel() == number for number in range(patterns.shape[1])]
    parts = [compared(each, mine) for each, mine in zip(patterns.T, columns, strict=True)]
    if len(parts) == 1:
        return parts[0]
    shape = (rows, values.shape[1])
    joined = ("value", "error", "freedom", "deviate", "scale", "people", "least", "skew")
    whole = {name: np.zeros(shape, dtype=int if name == "people" else np.float64) for name in joined}
    sides = np.full((2, *shape), np.nan)
    for part, mine in zip(parts, columns, strict=True):
        for name, numbers in whole.items():
            numbers[:, mine] = getattr(part, name)
        sides[:, :, mine] = np.nan if part.sides is None else part.sides
    known = [part for part in parts if len(part.largest)]
    count = min((len(part.largest) for part in known), default=0)
    largest = np.max([part.largest[:count] for part in known], axis=0, initial=0.0) if known else np.zeros(0)
    fewest = min((part.arrangements for part in known), default=0.0)
    both = None if np.isnan(sides).all() else (sides[0], sides[1])
    return Part(largest=largest, exact=False, arrangements=fewest, sides=both, **whole)


def each_stratum(
    values: Floating,
    groups: Groups,
    people: People,
    strata: Strata,
    rng: np.random.Generator,
    *,
    shuffles: int = SHUFFLES,
    bounds: tuple[float, float] | None = None,
    against_rest: bool = False,
) -> dict[str, Part]:
    """Every two groups within each stratum in which both have five people: opposite effects do not cancel there."""
    # With `against_rest` each group is compared with all others together, which takes less time where groups are many.
    if strata.crossed is None:
        return {}
    parts = {}
    for place, name in enumerate(strata.crossed.names):
        inside = groups._replace(codes=np.where(strata.crossed.mask(place), groups.codes, -1))
        if min(inside.sizes(people), default=0) >= FEWEST:
            weights = inside.rest_weights(people) if against_rest and len(inside.names) > 2 else None
            part = compare_groups(values, inside, people, rng, contrasts=weights, shuffles=shuffles, bounds=bounds)
            parts[name] = part
    return parts if len(strata.crossed.names) > 1 else {}


def _compared(
    units: Units,
    contrasts: Array,
    rng: np.random.Generator,
    shuffles: int,
    departures: bool,
    bounds: tuple[float, float] | None,
    columns: Mask,
) -> Part:
    values, count = units.values[:, columns], contrasts.shape[1]
    sizes = np.bincount(units.groups, minlength=count)
    shape = (len(contrasts), values.shape[1])
    involved = np.where(contrasts != 0, sizes, np.iinfo(int).max).min(axis=1, initial=np.iinfo(int).max)
    people = np.broadcast_to(involved[:, None], shape)
    if not sizes.size or sizes.min() < 2:
        return family.not_judgeable(people)
    fit = _Fit(units, count)
    # A departure is the mean of a group's residuals. Strata are taken off its weights too: each shuffle is fitted anew.
    weights = fit.residuals(fit.member / fit.size).T if departures else fit.weights
    mixed = contrasts @ weights
    shares = mixed**2 @ fit.member, mixed**3 @ fit.member
    left = fit.residuals(values)
    by_sums = not departures and not units.design.shape[1]
    moves = Shuffles(units.groups, units.blocks, rng, shuffles)
    wide, own = fit.stretched(left), None if by_sums else weights
    # Residuals of a fit are narrower than errors: moved ones are stretched, or shuffles would promise too little.
    move = _Moves(fit.member, own, wide if units.design.shape[1] else left, wide)

    def measured(moved: _Moves, permutations: Codes) -> _Estimates:
        means, powers = moved.sums(permutations)
        means = np.matmul(fit.spread, means) if by_sums else means
        return _estimates(means, powers, fit.size, contrasts, shares, fit.free)

    found = measured(_Moves(fit.member, own, left, wide), np.arange(len(values))[None])
    null, start = np.empty((moves.count, *shape), dtype=np.float32), 0
    for part in moves.parts(HELD // max(1, move.held + 6 * count * values.shape[1] + 8 * contrasts.size)):
        null[start : (start := start + len(part))] = family.deviates(*measured(move, part))
    value, error, freedom, skew = (np.asarray(part)[0] for part in found)
    least = _least_margins(values, units, contrasts, bounds)
    deviate = family.deviates(*found)[0]
    scale, largest = family.largest_of(null, deviate, exact=moves.exact)
    effects = weights @ left
    means = values.mean(axis=0) + effects - fit.size / fit.size.sum() @ effects
    sides = np.maximum(contrasts, 0) @ means, np.maximum(-contrasts, 0) @ means
    drawn = moves.exact, moves.arrangements, people, least, skew, None if departures else sides
    return Part(value, error, freedom, deviate, scale, largest, *drawn)


class _Moves:
    """Sums over groups after permutations: the groups are moved, or the values where there are fewer columns."""

    def __init__(self, member: Array, weights: Array | None, left: Array, wide: Array) -> None:
        self._member, self._weights, self._left, self._wide = member, weights, left, wide
        alike = weights is not None or np.array_equal(left, wide)
        self._stack = np.concatenate([wide, wide**2, wide**3, *([] if alike else [left])], axis=1)
        self._few = 2 * left.shape[1] <= member.shape[1]
        self.held = len(left) * (4 * left.shape[1] if self._few else member.shape[1] * (1 if weights is None else 2))
        """Numbers that one permutation takes."""

    def sums(self, permutations: Codes) -> tuple[Array, Powers]:
        """`[permutations, n_groups, n_columns]` each: sums of what is left (weighted, if there are weights), powers."""
        return self._values_moved(permutations) if self._few else self._groups_moved(permutations)

    def _groups_moved(self, permutations: Codes) -> tuple[Array, Powers]:
        shape = (len(permutations), self._member.shape[1], -1)
        made = (_moved(self._member.T, permutations) @ self._stack).reshape(shape)
        starts = range(0, self._stack.shape[1], max(self._left.shape[1], 1))
        sums, squares, cubes, *rest = (made[..., start : start + self._left.shape[1]] for start in starts)
        if self._weights is None:
            return rest[0] if rest else sums, (sums, squares, cubes)
        return (_moved(self._weights, permutations) @ self._left).reshape(shape), (sums, squares, cubes)

    def _values_moved(self, permutations: Codes) -> tuple[Array, Powers]:
        places = np.empty_like(permutations)
        np.put_along_axis(places, permutations, np.arange(permutations.shape[1])[None], axis=1)
        left, wide = (part.T[:, places].swapaxes(0, 1) for part in (self._left, self._wide))
        weights = self._member if self._weights is None else self._weights.T
        powers = wide, wide * wide, wide * wide * wide
        sums, squares, cubes = ((part @ self._member).swapaxes(1, 2) for part in powers)
        return (left @ weights).swapaxes(1, 2), (sums, squares, cubes)


def _moved(weights: Array, permutations: Codes) -> Array:
    """Weights `[n_groups, n_units]` after each permutation: `[permutations × n_groups, n_units]`."""
    moved = np.empty((len(permutations), *weights.shape))
    for group, own in enumerate(weights):
        moved[:, group] = own[permutations]
    return moved.reshape(-1, weights.shape[1])


def _least_margins(values: Array, units: Units, contrasts: Array, bounds: tuple[float, float] | None) -> Array:
    """The exact bound of a contrast in which a group has no spread: all of n people alike leave room for few others."""
    # If a share q of people differed, all n of a group would be alike with probability (1 − q)ⁿ.
    count = contrasts.shape[1]
    squares = np.zeros((count, values.shape[1]))
    low, high = values.min(axis=0), values.max(axis=0)
    if bounds is not None and np.ptp(values) == 0:
        low, high = np.full_like(low, bounds[0]), np.full_like(high, bounds[1])
    for group in range(count):
        mine = values[units.groups == group]
        still = np.ptp(mine, axis=0) <= NOTHING * np.maximum(np.abs(mine).max(axis=0), 1e-300)
        room = np.maximum(mine.mean(axis=0) - low, high - mine.mean(axis=0))
        squares[group] = np.where(still, (room * (1 - SURE ** (1 / len(mine)))) ** 2, 0.0)
    return np.asarray(np.sqrt(contrasts**2 @ squares))


class Levels(NamedTuple):
    """Two groups' means within strata, `[n_columns]` each, with what their interval needs."""

    first: Array
    second: Array
    errors: tuple[Array, Array]
    least: tuple[Array, Array]  # the least margin of each, where the group has no spread


def levels_of(
    values: Floating,
    groups: Groups,
    people: People,
    strata: Strata | None = None,
    bounds: tuple[float, float] | None = None,
) -> Levels:
    """The means of two groups, each stratum with the weight that Mantel and Haenszel give it; complete columns only."""
    values = np.asarray(values, dtype=np.float64).reshape(len(groups.codes), -1)
    units = units_of(values, groups, people, no_strata(len(values)) if strata is None else strata)
    units = units.rows(np.asarray(~np.isnan(units.values).any(axis=1)))
    fit = _Fit(units, 2)
    contrast = fit.weights[0] - fit.weights[1]
    wide = fit.stretched(fit.residuals(units.values))
    squares = [wide[units.groups == group].var(axis=0, ddof=1) for group in (0, 1)]
    pooled = ((fit.size - 1)[:, None] * np.array(squares)).sum(axis=0) / (fit.size - 1).sum()
    means, errors, least = [], [], []
    low, high = units.values.min(axis=0), units.values.max(axis=0)
    if bounds is not None:  # where nobody differs, only the ends of the scale tell how far people could
        low, high = np.where(low < high, low, bounds[0]), np.where(low < high, high, bounds[1])
    for group, sign in ((0, 1.0), (1, -1.0)):
        mine = units.groups == group
        weights = np.maximum(sign * contrast[mine], 0.0) if not units.design.shape[1] else np.ones(mine.sum())
        weights = weights / weights.sum()
        mean, own = weights @ units.values[mine], squares[group]
        if units.design.shape[1]:  # labels taken off additively: the mean of all, and the group's distance from it
            mean = units.values.mean(axis=0) + (fit.weights @ fit.residuals(units.values))[group]
        still = own <= (NOTHING * np.maximum(np.abs(units.values).max(axis=0), 1e-150)) ** 2
        room = np.maximum(mean - low, high - mean)
        means.append(mean)
        trusted = own if mine.sum() >= SMALL else np.maximum(own, pooled)
        errors.append(np.sqrt((weights**2).sum() * np.where(still, pooled, trusted)))
        least.append(np.where(still, room * (1 - SURE ** (1 / mine.sum())), 0.0))
    return Levels(means[0], means[1], (errors[0], errors[1]), (least[0], least[1]))


def ratio_bounds(levels: Levels, judged: Judged, part: Part, row: int = 0) -> tuple[Array, Array]:
    """Bounds of the first mean over the second (Fieller), which leave out 1 where the test does, and nowhere else."""
    # The test asks for which r the first less r times the second could be 0. Open-ended where the second may be 0.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.where(part.error[row] > 0, judged.margin[row] / part.error[row], 0.0)
        margins = [np.maximum(reach * error, least) for error, least in zip(levels.errors, levels.least, strict=True)]
        top, bottom = levels.first, levels.second
        square, free = bottom**2 - margins[1] ** 2, top**2 - margins[0] ** 2
        root = np.sqrt(np.maximum((top * bottom) ** 2 - square * free, 0.0))
        low = np.where(square > 0, (top * bottom - root) / square, free / np.maximum(top * bottom + root, 1e-300))
        high = np.where(square > 0, (top * bottom + root) / square, OPEN)
    low, high = np.where(free > 0, np.maximum(low, 0.0), 0.0), np.minimum(high, OPEN)
    found, above = judged.found[row], top > bottom
    low = np.where(found & above, np.maximum(low, 1.000001), np.where(found, low, np.minimum(low, 1.0)))
    high = np.where(found & ~above, np.minimum(high, 0.999999), np.where(found, high, np.maximum(high, 1.0)))
    unknown = np.isnan(judged.margin[row])
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def compare_slopes(
    values: Floating,
    numbers: Array,
    people: People,
    rng: np.random.Generator,
    *,
    strata: Strata | None = None,
    shuffles: int = SHUFFLES,
) -> Part:
    """How much each column rises with one more of `numbers`: a part `[1, columns]`. NaN on either side is left out."""
    # Errors hold whatever the spread (White's); people are moved, with the mean of their numbers and of their scores,
    # within cells of the strata; what strata explain is taken off both.
    values = np.asarray(values, dtype=np.float64).reshape(len(numbers), -1)
    strata = no_strata(len(values)) if strata is None else strata

    def compared(there: Mask, columns: Mask) -> Part:
        keep = there & ~np.isnan(numbers)
        return _sloped(values[keep][:, columns], numbers[keep], people.rows(keep), strata.rows(keep), rng, shuffles)

    return _by_pattern(values, 1, compared)


def _sloped(
    values: Array, numbers: Array, people: People, strata: Strata, rng: np.random.Generator, shuffles: int
) -> Part:
    shape = (1, values.shape[1])
    counts = np.bincount(people.codes).astype(np.float64)
    n, who = len(counts), np.full(shape, len(counts))
    if n < 3 or not len(numbers) or np.ptp(numbers) == 0:
        return family.not_judgeable(who)
    gather = sparse.csr_array((np.ones(len(numbers)), (people.codes, np.arange(len(numbers)))))
    means = np.asarray(gather @ np.column_stack([values, numbers, strata.design])) / counts[:, None]
    cells = np.zeros(n, dtype=np.intp)
    cells[people.codes] = strata.cells
    known = np.column_stack([cells[:, None] == np.unique(cells), means[:, shape[1] + 1 :]]).astype(np.float64)
    taken = known @ np.linalg.lstsq(known, means[:, : shape[1] + 1], rcond=None)[0]
    left, across = np.split(means[:, : shape[1] + 1] - taken, [shape[1]], axis=1)
    across = across[:, 0]
    left = np.where(np.abs(left) <= NOTHING * np.abs(values).max(axis=0, initial=0.0), 0.0, left)
    if (np.abs(across) <= 1e-9 * np.abs(numbers).max()).all():
        return family.not_judgeable(who)
    weight = across / (across**2).sum()
    free = np.full(shape, float(max(n - 1 - np.linalg.matrix_rank(known), 1)))

    def measured(weights: Array) -> _Estimates:
        slope = weights @ left
        curved = weights**2 * (weights * (across**2).sum())
        squared = (weights**2) @ left**2 - 2 * slope * (curved @ left)
        squared = squared + slope**2 * ((weights**2 * (weights * (across**2).sum()) ** 2).sum(axis=1))[:, None]
        error = np.sqrt(np.maximum(squared, 0.0) * n / free)
        return _Estimates(slope[:, None], error[:, None], np.broadcast_to(free, (len(slope), *shape)))

    ranks = np.unique((across / np.abs(across).max()).round(9), return_inverse=True)[1]
    moves = Shuffles(ranks, cells, rng, shuffles)
    found = measured(weight[None])
    null = np.concatenate([family.deviates(*measured(weight[part])) for part in moves.parts()]).astype(np.float32)
    deviate = family.deviates(*found)[0]
    scale, largest = family.largest_of(null, deviate, exact=moves.exact)
    value, error, freedom = (part[0] for part in found[:3])
    drawn = moves.exact, moves.arrangements, who, np.zeros(shape)
    return Part(value, error, freedom, deviate, scale, largest, *drawn)
