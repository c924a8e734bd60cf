"""Families: numbers that a reader compares with each other, judged together.

Every number has a deviate: its distance from what no effect gives, in its own standard errors. Its own null says how
large the deviate is by chance; it is taken as at least as heavy-tailed as a normal number, so that a permutation of
unequal spreads does not promise more than Welch's test. Deviates are put on the scale of their own null, so that a few
tiny groups do not raise the bar for all. The largest of the family in each shuffle gives p and the simultaneous bounds.
A verdict is one of five things that can be said about a difference; one rule decides between them.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from beholder.core.results import Row
from beholder.core.types import Array, Floating, Ints, Mask

if TYPE_CHECKING:
    from beholder.comparison.groups import Strata

VERDICTS = ("difference found", "none found", "too little data", "fact", "not measured")
DIFFERENCE, NONE_FOUND, TOO_LITTLE, FACT, NOT_MEASURED = VERDICTS
SIGNS = dict(zip(VERDICTS, "●○△◆–", strict=True))  # a shape for every verdict: no colour is needed
NAMES = {verdict: verdict.capitalize() for verdict in VERDICTS} | {FACT: "Fact, not a bias"}  # as readers see them
ALPHA = 0.05  # a p-value for the whole family up to this is a difference found
FEWEST = 5  # people below whom nothing is said of a group
FEWEST_ARRANGEMENTS = 40  # with fewer arrangements of the labels no p-value is small enough to mean anything
TAILS = (0.9, 0.95, 0.99)  # where a null is compared with a normal one
TIE = 1e-5  # relative differences below this are rounding: such shuffles count as equal
NORMAL = 1.959963984540054
MODERATE = 4.0  # errors up to which a skewed t is bent; beyond, the expansion fails and would hide strong effects
HELD = 1 << 21  # deviates sorted at once
ENDLESS = 1e9  # the deviate of a difference without any spread
SURE = 0.025  # each side of the exact bound of a group without spread, before it is made as safe as its family


def verdict_of(p_value: float | None, people: int, arrangements: float = math.inf) -> str:
    """What a test says; `people` are those of the smallest group."""
    if people < FEWEST or arrangements < FEWEST_ARRANGEMENTS or p_value is None or math.isnan(p_value):
        return TOO_LITTLE
    return DIFFERENCE if p_value <= ALPHA else NONE_FOUND


def stands_out(p_value: float, families: int) -> bool:
    """Whether a difference that was found in its own family is one among so many families too (Bonferroni)."""
    return p_value * families <= ALPHA


class Part(NamedTuple):
    """Numbers of one comparison, any shape, and what shuffles make of the largest of them."""

    value: Floating
    error: Floating
    freedom: Floating  # degrees of freedom of the error; infinite for a number whose error comes from its own null
    deviate: Floating  # |value| in errors, on the normal scale
    scale: Floating  # how much wider than normal its own null is, at least 1
    largest: Floating  # the largest deviate over scale, of all numbers, in every shuffle: `[n_shuffles]`
    exact: bool
    arrangements: float
    people: Ints  # of each number, the people of its smallest group
    least: Floating  # the least margin, where a group has no spread: exact bounds of a bounded score; else 0
    skew: Floating | float = 0.0  # skewness of the number's error: its interval reaches farther to one side (Hall 1992)
    sides: tuple[Floating, Floating] | None = None
    """The values whose difference each number is, within the strata: of the first group, and of the second."""

    @property
    def judgeable(self) -> Mask:
        """Which numbers can be judged at all."""
        enough = (self.people >= FEWEST) & (self.arrangements >= FEWEST_ARRANGEMENTS)
        return np.asarray(enough & np.isfinite(self.value) & np.isfinite(self.deviate))


def not_judgeable(people: Ints) -> Part:
    """Numbers of which nothing can be said: groups are too small."""
    absent, none = np.full(people.shape, np.nan), np.zeros(people.shape)
    return Part(absent, absent, absent, absent, none + 1, np.zeros(0), False, 0.0, people, none)


class Judged(NamedTuple):
    """A part's numbers with p-values and bounds that hold for the whole family at once; NaN where there are none."""

    value: Floating
    low: Floating
    high: Floating
    p_value: Floating
    at_most: Mask  # where no shuffle reaches the number: p is the smallest that there can be
    found: Mask  # where p is at most 0.05; the bounds then leave out 0
    margin: Floating
    people: Ints
    arrangements: float
    own: tuple[Floating, Floating]  # bounds of each number by itself: 95 % of its own null, whatever else is compared
    sides: tuple[Floating, Floating] | None
    method: str


