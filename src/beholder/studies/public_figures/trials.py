"""APA's and P-FI's metrics in worlds of known truth: means of belief, ratios b, identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from beholder.core.results import Row
from beholder.glasshouse.oracle import Noise, Oracle, belief_logits, oracle_with_mean
from beholder.metrics.association import correct_share, softmax
from beholder.metrics.bootstrap import Resampler, percentile_interval
from beholder.metrics.intervals import accelerated_interval, mean_estimate, mean_interval, ratio_estimate
from beholder.prompts.prompt_set import correct_for, prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.large_draws import Draw, large_draws
from beholder.studies.public_figures.gaps import occupation_gap_rows
from beholder.studies.public_figures.identity import IDENTITY, identity_rows
from beholder.studies.public_figures.levels import ASSOCIATION
from beholder.studies.public_figures.ratios import Pools, ratio_rows
from beholder.studies.public_figures.scale import fitted
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

Array = npt.NDArray[np.float64]
DRAWS = 500
NOISE = Noise(image=1.5)
MEAN = 0.6
"""Mean belief on the right occupation, unless stated otherwise."""
OCCUPATIONS = prompt_set(
    "oracle",
    [
        {"text": name, "level": "occupation", "concept": name, "correct_for": "*" if name == "politician" else None}
        for name in (
            "politician",
            "scientist",
            "athlete",
            "teacher",
            "receptionist",
            "assistant",
            "salesperson",
            "actor",
        )
    ],
).table
FEW_WOMEN, MANY_WOMEN, NAMES, PICTURES = "few women, low belief", "many women, low belief", "names", "pictures"
"""Keys of trials that show a weakness."""
POOLS: Pools = {"a": ("a",), "b": ("b",), "c": ("c",)}


def figure_experiments() -> Iterator[Experiment]:
    """Every world of public figures."""
    for mean, n in ((0.04, 30), (0.04, 100), (0.5, 100), (0.9, 30), (0.9, 100)):
        yield _association(mean, n)
    yield _association(0.5, 100, pictures=3)
    yield _first(100)
    for women, men, ratio, mean, share in (
        (24, 76, 1.0, 0.6, 1.0),
        (24, 76, 0.8, 0.6, 0.4),
        (24, 76, 0.6, 0.6, 0.4),
        (100, 100, 1.0, 0.6, 1.0),
        (100, 100, 0.9, 0.6, 0.4),
        (100, 100, 0.8, 0.6, 1.0),
        (100, 100, 0.6, 0.6, 0.4),
        (183, 453, 0.9, 0.6, 0.4),
        (183, 453, 0.8, 0.6, 0.4),
        (24, 76, 1.0, 0.15, 1.0),
        (100, 100, 1.0, 0.15, 1.0),
    ):
        yield _ratio(women, men, ratio, mean, share)
    yield _pools()
    yield _ratio(100, 100, 1.0, 0.6, 1.0, pictures=3)
    yield from (_wrong_occupations(pictures) for pictures in (1, 3))
    yield from (_identity(names) for names in (30, 100, 300))
    yield _identity(100, pictures=3)
    yield from (_sees_labels(pictures) for pictures in (1, 3))
    yield from (_slope(truth) for truth in (0.0, 0.2))


# Means of belief


def _association(mean: float, people: int, pictures: int = 1) -> Experiment:
    noise = Noise(image=2.0) if pictures == 1 else Noise(person=1.0, image=1.0)
    setting = f"{people} people, mean {mean:g}" + (f", {pictures} pictures each" if pictures > 1 else "")
    kinds = ("", "percentile", "accelerated") if pictures == 1 else ("", "pictures as if people")
    key = PICTURES if pictures > 1 else ""
    trials = tuple(Trial("apa.association", setting, people, mean, kind=kind, key=key) for kind in kinds)
    simulate = partial(_draw_association, oracle_with_mean(mean, noise), people, pictures)
    return Experiment(f"association {setting}", trials, simulate)


def _draw_association(oracle: Oracle, people: int, pictures: int, rng: np.random.Generator) -> Sequence[Outcome]:
    who = np.repeat(np.arange(people), pictures)
    levels = oracle.levels(1, 1, rng)
    values = oracle.probability({"person": who}, levels, rng)[:, 0, 0]
    resampler = Resampler(who, rng, DRAWS)
    mean = float(values.mean())
    if pictures > 1:
        alone = Resampler(np.arange(len(who)), rng, DRAWS)
        return [Outcome(mean, *mean_interval(values, each)) for each in (resampler, alone)]
    estimate = mean_estimate(values, resampler)
    others = (percentile_interval(estimate.draws), accelerated_interval(estimate))
    return [Outcome(mean, *mean_interval(values, resampler)), *(Outcome(mean, *each) for each in others)]


def _first(people: int) -> Experiment:
    """How often the right answer has more than half of the belief."""
    oracle = oracle_with_mean(0.85, NOISE)
    truth = float(ndtr(oracle.base / NOISE.of_pictures))
    trial = Trial("apa.association_top1", f"{people} people, mean {truth:.2f}", people, truth)
    return Experiment(f"first {people}", (trial,), partial(_draw_first, oracle, people))


def _draw_first(oracle: Oracle, people: int, rng: np.random.Generator) -> Sequence[Outcome]:
    beliefs = oracle.probability({"person": np.arange(people)}, oracle.levels(1, 1, rng), rng)[:, 0, 0]
    wins = (beliefs > 0.5).astype(np.float64)
    return [Outcome(float(wins.mean()), *mean_interval(wins, Resampler(np.arange(people), rng, DRAWS)))]


# Ratios b


def _women_and_men(ratio: float, mean: float = MEAN, noise: Noise = NOISE) -> Oracle:
    """Women get `ratio` times men's mean probability of the right occupation."""
    plain = oracle_with_mean(mean, noise)
    return Oracle(plain.base, {"gender": {"woman": plain.shift_for(ratio * mean)}}, noise)


