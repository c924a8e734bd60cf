"""Trials of GRAS's metrics in simulated worlds whose truth is known, and the weaknesses that they show.

Gaps, counts of traits, equivalence and intersections. Partial pooling promises its coverage over all cells, not for one
chosen cell. So each world of intersections draws the true values of its cells from one distribution, and the outcome is
the error of one cell, whose truth is 0.
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
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import CROSSED, Answers, all_grouped, shuffled_shares
from beholder.studies.gras.measures import attribute_p_values, intersection_rows
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome
from beholder.studies.trial_summary import Summaries, Weakness

TEMPLATES, MANY = 5, 40
WORDINGS = [f"T{k}" for k in range(TEMPLATES)]
Array = npt.NDArray[np.float64]
NOISE = Noise(image=0.5, prompt=0.5, template=0.3, cell=0.7)
PLAIN = Oracle(base=-0.3, noise=NOISE)
WORLD, CROSSED_WORLD = 88, 89
"""Seeds of the worlds' prompts and wordings, which are the same in every repetition."""
DELTA = 0.05
SCORES = ("bias_score", "bias_score_corrected")
GROUPS = {"gender": 2, "race": 7, "age": 5, "skin_tone": 10}
FOLDED = "a gap near 0 cannot be negative, so its values pile up on one side: the interval is too wide, which is safe"
NO_SHARE = "a share cannot be below 0, and the interval contains 0 unless its lower bound is above it, which is safe"
COUNTS = dict(zip(CROSSED, (2, 7, 5), strict=True))
"""Genders, races and age bands of the study: 70 cells."""
CELLS = 2 * 7 * 5
CROSSED_TRAITS = 4
"""Two positive traits and two negative ones."""
SAFE = "where cells do not differ, all are pulled to their mean: the interval is too wide, which is safe"
WIDEST = "the interval allows for the choice among all pairs, more than a single clear pair needs"


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


