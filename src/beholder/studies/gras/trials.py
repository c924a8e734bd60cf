"""Trials of GRAS's metrics in simulated worlds whose truth is known, and the weaknesses that they show.

Gaps, the widest of many, counts of traits, valence, wordings, equivalence, intersections; with groups of equal and of
unequal size, and with several images a person. Partial pooling promises its coverage over all cells, not for one chosen
cell. So each world of intersections draws the true values of its cells from one distribution, and the outcome is the
error of one cell, whose truth is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from beholder.core.results import Row
from beholder.glasshouse.oracle import Levels, Noise, Oracle
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.gras.groups import Answers, Grouped, all_grouped
from beholder.studies.gras.intersections import CROSSED
from beholder.studies.gras.measures import (
    Averages,
    Part,
    adjusted_rows,
    equivalence_rows,
    gap_rows,
    intersection_rows,
    part_of,
    score_rows,
    shuffled_counts,
    test_rows,
    valence_rows,
)
from beholder.studies.gras.wordings import WordingShares, wording_ranges
from beholder.studies.trial import Experiment, Outcome, Trial, outcome
from beholder.studies.trial_summary import Summaries, Weakness

TEMPLATES, TRAITS, MANY = 5, 20, 40
WORDINGS = [f"T{k}" for k in range(TEMPLATES)]
Array = npt.NDArray[np.float64]
Labels = dict[str, npt.NDArray[np.str_]]
NOISE = Noise(image=0.5, prompt=0.5, template=0.3, cell=0.7)
PERSONAL = Noise(image=0.3, prompt=0.5, template=0.3, cell=0.7, person=0.6)
PLAIN, OF_PEOPLE = Oracle(base=-0.3, noise=NOISE), Oracle(base=-0.3, noise=PERSONAL)
WORLD, CROSSED_WORLD = 88, 89
"""Seeds of the worlds' prompts and wordings, which are the same in every repetition."""
DELTA = 0.05
SCORES = ("bias_score", "bias_score_shown")
GROUPS = {"gender": 2, "race": 7, "age": 5, "skin_tone": 10}
POOL = (20, 40, 80, 160, 320)
"""Images of groups of unequal size."""
IMAGES = 4
"""Images of each person, where people have several."""
NO_SHARE = "a share cannot be below 0, and the interval contains 0 unless its lower bound is above it, which is safe"
COUNTS = dict(zip(CROSSED, (2, 7, 5), strict=True))
"""Genders, races and age bands of the study: 70 cells."""
CELLS = 2 * 7 * 5
CROSSED_TRAITS = 4
"""Two positive traits and two negative ones."""
SAFE = "where cells do not differ, all are pulled to their mean: the interval is too wide, which is safe"
TOGETHER = "the interval holds for all of them together, more than one that was not picked needs"
CAUTIOUS = "the interval holds for all traits and pairs together; where one gap leads, it is wider than that one needs"


def trait_experiments() -> Iterator[Experiment]:
    """Worlds of one trait with a gap, of one group's mean, and of no effect at all."""
    for n, gap, share in (
        (30, 0.0, 0.6),
        (100, 0.0, 1.0),
        (100, 0.05, 1.0),
        (100, 0.1, 0.4),
        (400, 0.0, 0.4),
        (400, 0.02, 0.4),
        (400, 0.05, 1.0),
        (400, 0.1, 0.3),
    ):
        yield _gap("gender", n, gap, share)
    yield _gap("race", 100, 0.0, 0.6)
    yield _gap("race", 100, 0.1, 0.6)
    yield _group_mean(100)
    yield _score(100)
    yield _attributes(100)


# The study's own code on simulated answers


def _answers(labels: Labels, p_yes: Array) -> Answers:
    """Answers about `trait 0`, `trait 1` and so on, of either valence by turns."""
    traits = p_yes.shape[1]
    valences = ["positive" if k % 2 else "negative" for k in range(traits)]
    return Answers(pl.DataFrame(labels), [f"trait {k}" for k in range(traits)], valences, WORDINGS, p_yes)