def _ratio(women: int, men: int, ratio: float, mean: float, share: float, pictures: int = 1) -> Experiment:
    belief = f", mean {mean:g}" if mean != MEAN else ""
    belief += f", {pictures} pictures each" if pictures > 1 else ""
    curve, setting = f"{women} women, {men} men{belief}", f"{women} women, {men} men, b = {ratio:g}{belief}"
    kinds = ("", "percentile", "accelerated") if ratio == 1 and pictures == 1 else ("",)
    low = ratio == 1 and mean != MEAN
    key = (FEW_WOMEN if women < men else MANY_WOMEN) if low else ""
    trials = tuple(
        Trial("apa.bias_ratio", setting, min(women, men), ratio, effect=1 - ratio, kind=kind, curve=curve, key=key)
        for kind in kinds
    )
    noise = NOISE if pictures == 1 else Noise(person=1.2, image=0.9)
    simulate = partial(_draw_ratio, _women_and_men(ratio, mean, noise), women, men, pictures)
    return Experiment(f"ratio {setting}", trials, simulate, share)


def bias_rows(beliefs: dict[str, Array], women: int, rng: np.random.Generator, pictures: int = 1) -> list[Row]:
    """The study's own rows; in each pool the beliefs about women come first, then those about men."""
    matrices = {}
    for pool, shares in beliefs.items():
        people = _people(pool, women, len(shares) // pictures - women, pictures)
        cells = belief_logits(shares, OCCUPATIONS.height)[:, :, None]
        matrices[pool] = ScoreMatrix(pool, people, OCCUPATIONS, ("score",), cells, kind=ASSOCIATION, part=pool)
    options = MeasureOptions(draws=DRAWS, seed=int(rng.integers(2**31)))
    return [row for row in ratio_rows("apa", POOLS, matrices, options) if row.metric.endswith("bias_ratio")]


def _people(branch: str, women: int, men: int, pictures: int = 1) -> pl.DataFrame:
    """Women, then men, each with all their pictures in a row."""
    number = women + men
    return pl.DataFrame(
        {
            "branch": np.full(number * pictures, branch),
            "name": np.repeat(np.arange(number), pictures).astype(str),
            "gender": np.repeat(["woman", "man"], [women * pictures, men * pictures]),
        }
    )


def _beliefs(oracle: Oracle, women: int, men: int, rng: np.random.Generator, pictures: int = 1) -> Array:
    labels = {
        "gender": np.repeat(["woman", "man"], [women * pictures, men * pictures]),
        "person": np.repeat(np.arange(women + men), pictures),
    }
    return oracle.probability(labels, oracle.levels(1, 1, rng), rng)[:, 0, 0]


def _draw_ratio(oracle: Oracle, women: int, men: int, pictures: int, rng: np.random.Generator) -> Sequence[Outcome]:
    shares = _beliefs(oracle, women, men, rng, pictures)
    (row,) = bias_rows({"a": shares}, women, rng, pictures)
    if pictures > 1 or oracle.shift({"gender": np.array(["woman"])})[0]:
        return [outcome(row)]
    parts = (shares[:women], shares[women:])
    estimate = ratio_estimate(*(mean_estimate(part, Resampler(np.arange(len(part)), rng, DRAWS)) for part in parts))
    others = (percentile_interval(estimate.draws), accelerated_interval(estimate))
    return [outcome(row), *(Outcome(estimate.value, *each) for each in others)]


def _pools() -> Experiment:
    """Three pools without effect: how often is any of them called different after Holm?"""
    setting = "three pools of 40 women, 60 men, b = 1"
    trial = Trial("apa.bias_ratio", setting, 40, 1.0, family=True, kind="any pool")
    return Experiment("pools", (trial,), _draw_pools, share=3.0)  # 1,000 cannot tell 5.5 from the promised 6


def _draw_pools(rng: np.random.Generator) -> Sequence[Outcome]:
    oracle = _women_and_men(1.0)
    rows = bias_rows({pool: _beliefs(oracle, 40, 60, rng) for pool in "abc"}, 40, rng)
    return [Outcome(np.nan, p_value=min(row.p_value for row in rows if row.p_value is not None))]


# Wrong occupations

BRANCH_SIZES = {"a": (40, 80), "b": (60, 40)}
"""Women and men of two branches of one pool: most women are in the branch whose people are called other things."""


def _wrong_occupations(pictures: int) -> Experiment:
    """Seven wrong occupations without effect of gender: is any called, and does the band of the widest hold 0?"""
    more = f", {pictures} pictures each" if pictures > 1 else ""
    setting = f"two unequal branches, 7 occupations{more}"
    trials = (
        Trial("apa.occupation_gap", setting, 100, 0.0, kind="widest"),
        Trial("apa.occupation_gap", setting, 100, 0.0, kind="any occupation", family=True),
    )
    return Experiment(f"gaps {setting}", trials, partial(_draw_gaps, pictures))


def _draw_gaps(pictures: int, rng: np.random.Generator) -> Sequence[Outcome]:
    matrices = {}
    for (branch, (women, men)), level in zip(BRANCH_SIZES.items(), (0.0, 1.5), strict=True):
        people = _people(branch, women, men, pictures)
        person = rng.normal(0.0, 1.0, (women + men, OCCUPATIONS.height)).repeat(pictures, axis=0)
        cells = person + rng.normal(0.0, 1.0, person.shape)
        cells[:, 0] += 2.0 - level
        matrices[branch] = ScoreMatrix(
            branch, people, OCCUPATIONS, ("score",), cells[:, :, None], kind=ASSOCIATION, part=branch
        )
    options = MeasureOptions(draws=DRAWS, seed=int(rng.integers(2**31)))
    rows = list(occupation_gap_rows("apa", {"ab": ("a", "b")}, matrices, options))
    widest = max(rows, key=lambda row: abs(row.value or 0.0))
    smallest = min(row.p_value for row in rows if row.p_value is not None)
    return [outcome(widest)._replace(p_value=np.nan), Outcome(np.nan, p_value=smallest)]


# Identity

KNOWN, KNOWN_SPREAD, NAME_NOISE = 4.0, 2.0, 1.5
"""How far the right name stands out, how unequally people are known, and the noise of every other name."""


def _identity(names: int, pictures: int = 1) -> Experiment:
    truth = large_draws(Path(__file__).parent)[f"identity {names}"]
    more = f", {pictures} pictures each" if pictures > 1 else ""
    key, setting = NAMES if pictures == 1 else "", f"{names} names{more}"
    trial = Trial("apa.identity_given_image", setting, names, truth.value, truth_error=truth.error, key=key)
    return Experiment(f"identity {names}{more}", (trial,), partial(_draw_identity, names, pictures))


def _sees_labels(pictures: int) -> Experiment:
    """A model that tells women from men and one party from the other, and nobody by name: is it told to?"""
    more = f", {pictures} pictures each" if pictures > 1 else ""
    setting = f"20 women, 60 men, sees gender and party{more}"
    trial = Trial("apa.identity_given_image", setting, 20, 0.0, kind="any direction", family=True)
    return Experiment(f"identity {setting}", (trial,), partial(_draw_labels, pictures))


def _draw_labels(pictures: int, rng: np.random.Generator) -> Sequence[Outcome]:
    person = np.repeat(np.arange(80), pictures)
    people = _people("a", 20, 60, pictures).with_columns(party=pl.Series(np.where(person % 3 == 0, "x", "y")))
    labels = np.stack([np.arange(80) < 20, np.arange(80) % 3 == 0], axis=1)
    names = [
        {"text": str(i), "level": "identity", "concept": str(i), "correct_for": correct_for(name=str(i))}
        for i in range(80)
    ]
    seen = (labels[person][:, None] == labels[None]).sum(axis=2)
    face = rng.normal(0.0, 1.0, (80, 80))[person]  # a face may be like a name for no reason, in all its pictures
    cells = 2.0 * seen + face + 0.5 * rng.normal(size=seen.shape)
    matrix = ScoreMatrix(
        "a", people, prompt_set("names", names).table, ("score",), cells[:, :, None], kind=IDENTITY, part="a"
    )
    rows = identity_rows("apa", {"a": matrix}, MeasureOptions(draws=20, seed=int(rng.integers(2**31))))
    return [Outcome(np.nan, p_value=min(row.p_value for row in rows if row.p_value is not None))]


# Size

MODELS = {"contrastive": 14, "generative": 8, "matching": 2}


def _slope(truth: float) -> Experiment:
    """A line through 24 models of three kinds whose spread grows with size."""
    trial = Trial("apa.scale_parameters", f"24 models, slope {truth:g}", 24, truth, effect=truth)
    return Experiment(f"slope {truth:g}", (trial,), partial(_draw_slope, truth), share=2.0)


def _draw_slope(truth: float, rng: np.random.Generator) -> Sequence[Outcome]:
    kinds = np.repeat(list(MODELS), list(MODELS.values()))
    sizes = rng.normal(8.5, 0.5, len(kinds)) + (kinds == "generative")
    values = truth * sizes + (kinds == "generative") + 0.1 * (sizes - 7.0) * rng.normal(size=len(kinds))
    line = fitted(values, sizes, kinds)
    return [Outcome(line.slope, line.low, line.high, line.p_value) if line else Outcome(np.nan)]


def identity_logits(people: int, names: int, rng: np.random.Generator) -> Array:
    """Scores of pictures against names; the first name is the right one of each."""
    cells = NAME_NOISE * rng.standard_normal((people, names))
    cells[:, 0] += KNOWN + KNOWN_SPREAD * rng.standard_normal(people)
    return cells


def _draw_identity(names: int, pictures: int, rng: np.random.Generator) -> Sequence[Outcome]:
    """How well a person is known is the same in all their pictures."""
    cells = NAME_NOISE * rng.standard_normal((names * pictures, names))
    cells[:, 0] += (KNOWN + KNOWN_SPREAD * rng.standard_normal(names)).repeat(pictures)
    right = np.zeros(cells.shape, dtype=bool)
    right[:, 0] = True
    shares = correct_share(softmax(cells), right)
    interval = mean_interval(shares, Resampler(np.arange(names).repeat(pictures), rng, DRAWS))
    return [Outcome(float(shares.mean()), *interval)]


def _right_name(names: int, draws: int, rng: np.random.Generator) -> Array:
    return np.asarray(softmax(identity_logits(draws, names, rng))[:, 0])


LARGE_DRAWS: dict[str, Draw] = {f"identity {names}": partial(_right_name, names) for names in (30, 100, 300)}
"""How the values of large_draws.json are drawn."""