def largest_of(null: Floating, deviate: Floating, *, exact: bool = False) -> tuple[Floating, Floating]:
    """Of deviates `[n_shuffles, …]`: how much wider than normal each null is, and the largest on these scales."""
    # Every null on its scale is at least as wide as a normal one, rank by rank. The deviate at hand counts as one of
    # the shuffles, as p does: a scale that knew the shuffles alone would fit them too well.
    shuffles = len(null)
    if not null.size:
        return np.ones(null.shape[1:]), np.zeros(shuffles, dtype=null.dtype)
    null = null if exact else np.concatenate([null, deviate[None].astype(null.dtype)])
    count, largest = len(null), np.zeros(len(null), dtype=null.dtype)
    half_normal = ndtri(0.5 + (np.arange(count) + 0.5) / (2 * count)).astype(null.dtype)
    columns, scales = null.reshape(count, -1), []
    step = max(1, HELD // count)
    for start in range(0, columns.shape[1], step):
        part = np.ascontiguousarray(columns[:, start : start + step].T)
        order = np.argsort(part, axis=1)
        scale = np.ones(len(part))
        for tail in TAILS:
            place = tail * (count - 1)
            ends = (part[np.arange(len(part)), order[:, each]] for each in (int(place), min(int(place) + 1, count - 1)))
            low, high = (each.astype(np.float64) for each in ends)
            scale = np.maximum(scale, (low + (place - int(place)) * (high - low)) / ndtri((1 + tail) / 2))
        ranked = np.empty_like(part)
        np.put_along_axis(ranked, order, np.broadcast_to(half_normal, part.shape), 1)
        widened = np.maximum(part / scale[:, None].astype(null.dtype), ranked)
        largest = np.maximum(largest, widened.max(axis=0))
        scales.append(scale)
    return np.concatenate(scales).reshape(null.shape[1:]), largest[:shuffles]


def part_from_null(
    value: Floating,
    null: Floating,
    *,
    people: npt.ArrayLike,
    arrangements: float = np.inf,
    exact: bool = False,
    one_sided: bool = False,
    centre: Floating | None = None,
    rounding: float = 0.0,
) -> Part:
    """Numbers of any kind `[…]` and the same after shuffles `[n_shuffles, …]`: their error is the null's own spread.

    Values become distances from `centre`, without it from the mean of the null (and the value itself, so that all
    arrangements are treated alike). One-sided: only what lies above counts. Numbers within `rounding` are equal.
    """
    null = np.asarray(null, dtype=np.float64)
    value = np.asarray(value, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        known = np.isfinite(null)
        count = known.sum(axis=0) + (not exact)
        total = np.where(known, null, 0.0).sum(axis=0) + (0.0 if exact else np.nan_to_num(value))
        middle = total / np.maximum(count, 1) if centre is None else np.asarray(centre)
        off = np.where(known, null - middle, 0.0)
        error = np.sqrt((off**2).sum(axis=0) / np.maximum(count - 1, 1))
        alike = np.maximum(TIE * np.maximum(np.abs(value), 1e-12), rounding)
        still = error <= alike
        away = value - middle
        error = np.where(still, 0.0, error)
        deviates = np.where(still, 0.0, off / error)
        deviate = np.where(still, np.where(np.abs(away) > alike, np.inf, 0.0), away / error)
    if one_sided:
        deviate, deviates = np.maximum(deviate, 0.0), np.maximum(deviates, 0.0)
    deviate, deviates = np.minimum(np.abs(deviate), ENDLESS), np.abs(deviates)
    scale, largest = largest_of(deviates, deviate, exact=exact)
    counts = np.broadcast_to(np.asarray(people), value.shape)
    endless = np.full(value.shape, np.inf)
    return Part(away, error, endless, deviate, scale, largest, exact, arrangements, counts, np.zeros(value.shape))


def judge(parts: Sequence[Part]) -> list[Judged]:
    """Every part with p-values and bounds that hold for all parts together: they are one family."""
    able = [part for part in parts if part.judgeable.any()]
    exact = bool(able) and all(part.exact for part in able) and len(able) == 1
    count = min((len(part.largest) for part in able), default=0)
    largest = np.zeros(count)
    for number, part in enumerate(able):
        # An exact part has all arrangements in order; beside others they are drawn, as shuffles are.
        drawn = part.largest
        if len(able) > 1 and (part.exact or len(drawn) > count):
            drawn = np.random.default_rng(number).choice(drawn, size=count)
        largest = np.maximum(largest, drawn)
    numbers = sum(int(part.judgeable.sum()) for part in able)
    tried = f"all {count:,} arrangements" if exact else f"{count:,} shuffles"
    method = f"{tried} of people; the largest of {numbers:,} studentised numbers" if numbers else "no test"
    return [_judged(part, np.sort(largest), method, exact=exact) for part in parts]


def _judged(part: Part, largest: Floating, method: str, *, exact: bool) -> Judged:
    count, able = len(largest), part.judgeable
    deviate = np.where(able, part.deviate / part.scale, 0.0)
    beyond = count - np.searchsorted(largest, deviate * (1 - TIE), side="left")
    p_value = beyond / max(count, 1) if exact else (1.0 + beyond) / (1 + count)
    p_value = np.where(able, np.minimum(np.maximum(p_value, 1 / max(count, 1) if exact else 0.0), 1.0), np.nan)
    found = able & (np.nan_to_num(p_value, nan=1.0) <= ALPHA)
    below, above = _reach(part, critical_value(largest, exact=exact))
    own = _reach(part, NORMAL)
    # A difference without spread is found by its p-value: its exact bounds do not take that back.
    near = 0.999 * np.abs(part.value)
    below = np.where(found & (part.value > 0), np.minimum(below, near), below)
    above = np.where(found & (part.value < 0), np.minimum(above, near), above)
    margin = np.maximum(below, above)
    bounds = (part.value - below, part.value + above, margin)
    low, high, margin = (np.where(able & (margin > 0), each, np.nan) for each in bounds)
    alone = part.value - np.where(able, own[0], np.nan), part.value + np.where(able, own[1], np.nan)
    rest = part.people, part.arrangements, alone, part.sides, method
    return Judged(part.value, low, high, p_value, able & (beyond == 0), found, margin, *rest)


def _reach(part: Part, deviate: float) -> tuple[Floating, Floating]:
    """How far each number's interval reaches below and above it, for a deviate on the normal scale."""
    with np.errstate(invalid="ignore"):
        reach = student_scale(deviate * part.scale, part.freedom)
        below, above = (np.abs(unskewed(side * reach, part.skew)) * part.error for side in (1, -1))
        below, above = (np.maximum(np.nan_to_num(each, nan=0.0, posinf=np.nan), part.least) for each in (below, above))
    return below, above


def critical_value(largest: Floating, alpha: float = ALPHA, *, exact: bool = False) -> float:
    """The deviate (of these, ascending) that a number must exceed for its p to be at most `alpha`."""
    allowed = int(alpha * (len(largest) + (not exact)) + 1e-9) - (not exact)
    return float(largest[len(largest) - 1 - allowed]) if 0 <= allowed < len(largest) else np.inf


def skewed(t: Floating, skew: Floating | float) -> Floating:
    """t of a skewed error, made symmetric (Hall's cubic, which rises everywhere): few large scores move t."""
    near = np.clip(t, -MODERATE, MODERATE)
    part = skew * near / 3
    return np.asarray(near * (1 + part + part * part / 3) + skew / 6 + (t - near))


def unskewed(t: Floating, skew: Floating | float) -> Floating:
    """The t that `skewed` turns into `t`."""
    ends = skewed(np.array(-MODERATE), skew), skewed(np.array(MODERATE), skew)
    near = np.clip(t, *ends)
    safe = np.where(np.abs(skew) > 1e-9, skew, 1.0)
    bent = np.where(np.abs(skew) > 1e-9, 3 / safe * (np.cbrt(1 + safe * (near - safe / 6)) - 1), near)
    return np.asarray(bent + (t - near))


def normal_scale(t: Floating, freedom: Floating) -> Floating:
    """Student's t as the normal deviate of the same probability (Wallace's approximation)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        large = np.where(np.isinf(freedom), np.abs(t), np.sqrt(freedom * np.log1p(t**2 / freedom)))
        return np.asarray(np.where(np.isinf(freedom), 1.0, (8 * freedom + 1) / (8 * freedom + 3)) * large)


def deviates(value: Array, error: Array, freedom: Array, skew: Array | float = 0.0) -> Array:
    """Numbers in their errors, without sign, on the normal scale."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(value == 0, 0.0, value / error)
        t = np.abs(np.where(np.isfinite(t), skewed(t, skew), t) if np.any(skew) else t)
        return np.minimum(np.nan_to_num(normal_scale(t, freedom), nan=0.0, posinf=ENDLESS), ENDLESS)


def student_scale(z: Floating | float, freedom: Floating) -> Floating:
    """The t that `normal_scale` turns into `z`."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        factor = np.where(np.isinf(freedom), 1.0, (8 * freedom + 1) / (8 * freedom + 3))
        return np.asarray(np.where(np.isinf(freedom), z, np.sqrt(freedom * np.expm1((z / factor) ** 2 / freedom))))


# One difference, with everything that a reader needs to judge it


class Comparison(NamedTuple):
    """What a study states and everything else reads."""

    group: str | None
    against: str | None
    value: float  # the first group less, or over, the second
    low: float  # bounds that hold for the whole family: they decide
    high: float
    p_value: float
    at_most: bool
    people: int  # of the smallest group
    verdict: str
    own: tuple[float, float] = (np.nan, np.nan)  # the interval of this number by itself; it decides nothing
    sides: tuple[float, float] | None = None  # the value of each group, within the strata
    method: str = ""

    def swapped(self) -> "Comparison":
        """The same seen from the other group: second less first."""
        sides = self.sides and (self.sides[1], self.sides[0])
        swapped = self._replace(group=self.against, against=self.group, value=-self.value, sides=sides)
        return swapped._replace(low=-self.high, high=-self.low, own=(-self.own[1], -self.own[0]))

    def upward(self) -> "Comparison":
        """The same with the group first that is higher."""
        return self.swapped() if self.value < 0 else self

    def through(self, scale: Callable[[float], float]) -> "Comparison":
        """The same on another scale, which must rise: value and bounds as logarithms, or beside a landmark."""
        return self._replace(value=scale(self.value), low=scale(self.low), high=scale(self.high))

    def on(self, row: Row, *, least: float = -np.inf, most: float = np.inf) -> Row:
        """A row of results with this comparison's numbers; bounds do not leave the possible range."""
        low, high = (float(np.clip(bound, least, most)) for bound in (self.low, self.high))
        named = self._named(row)._replace(value=self.value, low=low, high=high, verdict=self.verdict)
        return named._replace(p_value=self.p_value, p_at_most=self.at_most or None)

    def _named(self, row: Row) -> Row:
        group = row.group if self.group is None else self.group
        return row._replace(group=group, against=row.against if self.against is None else self.against)

    def rows(
        self, row: Row, strata: "Strata | None" = None, *, least: float = -np.inf, most: float = np.inf
    ) -> list[Row]:
        """The published row with the verdict; and where strata count, the row within them, which decided, after it."""
        # The published row keeps its own value, and its interval if it has one: both describe, the other row decides.
        named = self._named(row)
        note = "; ".join(each for each in (row.note, strata.note if strata else None) if each) or None
        if strata is None or strata.variant is None:
            return [self.on(named._replace(note=note), least=least, most=most)._replace(value=row.value)]
        plain = named._replace(verdict=self.verdict, note=note)
        return [plain, self.on(named, least=least, most=most)._replace(variant=strata.variant)]


def comparison_at(
    judged: Judged, place: tuple[int, ...] | int, group: str | None = None, against: str | None = None
) -> Comparison:
    """One number of a judged part."""
    value, low, high, p_value = (float(part[place]) for part in (judged.value, judged.low, judged.high, judged.p_value))
    people = int(judged.people[place])
    verdict = verdict_of(p_value, people, judged.arrangements)
    own = float(judged.own[0][place]), float(judged.own[1][place])
    sides = judged.sides and (float(judged.sides[0][place]), float(judged.sides[1][place]))
    numbers = (value, low, high, p_value, bool(judged.at_most[place]), people)
    return Comparison(group, against, *numbers, verdict, own, sides, judged.method)