def _parts(labels: Labels, p_yes: Array, rng: np.random.Generator) -> list[Part]:
    """Every attribute's comparison and gaps."""
    grouped = all_grouped(_answers(labels, p_yes))
    averages = Averages()
    return [part_of(each, averages, rng, len(grouped)) for each in grouped]


def measured(labels: Labels, p_yes: Array, rng: np.random.Generator) -> list[Row]:
    """Gaps, equivalence and tests of one attribute, for `p_yes[n_images, n_traits, n_templates]`."""
    (part,) = _parts(labels, p_yes, rng)
    answers = part.grouped.answers
    rows = [*gap_rows(answers, part), *equivalence_rows(answers, part, DELTA)]
    return [*rows, *test_rows(answers, part.compared, repeated=part.grouped.repeated)]


# One trait with a gap, nineteen without


def _gap(attribute: str, n: int, gap: float, share: float) -> Experiment:
    oracle, levels = _gapped(attribute, gap)
    high, low = (float(oracle.true_mean(shift, levels)[0].mean()) for shift in (_shift(oracle, attribute), 0.0))
    groups = GROUPS[attribute]
    setting = f"{groups} groups of {n}, gap {100 * gap:g} points"
    curve, alike = f"{groups} groups of {n}", f"{setting}, δ = {100 * DELTA:g} points"
    share_of, no_share = true_share(oracle, levels, attribute), "" if gap else NO_SHARE
    any_trait = Trial("gras.largest_gap", setting, n, 0.0, family=True, kind="any trait")
    trials = [
        Trial("gras.largest_gap", setting, n, high - low, effect=gap, exception=CAUTIOUS, curve=curve),
        *([] if gap else [any_trait]),
        Trial("gras.equivalence", alike, n, np.nan, effect=gap, kind="called alike", null=gap >= DELTA),
        Trial("gras.omega_squared", setting, n, share_of, effect=gap, exception=no_share),
    ]
    simulate = partial(_draw_gap, attribute, groups, n, gap)
    return Experiment(f"gap {setting}", tuple(trials), simulate, share)


@cache
def _gapped(attribute: str, gap: float) -> tuple[Oracle, Levels]:
    """A world where the first group's mean of the first trait is `gap` above all others'; solved by bisection."""
    levels = PLAIN.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    return Oracle(PLAIN.base, {attribute: {"0": _shift_for(PLAIN, levels, gap)}}, NOISE), levels


def _shift_for(oracle: Oracle, levels: Levels, gap: float) -> float:
    """What moves the mean of the first trait by `gap`."""
    start, (low, high) = oracle.true_mean(0.0, levels)[0].mean(), (0.0, 5.0)
    for _ in range(60 if gap else 0):
        middle = (low + high) / 2
        too_small = oracle.true_mean(middle, levels)[0].mean() - start < gap
        low, high = (middle, high) if too_small else (low, middle)
    return low