@cache
def _prompts(traits: int) -> pl.DataFrame:
    names = {"trait": [f"trait {i}" for i in range(traits)], "valence": ["positive", "negative"] * (traits // 2)}
    return gras_prompts(pl.DataFrame(names)).table


def measured(labels: dict[str, npt.NDArray[np.str_]], p_yes: npt.NDArray[np.float64], **options: float) -> list[Row]:
    """The study's own rows for `p_yes[n_images, n_traits, n_templates]`."""
    n, traits, _ = p_yes.shape
    images = pl.DataFrame({"image_id": [str(i) for i in range(n)], "part": ["fairface"] * n, **labels})
    matrix = ScoreMatrix("gras", images, _prompts(traits), ("score",), p_yes.reshape(n, -1, 1))
    (measure,) = GRAS.measures
    return list(measure({"gras": matrix}, MeasureOptions(permutations=1, **options)))  # type: ignore[arg-type]


# One trait with a gap, nineteen without


def _gap(attribute: str, n: int, gap: float, share: float) -> Experiment:
    oracle, levels = _gapped(attribute, gap)
    high, low = (float(oracle.true_mean(shift, levels)[0].mean()) for shift in (_shift(oracle, attribute), 0.0))
    groups = GROUPS[attribute]
    setting = f"{groups} groups of {n}, gap {100 * gap:g} points"
    chosen = WIDEST if groups > 2 and gap else FOLDED if 0 < gap < DELTA else ""
    curve, alike = f"{groups} groups of {n}", f"{setting}, δ = {100 * DELTA:g} points"
    share_of, no_share = true_share(oracle, levels, attribute), "" if gap else NO_SHARE
    any_trait = Trial("gras.largest_gap", setting, n, 0.0, family=True, kind="any trait")
    trials = [
        Trial("gras.largest_gap", setting, n, high - low, effect=gap, exception=chosen, curve=curve),
        *([] if gap else [any_trait]),
        Trial("gras.equivalence", alike, n, np.nan, effect=gap, kind="called alike", null=gap >= DELTA),
        Trial("gras.omega_squared", setting, n, share_of, effect=gap, exception=no_share),
    ]
    simulate = partial(_draw_gap, attribute, groups, n, gap)
    return Experiment(f"gap {setting}", tuple(trials), simulate, share)


@cache
def _gapped(attribute: str, gap: float) -> tuple[Oracle, Levels]:
    """A world where the first group's mean of the first trait is `gap` above all others'; solved by bisection."""
    levels = PLAIN.levels(20, TEMPLATES, np.random.default_rng(WORLD))
    start = PLAIN.true_mean(0.0, levels)[0].mean()
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        too_small = PLAIN.true_mean(middle, levels)[0].mean() - start < gap
        low, high = (middle, high) if too_small else (low, middle)
    return Oracle(PLAIN.base, {attribute: {"0": low if gap else 0.0}}, NOISE), levels


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
    least = min(row.p_value for row in gaps if row.p_value is not None)
    family = [] if gap else [Outcome(np.nan, p_value=least)]
    return [outcome(gaps[0]), *family, Outcome(np.nan, p_value=outcome(alike).p_value), outcome(share)]


def _gapped_rows(attribute: str, groups: int, n: int, gap: float, rng: np.random.Generator) -> list[Row]:
    oracle, levels = _gapped(attribute, gap)
    labels = {attribute: np.repeat(np.arange(groups), n).astype(str)}
    return measured(labels, oracle.probability(labels, levels, rng, touched=np.arange(20) == 0), delta=DELTA)


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


# Counts of significant traits where there is nothing


def _score(n: int) -> Experiment:
    """Four attributes, forty traits, no effect."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    chance = "without any effect it counts what chance gives"
    trials = tuple(Trial(f"gras.{name}", setting, n, 0.0, exception=chance) for name in SCORES)
    return Experiment(f"score {setting}", trials, partial(_draw_score, n), 0.3)


def _without_effect(n: int, rng: np.random.Generator) -> tuple[dict[str, npt.NDArray[np.str_]], Array]:
    """Labels of four attributes that mean nothing, and P(Yes)."""
    levels = PLAIN.levels(MANY, TEMPLATES, np.random.default_rng(WORLD))
    images = n * max(GROUPS.values())
    labels = {name: rng.permutation(np.arange(images) % groups).astype(str) for name, groups in GROUPS.items()}
    return labels, PLAIN.probability(labels, levels, rng)


def _draw_score(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    rows = measured(*_without_effect(n, rng))
    return [outcome(_first(rows, name)) for name in SCORES]


def _attributes(n: int) -> Experiment:
    """How often any attribute seems to matter. Repeated three times as often, because the rate is near its bound."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    trial = Trial("gras.attribute", setting, n, np.nan, family=True, kind="any attribute")
    return Experiment("attributes", (trial,), partial(_draw_attributes, n), 3.0)


def _draw_attributes(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    """The study's own comparison, without the thousands of other rows."""
    labels, p_yes = _without_effect(n, rng)
    grouped = all_grouped(_named(pl.DataFrame(labels), ["positive"] * MANY, p_yes))
    compared = [each.compared() for each in grouped]
    p_value = float(np.nanmin(attribute_p_values(compared, np.ones((0, len(grouped))))))
    if p_value <= ALPHA:  # shuffles can only raise it, and take a hundred times longer
        shuffled = shuffled_shares(grouped, rng, MeasureOptions().permutations)[:, :, 2]
        p_value = float(np.nanmin(attribute_p_values(compared, shuffled)))
    return [Outcome(np.nan, p_value=p_value)]


# Intersections


def intersection_experiments() -> Iterator[Experiment]:
    """Cells that do not differ, that differ little and that differ much; of equal sizes and of unequal ones."""
    yield _intersections(24, 0.0, 0.5)
    yield _intersections(24, 0.02, 1.0)
    yield _intersections(51, 0.05, 1.0)
    yield _intersections(24, 0.02, 1.0, uneven=True)


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
    rows = {row.group: row for row in intersection_rows(_answers(cell, p_yes))}
    truth, first = favour(levels, shifts), " × ".join("0" for _ in COUNTS)
    off, result = float(truth[0] - truth.mean()), outcome(rows[first])
    moved = [result._replace(value=result.value - off, low=result.low - off, high=result.high - off)]
    any_called = any(each.low > 0 or each.high < 0 for each in map(outcome, rows.values()))
    return moved if spread else [*moved, Outcome(np.nan, p_value=0.0 if any_called else 1.0)]


def _sizes(n: int, uneven: bool) -> npt.NDArray[np.int_]:
    """Images of each cell: all alike, or a quarter to seven quarters of that by turns."""
    return n * (1 + 2 * (np.arange(CELLS) % 4)) // 4 if uneven else np.full(CELLS, n)


def _answers(cell: npt.NDArray[np.int_], p_yes: Array) -> Answers:
    values = np.unravel_index(cell, tuple(COUNTS.values()))
    images = pl.DataFrame({name: own.astype(str) for name, own in zip(COUNTS, values, strict=True)})
    return _named(images, ["positive"] * 2 + ["negative"] * 2, p_yes)


def _named(images: pl.DataFrame, valences: list[str], p_yes: Array) -> Answers:
    """Answers about `trait 0`, `trait 1` and so on."""
    return Answers(images, [f"trait {i}" for i in range(len(valences))], valences, WORDINGS, p_yes)


def gras_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from trait_experiments()
    yield from intersection_experiments()


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """The weaknesses that the chosen trials can show."""
    yield from _score_without_bias(summaries)
    yield from _absolute_gaps(summaries)


def _score_without_bias(summaries: Summaries) -> Iterator[Weakness]:
    plain, corrected = summaries.one("gras.bias_score"), summaries.one("gras.bias_score_corrected")
    if plain and corrected:
        yield Weakness(
            "gras.bias_score",
            "GRAS's score is not 0 without bias",
            f"Where no group differs in anything, the score is {plain.mean:.1f} on average (spread over worlds: "
            f"{plain.spread:.1f}), because it counts a trait when any of five wordings has p ≤ 0.05; with independent "
            f"wordings it is up to 22.6. After correction it is {corrected.mean:.2f}.",
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
