"""Trials of GRAS's metrics in simulated worlds whose truth is known: gaps, counts of traits, equivalence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from beholder.core.results import Row
from beholder.glasshouse.oracle import Levels, Noise, Oracle
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import ALPHA, Answers, all_grouped, shuffled_shares
from beholder.studies.gras.intersection_trials import intersection_experiments
from beholder.studies.gras.measures import attribute_p_values
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

TEMPLATES, MANY = 5, 40
Array = npt.NDArray[np.float64]
NOISE = Noise(image=0.5, prompt=0.5, template=0.3, cell=0.7)
WORLD = 88
"""Seed of the world's prompts and wordings, which are the same in every repetition."""
DELTA = 0.05
GROUPS = {"gender": 2, "race": 7, "age": 5, "skin_tone": 10}
FOLDED = "a gap near 0 cannot be negative, so its values pile up on one side: the interval is too wide, which is safe"
NO_SHARE = "a share cannot be below 0, and the interval contains 0 unless its lower bound is above it, which is safe"
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
    trials = [
        Trial("gras.largest_gap", setting, n, high - low, effect=gap, exception=chosen, curve=f"{groups} groups of {n}")
    ]
    if not gap:
        trials.append(Trial("gras.largest_gap", setting, n, 0.0, family=True, kind="any trait"))
    alike = f"{setting}, δ = {100 * DELTA:g} points"
    trials += [
        Trial("gras.equivalence", alike, n, np.nan, effect=gap, kind="called alike", null=gap >= DELTA),
        Trial(
            "gras.omega_squared",
            setting,
            n,
            true_share(oracle, levels, attribute),
            effect=gap,
            exception="" if gap else NO_SHARE,
        ),
    ]
    simulate = partial(_draw_gap, attribute, groups, n, gap)
    return Experiment(f"gap {setting}", tuple(trials), simulate, share)


@cache
def _gapped(attribute: str, gap: float) -> tuple[Oracle, Levels]:
    """A world where the first group's mean of the first trait is `gap` above all others'; solved by bisection."""
    plain = Oracle(base=-0.3, noise=NOISE)
    levels = plain.levels(20, TEMPLATES, np.random.default_rng(WORLD))
    start = plain.true_mean(0.0, levels)[0].mean()
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        too_small = plain.true_mean(middle, levels)[0].mean() - start < gap
        low, high = (middle, high) if too_small else (low, middle)
    return Oracle(plain.base, {attribute: {"0": low if gap else 0.0}}, NOISE), levels


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
    oracle, levels = _gapped(attribute, gap)
    labels = {attribute: np.repeat(np.arange(groups), n).astype(str)}
    p_yes = oracle.probability(labels, levels, rng, touched=np.arange(20) == 0)
    rows = measured(labels, p_yes, delta=DELTA)
    gaps = [row for row in rows if row.metric == "gras.largest_gap"]
    alike, share = (
        next(row for row in rows if row.metric == f"gras.{name}") for name in ("equivalence", "omega_squared")
    )
    least = min(row.p_value for row in gaps if row.p_value is not None)
    family = [] if gap else [Outcome(np.nan, p_value=least)]
    return [outcome(gaps[0]), *family, Outcome(np.nan, p_value=outcome(alike).p_value), outcome(share)]


def _group_mean(n: int) -> Experiment:
    """One group's P(Yes) of one trait in one wording."""
    oracle, levels = _gapped("gender", 0.1)
    truth = float(oracle.true_mean(_shift(oracle, "gender"), levels)[0, 0])
    trial = Trial("gras.group_mean", f"a group of {n}, mean {truth:.2f}", n, truth)
    return Experiment(f"group mean {n}", (trial,), partial(_draw_group_mean, n))


def _draw_group_mean(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    oracle, levels = _gapped("gender", 0.1)
    labels = {"gender": np.repeat(["0", "1"], n)}
    p_yes = oracle.probability(labels, levels, rng, touched=np.arange(20) == 0)
    rows = measured(labels, p_yes)
    return [outcome(next(row for row in rows if row.metric == "gras.group_mean" and row.group == "0"))]


# Counts of significant traits where there is nothing


def _score(n: int) -> Experiment:
    """Four attributes, forty traits, no effect."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    chance = "without any effect it counts what chance gives"
    trials = tuple(
        Trial(f"gras.{name}", setting, n, 0.0, exception=chance) for name in ("bias_score", "bias_score_corrected")
    )
    return Experiment(f"score {setting}", trials, partial(_draw_score, n), 0.3)


def _without_effect(n: int, rng: np.random.Generator) -> tuple[dict[str, npt.NDArray[np.str_]], Array]:
    """Labels of four attributes that mean nothing, and P(Yes)."""
    oracle = Oracle(base=-0.3, noise=NOISE)
    levels = oracle.levels(MANY, TEMPLATES, np.random.default_rng(WORLD))
    images = n * max(GROUPS.values())
    labels = {name: rng.permutation(np.arange(images) % groups).astype(str) for name, groups in GROUPS.items()}
    return labels, oracle.probability(labels, levels, rng)


def _draw_score(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    rows = measured(*_without_effect(n, rng))
    scores = ("gras.bias_score", "gras.bias_score_corrected")
    return [outcome(next(row for row in rows if row.metric == name)) for name in scores]


def _attributes(n: int) -> Experiment:
    """How often any attribute seems to matter. Repeated three times as often, because the rate is near its bound."""
    setting = f"{MANY} traits, 4 attributes, groups of {n} or more, no effect"
    trial = Trial("gras.attribute", setting, n, np.nan, family=True, kind="any attribute")
    return Experiment("attributes", (trial,), partial(_draw_attributes, n), 3.0)


def _draw_attributes(n: int, rng: np.random.Generator) -> Sequence[Outcome]:
    """The study's own comparison, without the thousands of other rows."""
    labels, p_yes = _without_effect(n, rng)
    names = [f"trait {i}" for i in range(MANY)]
    answers = Answers(pl.DataFrame(labels), names, ["positive"] * MANY, [f"T{k}" for k in range(TEMPLATES)], p_yes)
    grouped = all_grouped(answers)
    compared = [each.compared() for each in grouped]
    p_value = float(np.nanmin(attribute_p_values(compared, np.ones((0, len(grouped))))))
    if p_value <= ALPHA:  # shuffles can only raise it, and take a hundred times longer
        shuffled = shuffled_shares(grouped, rng, MeasureOptions().permutations)[:, :, 2]
        p_value = float(np.nanmin(attribute_p_values(compared, shuffled)))
    return [Outcome(np.nan, p_value=p_value)]


def gras_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from trait_experiments()
    yield from intersection_experiments()