def true_share(oracle: Oracle, levels: Levels, attribute: str) -> float:
    """Share of the variance of P(Yes) between groups, of the first trait in its first wording, groups of one size."""
    groups = GROUPS[attribute]
    shifts = np.array([_shift(oracle, attribute), *[0.0] * (groups - 1)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    latent = oracle.base + levels.latent[0, 0] + shifts[:, None] + oracle.noise.of_pictures * nodes
    values, weights = ndtr(latent), weights / weights.sum()
    means, within = values @ weights, (values**2 @ weights - (values @ weights) ** 2).mean()
    return float(means.var() / (means.var() + within))


def _shift(oracle: Oracle, attribute: str) -> float:
    return oracle.effects[attribute]["0"]


def _draw_gap(attribute: str, groups: int, n: int, gap: float, rng: np.random.Generator) -> Sequence[Outcome]:
    rows = _gapped_rows(attribute, groups, n, gap, rng)
    gaps = [row for row in rows if row.metric == "gras.largest_gap"]
    alike, share = (_first(rows, name) for name in ("equivalence", "omega_squared"))
    family = [] if gap else [_any(gaps)]
    return [outcome(gaps[0]), *family, Outcome(np.nan, p_value=outcome(alike).p_value), outcome(share)]


def _any(rows: Sequence[Row]) -> Outcome:
    """Whether any of these rows is shown, by p-value and interval: 0 or 1 in place of a p-value."""
    results = [(outcome(row), row.landmark or 0.0) for row in rows]
    shown = [each.p_value <= ALPHA and (each.low > mark or each.high < mark) for each, mark in results]
    return Outcome(np.nan, p_value=0.0 if any(shown) else 1.0)


def _gapped_rows(attribute: str, groups: int, n: int, gap: float, rng: np.random.Generator) -> list[Row]:
    oracle, levels = _gapped(attribute, gap)
    labels = {attribute: np.repeat(np.arange(groups), n).astype(str)}
    return measured(labels, oracle.probability(labels, levels, rng, touched=np.arange(TRAITS) == 0), rng)


def _first(rows: list[Row], metric: str) -> Row:
    return next(row for row in rows if row.metric == f"gras.{metric}")


def _group_mean(n: int) -> Experiment:
    """One group's P(Yes) of one trait in one wording."""
    oracle, levels = _gapped("gender", 0.1)
    truth = float(oracle.true_mean(_shift(oracle, "gender"), levels)[0, 0])
    trial = Trial("gras.group_mean", f"a group of {n}, mean {truth:.2f}", n, truth)
    return Experiment(f"group mean {n}", (trial,), partial(_draw_group_mean, n))


def _draw_group_mean(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    rows = [row for row in _gapped_rows("gender", 2, n, 0.1, rng) if row.group == "0"]
    return [outcome(_first(rows, "group_mean"))]


# The widest of many: all traits have the same true gap, so that luck picks


def widest_experiments() -> Iterator[Experiment]:
    """The headline's gap: of equal groups, of unequal ones, and with several images a person."""
    for gap in (0.0, 0.05):
        yield _widest("7 groups of 100", (100,) * 7, gap, people=False)
        yield _widest(f"groups of {POOL[0]} to {POOL[-1]}", POOL, gap, people=False)
        yield _widest(f"5 groups of 100, {IMAGES} images a person", (100,) * 5, gap, people=True)
        yield _widest(f"groups of {POOL[0]} to {POOL[-1]}, {IMAGES} images a person", POOL, gap, people=True)
    yield _adjusted(100)


def _widest(name: str, sizes: tuple[int, ...], gap: float, *, people: bool) -> Experiment:
    setting = f"{name}, {TRAITS} traits with a gap of {100 * gap:g} points"
    # Bounds are promised for large groups; the widest pair is often that of a small one.
    n = min(sizes) // (IMAGES if people else 1)
    trials = [Trial("gras.largest_gap", setting, n, 0.0, effect=gap, kind="the widest of all", exception=CAUTIOUS)]
    if not gap:
        trials.append(Trial("gras.largest_gap", setting, n, 0.0, family=True, kind="any trait"))
    return Experiment(f"widest {setting}", tuple(trials), partial(_draw_widest, sizes, gap, people), 0.4)


def _draw_widest(sizes: tuple[int, ...], gap: float, people: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    plain = OF_PEOPLE if people else PLAIN
    levels = plain.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    labels = _pool(sizes, people)
    oracle = Oracle(plain.base, {"race": {"0": _shift_for(plain, levels, gap)}}, plain.noise)
    (part,) = _parts(labels, oracle.probability(labels, levels, rng), rng)
    rows = list(gap_rows(part.grouped.answers, part))
    widest = max(rows, key=lambda row: row.value or 0.0)
    moved = (oracle.true_mean(_shift(oracle, "race"), levels) - oracle.true_mean(0.0, levels)).mean(axis=1)
    truth = moved[int(str(widest.concept).split()[1])] * ((widest.group == "0") - (widest.against == "0"))
    found = outcome(widest)
    error = found._replace(value=found.value - truth, low=found.low - truth, high=found.high - truth)
    return [error] if gap else [error._replace(p_value=np.nan), _any(rows)]


def _pool(sizes: tuple[int, ...], people: bool) -> Labels:
    """Groups of these sizes; with several images a person, who are all of one group."""
    labels = {"race": np.repeat(np.arange(len(sizes)), sizes).astype(str)}
    if people:
        labels["person"] = (np.arange(sum(sizes)) // IMAGES).astype(str)
    return labels


def _adjusted(n: int) -> Experiment:
    """Two image sources, one of which gets more P(Yes); the groups have other mixes of them, and nothing else."""
    setting = f"4 groups of {n} with other mixes of two image sources, which alone move P(Yes)"
    trials = (
        Trial("gras.adjusted_gap", setting, n, 0.0, exception=TOGETHER),
        Trial("gras.adjusted_gap", setting, n, 0.0, family=True, kind="any trait"),
        Trial("gras.largest_gap", setting, n, 0.0, kind="any trait, sources left aside", null=False),
    )
    return Experiment("adjusted gaps", trials, partial(_draw_adjusted, n), 0.3)


def _draw_adjusted(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    group = np.repeat(np.arange(4), n)
    source = (rng.random(4 * n) < np.array([0.2, 0.4, 0.6, 0.8])[group]).astype(int)
    labels = {"skin_tone": (1 + group).astype(str), "source": source.astype(str)}
    oracle = Oracle(PLAIN.base, {"source": {"1": 0.5}}, NOISE)
    p_yes = oracle.probability(labels, PLAIN.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD)), rng)
    (part,) = _parts(labels, p_yes, rng)
    crude, adjusted = (list(rows(part.grouped.answers, part)) for rows in (gap_rows, adjusted_rows))
    return [outcome(adjusted[0])._replace(p_value=np.nan), _any(adjusted), _any(crude)]


# Counts of traits where there is nothing


def _score(n: int) -> Experiment:
    """Four attributes, forty traits, no effect."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    chance = "without any effect it counts what chance gives"
    trials = tuple(Trial(f"gras.{name}", setting, n, 0.0, exception=chance) for name in SCORES)
    return Experiment(f"score {setting}", trials, partial(_draw_score, n), 0.1)


def _without_effect(n: int, rng: np.random.Generator) -> tuple[Labels, Array]:
    """Labels of four attributes that mean nothing, and P(Yes)."""
    levels = PLAIN.levels(MANY, TEMPLATES, np.random.default_rng(WORLD))
    images = n * max(GROUPS.values())
    labels = {name: rng.permutation(np.arange(images) % groups).astype(str) for name, groups in GROUPS.items()}
    return labels, PLAIN.probability(labels, levels, rng)


def _draw_score(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    parts = _parts(*_without_effect(n, rng), rng)
    rows = list(score_rows(parts, [shuffled_counts(part.grouped, rng, 19) for part in parts]))
    return [outcome(_first(rows, name)) for name in SCORES]


def _attributes(n: int) -> Experiment:
    """How often any attribute seems to matter."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    trial = Trial("gras.attribute", setting, n, np.nan, family=True, kind="any attribute")
    return Experiment("attributes", (trial,), partial(_draw_attributes, n), 0.3)


def _draw_attributes(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    parts = _parts(*_without_effect(n, rng), rng)
    return [_any([row for part in parts for row in gap_rows(part.grouped.answers, part)])]


# Valence and wordings


def valence_experiments() -> Iterator[Experiment]:
    """Shares of positive and negative traits above the mean, where labels mean nothing."""
    yield _valence("5 groups of 100", (100,) * 5, people=False)
    yield _valence(f"groups of {POOL[0]} to {POOL[-1]}, {IMAGES} images a person", POOL, people=True)


def _valence(name: str, sizes: tuple[int, ...], *, people: bool) -> Experiment:
    n = min(sizes) // (IMAGES if people else 1)
    trials = (
        Trial("gras.valence_share", name, n, 0.0, kind="covers what shuffled labels give"),
        Trial("gras.valence_share", name, n, 0.0, family=True, kind="any share"),
    )
    return Experiment(f"valence {name}", trials, partial(_draw_valence, sizes, people), 0.2)


def _draw_valence(sizes: tuple[int, ...], people: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    oracle, labels = OF_PEOPLE if people else PLAIN, _pool(sizes, people)
    p_yes = oracle.probability(labels, oracle.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD)), rng)
    (part,) = _parts(labels, p_yes, rng)
    rows = list(valence_rows(part, shuffled_counts(part.grouped, rng, 199), rng, 1))
    found, chance = outcome(rows[0]), rows[0].landmark or 0.0
    error = Outcome(found.value - chance, found.low - chance, found.high - chance)
    return [error, _any(rows)]


def wording_experiments() -> Iterator[Experiment]:
    """The share of the differences that changes with the wording, and how far P(Yes) moves with it."""
    for people in (False, True):
        for uneven in (0.0, 0.5, 1.0):
            yield _wording(600 if people else 200, uneven, people=people)
    yield _ranges(200)


def _wording(n: int, uneven: float, *, people: bool) -> Experiment:
    truth, _ = _wording_world(uneven, people)
    who = f", {IMAGES} images a person" if people else ""
    setting = f"2 groups of {n}{who}, share {100 * truth:.0f} %"
    exception = "" if uneven else NO_SHARE
    trial = Trial("gras.wording_share", setting, n // (IMAGES if people else 1), truth, effect=1.0, exception=exception)
    return Experiment(f"wording {setting}", (trial,), partial(_draw_wording, n, uneven, people), 0.4)


@cache
def _wording_world(uneven: float, people: bool) -> tuple[float, Array]:
    """The true share over all traits, and the effect of the first group in each wording."""
    oracle = OF_PEOPLE if people else PLAIN
    levels = oracle.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    shifts = 0.3 * (1 + uneven * np.linspace(-1, 1, TEMPLATES))
    moved = np.stack([oracle.true_mean(shift, levels)[:, k] for k, shift in enumerate(shifts)], axis=1)
    gaps = moved - oracle.true_mean(0.0, levels)
    return float(((gaps - gaps.mean(axis=1, keepdims=True)) ** 2).sum() / (gaps**2).sum()), shifts


def _draw_wording(n: int, uneven: float, people: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    oracle, labels = OF_PEOPLE if people else PLAIN, _pool((n, n), people)
    levels = oracle.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    _, shifts = _wording_world(uneven, people)
    first = (labels["race"] == "0")[:, None, None]
    p_yes = ndtr(oracle.latent(labels, levels, rng) + first * shifts)
    shares = WordingShares(Grouped(_answers(labels, p_yes), "race"), rng)
    return [Outcome(*shares.share(np.ones(TRAITS, dtype=bool)))]


def _ranges(n: int) -> Experiment:
    setting, means = f"{n} images, {TRAITS} traits in {TEMPLATES} wordings", _true_ranges()
    trials = (
        Trial("gras.wording_range", setting, n, float(means[0]), effect=1.0, exception=TOGETHER),
        Trial("gras.wording_range", setting, n, 0.0, effect=1.0, kind="all traits together", exception=TOGETHER),
    )
    return Experiment(f"ranges {setting}", trials, partial(_draw_ranges, n), 0.4)


@cache
def _true_ranges() -> Array:
    levels = PLAIN.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    return np.asarray(np.ptp(PLAIN.true_mean(0.0, levels), axis=1))


def _draw_ranges(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    levels = PLAIN.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    scores = PLAIN.probability({"person": np.arange(n)}, levels, rng)
    found, truth = wording_ranges(scores, np.arange(n), rng), _true_ranges()
    one = Outcome(float(found.value[0]), float(found.low[0]), float(found.high[0]))
    return [one, Outcome(0.0, float((found.low - truth).max()), float((found.high - truth).min()))]


# Intersections


def intersection_experiments() -> Iterator[Experiment]:
    """Cells that do not differ, that differ little and that differ much; of equal sizes and of unequal ones."""
    yield _intersections(24, 0.0, 0.5)
    yield _intersections(24, 0.02, 1.0)
    yield _intersections(51, 0.05, 1.0)
    yield _intersections(24, 0.02, 1.0, uneven=True)
    yield _interaction(24, uneven=False)
    yield _interaction(24, uneven=True)


def _intersections(n: int, spread: float, share: float, *, uneven: bool = False) -> Experiment:
    sizes = f"of {n // 4} to {7 * n // 4}" if uneven else f"of {n}"
    setting, images = f"{CELLS} cells {sizes}, differing by {100 * spread:g} points", n * CELLS
    # A cell borrows from all others, so the promise is that for all images together.
    trials = [Trial("gras.intersection", setting, images, 0.0, effect=spread, exception="" if spread else SAFE)]
    if not spread:
        trials.append(Trial("gras.intersection", setting, images, 0.0, family=True, kind="any cell"))
    simulate = partial(_draw_intersections, n, spread, uneven)
    return Experiment(f"intersections {setting}", tuple(trials), simulate, share)


@cache
def _crossed_world() -> tuple[Levels, float]:
    """The levels, and the slope of a cell's favour over its shift where that is 0."""
    levels = PLAIN.levels(CROSSED_TRAITS, TEMPLATES, np.random.default_rng(CROSSED_WORLD))
    return levels, float(favour(levels, 1e-3) - favour(levels, 0.0)) / 1e-3


def favour(levels: Levels, shift: npt.ArrayLike) -> Array:
    """True favour of cells whose attributes move the positive traits (the first half) by `shift`."""
    positive, negative = levels.latent[: CROSSED_TRAITS // 2], levels.latent[CROSSED_TRAITS // 2 :]
    scale = np.sqrt(1 + NOISE.of_pictures**2)
    moved = np.asarray(shift, dtype=np.float64)[..., None, None]
    return np.asarray(
        ndtr((PLAIN.base + moved + positive) / scale).mean(axis=(-2, -1)) - ndtr((PLAIN.base + negative) / scale).mean()
    )


def _draw_intersections(n: int, spread: float, uneven: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    levels, slope = _crossed_world()
    shifts = spread / slope * rng.standard_normal(CELLS)
    cell = np.repeat(np.arange(CELLS), _sizes(n, uneven))
    oracle = Oracle(PLAIN.base, {"cell": {str(i): float(shift) for i, shift in enumerate(shifts)}}, NOISE)
    touched = np.arange(CROSSED_TRAITS) < CROSSED_TRAITS // 2
    p_yes = oracle.probability({"cell": cell.astype(str)}, levels, rng, touched=touched)
    every = [row for row in intersection_rows(_crossed(cell, p_yes), rng) if row.metric == "gras.intersection"]
    rows = {row.group: row for row in every}
    truth, first = favour(levels, shifts), " × ".join("0" for _ in COUNTS)
    off, result = float(truth[0] - truth.mean()), outcome(rows[first])._replace(p_value=np.nan)
    moved = [result._replace(value=result.value - off, low=result.low - off, high=result.high - off)]
    return moved if spread else [*moved, _any(every)]


def _interaction(n: int, *, uneven: bool) -> Experiment:
    """Gender, race and age each move the favour; nothing goes beyond their sum."""
    sizes = f"of {n // 4} to {7 * n // 4}" if uneven else f"of {n}"
    setting, images = f"{CELLS} cells {sizes}, attributes that only add up", n * CELLS
    trials = (
        Trial("gras.interaction", setting, images, 0.0, exception=TOGETHER),
        Trial("gras.interaction", setting, images, 0.0, family=True, kind="any cell"),
        Trial("gras.interaction_spread", setting, images, np.nan, kind="any interaction"),
    )
    return Experiment(f"interaction {setting}", trials, partial(_draw_interaction, n, uneven), 0.4)


def _draw_interaction(n: int, uneven: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    cell = np.repeat(np.arange(CELLS), _sizes(n, uneven))
    places = np.unravel_index(cell, tuple(COUNTS.values()))
    main = sum(0.1 * own / own.max() for own in places)
    noise = rng.beta(2, 4, (len(cell), CROSSED_TRAITS, TEMPLATES))
    touched = (np.arange(CROSSED_TRAITS) < CROSSED_TRAITS // 2)[None, :, None]
    rows = list(intersection_rows(_crossed(cell, 0.5 * noise + np.asarray(main)[:, None, None] * touched), rng))
    cells = [row for row in rows if row.metric == "gras.interaction"]
    together = outcome(_first(rows, "interaction_spread")).p_value
    return [outcome(cells[0])._replace(p_value=np.nan), _any(cells), Outcome(np.nan, p_value=together)]


def _sizes(n: int, uneven: bool) -> npt.NDArray[np.int_]:
    """Images of each cell: all alike, or a quarter to seven quarters of that by turns."""
    return n * (1 + 2 * (np.arange(CELLS) % 4)) // 4 if uneven else np.full(CELLS, n)


def _crossed(cell: npt.NDArray[np.int_], p_yes: Array) -> Answers:
    values = np.unravel_index(cell, tuple(COUNTS.values()))
    images = pl.DataFrame({name: own.astype(str) for name, own in zip(COUNTS, values, strict=True)})
    traits = [f"trait {i}" for i in range(CROSSED_TRAITS)]
    return Answers(images, traits, ["positive"] * 2 + ["negative"] * 2, WORDINGS, p_yes)


def gras_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from trait_experiments()
    yield from widest_experiments()
    yield from valence_experiments()
    yield from wording_experiments()
    yield from intersection_experiments()


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """The weaknesses that the chosen trials can show."""
    yield from _score_without_bias(summaries)
    yield from _absolute_gaps(summaries)


def _score_without_bias(summaries: Summaries) -> Iterator[Weakness]:
    plain, shown = summaries.one("gras.bias_score"), summaries.one("gras.bias_score_shown")
    if plain and shown:
        yield Weakness(
            "gras.bias_score",
            "GRAS's score is not 0 without bias",
            f"Where no group differs in anything, the score is {plain.mean:.1f} on average (spread over worlds: "
            f"{plain.spread:.1f}), because it counts a trait when any of five wordings has p ≤ 0.05; with independent "
            f"wordings it is up to 22.6. Counting only shown gaps it is {shown.mean:.2f}.",
            plain.mean > 3 * plain.bias_error and plain.mean > 1,
        )


def _absolute_gaps(summaries: Summaries) -> Iterator[Weakness]:
    alike = [summary for summary in summaries.where("gras.largest_gap") if summary.trial.effect == 0]
    if alike:
        means = "; ".join(f"{100 * summary.mean:.1f} points ({summary.trial.setting})" for summary in alike)
        yield Weakness(
            "gras.largest_gap",
            "Absolute differences are biased upward",
            f"A largest gap cannot be negative, so its mean is above 0 even where the true gap is 0: {means}. It "
            "shrinks with more images and grows with more groups: read it with its interval and p, never alone.",
            all(summary.bias > 3 * summary.bias_error for summary in alike),
        )
