"""Trials in which people have several images, groups are not equally large, and a reader picks the widest of many.

Everyone has a level of their own, so that images of one person are alike. Either a person belongs to one group
(photographs) or is shown in every group (a face drawn as a man and as a woman).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.glasshouse.design import design
from beholder.studies.perception.bias import markedness_rows, sc_weat_rows
from beholder.studies.perception.curves import gap_rows
from beholder.studies.perception.design import effect_rows, variance_rows
from beholder.studies.perception.group_curves import group_curve_rows
from beholder.studies.perception.induced import induced_rows
from beholder.studies.perception.oracle import oracle_scores, planted_effect
from beholder.studies.perception.prompts import POSITIVE, Dimension
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import Judged, group_by
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

Array = npt.NDArray[np.float64]
DRAWS = 200
MEN, WOMEN = "man", "woman"
OWN, PICTURE = 1.0, 0.5
"""Standard deviations of what people bring, and of what a picture adds."""
TESTED = ("gap", "sc_weat", "skew", "ndkl", "variance_share", "markedness_gap")
ALL_AT_ONCE = "all at once"
"""An outcome that covers where all intervals of a family cover: the least room below and above, around 0."""
WORDS = ("warm", "friendly", "male", "female")
DIMENSION = Dimension("warmth", "Warmth", WORDS[:2], POSITIVE)
NOT_TRUE = float("nan")
SLOPES = (25.0, 35.0, 45.0, 55.0)


def several_image_experiments() -> Iterator[Experiment]:
    """Every experiment of this file."""
    for crossed in (False, True):
        for effect in (0.0, 0.5):
            yield _people(effect, crossed=crossed)
    yield _unequal_pool()
    for effect in (0.0, 0.4):
        yield _widest(effect)
    yield _curves()
    yield _effects_at_once()
    yield _pairs()


# Two groups


def _people(effect: float, *, crossed: bool) -> Experiment:
    who = "100 people shown in both groups" if crossed else "130 people, 100 in one group and 30 in the other"
    setting = f"{who}, 1 to 5 images each, difference {effect:g}"
    truth = {"gap": effect} if effect else {"gap": 0.0, "sc_weat": 0.0, "skew": 0.0, "markedness_gap": 0.0}
    n = 100 if crossed else 30
    trials = tuple(
        Trial(f"perception.{name}", setting, n, truth.get(name, NOT_TRUE), effect=effect, null=_null(name, effect))
        for name in TESTED
    )
    return Experiment(f"people {setting}", trials, partial(_draw_people, effect, crossed), 0.5)


def _null(name: str, effect: float) -> bool:
    """Markedness asks of other words, which know nothing here."""
    return effect == 0 or name == "markedness_gap"


def people_world(effect: float, crossed: bool, rng: np.random.Generator) -> Judged:
    """People with one to five images in each group they are shown in; men score `effect` higher on two words."""
    person = np.tile(np.arange(100), 2) if crossed else np.arange(130)
    gender = np.repeat([MEN, WOMEN], 100 if crossed else [100, 30])
    images = np.repeat(np.arange(len(person)), rng.integers(1, 6, len(person)))
    own = rng.normal(0, OWN, (100, 1))[person] if crossed else 0.0
    blocks = own + rng.normal(0, OWN, (len(person), len(WORDS) + 1))
    cells = blocks[images] + rng.normal(0, PICTURE, (len(images), len(WORDS) + 1))
    cells[:, :2] += effect * (gender[images] == MEN)[:, None]
    names = {"person": person[images], "gender": gender[images]}
    return _judged(pl.DataFrame(names), cells[:, :-1], cells[:, -1], (DIMENSION,), WORDS)


def _judged(
    images: pl.DataFrame, cosine: Array, neutral: Array, dimensions: tuple[Dimension, ...], words: Sequence[str]
) -> Judged:
    named = images.with_columns(image_id=pl.int_range(pl.len()).cast(pl.String))
    return Judged(named, list(words), cosine, cosine - neutral[:, None], neutral, dimensions, "cosine", {})


def _draw_people(effect: float, crossed: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    judged, options = people_world(effect, crossed, rng), _options(rng)
    groups = group_by(judged.images, ("gender",))
    rows = [*gap_rows(judged, options), *sc_weat_rows(judged, [groups], options), *variance_rows(judged, options)]
    rows += [*ranking_rows(judged, [groups], options), *markedness_rows(judged, groups, options)]
    return [outcome(_first(rows, name)) for name in TESTED]


def _first(rows: Sequence[Row], name: str) -> Row:
    """The tested row of a metric: of two groups the first, of dimensions their mean."""
    rest = [row for row in rows if row.metric == f"perception.{name}" and row.p_value is not None]
    return next(row for row in rest if row.concept == "mean" or name not in ("skew", "ndkl", "sc_weat"))


def _options(rng: np.random.Generator, *, compat: bool = False) -> MeasureOptions:
    return MeasureOptions(draws=DRAWS, compat=compat, seed=int(rng.integers(2**31)))


# The released draw, which is not balanced


def _unequal_pool() -> Experiment:
    setting = "the released draw: 300 of one group, 60 of the other, scores without preference"
    pool = float(np.log(300 / 360 / 0.5))
    trials = (Trial("perception.skew", setting, 60, pool), Trial("perception.ndkl", setting, 60, NOT_TRUE))
    return Experiment("unequal pool", trials, _draw_pool, 0.5)


def _draw_pool(rng: np.random.Generator) -> Sequence[Outcome]:
    images = pl.DataFrame({"gender": np.repeat([MEN, WOMEN], [300, 60])}).with_columns(released_balance=True)
    cells = rng.normal(size=(360, len(WORDS) + 1))
    judged = _judged(images, cells[:, :-1], cells[:, -1], (DIMENSION,), WORDS)
    rows = list(ranking_rows(judged, [group_by(images, ("gender",))], _options(rng, compat=True)))
    return [outcome(_first(rows, name)) for name in ("skew", "ndkl")]


# The widest of many


def _widest(effect: float) -> Experiment:
    setting = f"3 groups of 40, 80 and 40 people with 1 to 3 images, 8 dimensions, the widest of 24, gaps {effect:g}"
    trial = Trial("perception.gap", setting, 100, 0.0, effect=effect, kind=ALL_AT_ONCE, family=True)
    return Experiment(f"widest {effect:g}", (trial,), partial(_draw_widest, effect), 0.5)


def _draw_widest(effect: float, rng: np.random.Generator) -> Sequence[Outcome]:
    race = np.repeat(["a", "b", "c"], [40, 80, 40])
    images = np.repeat(np.arange(160), rng.integers(1, 4, 160))
    words = [f"w{k}" for k in range(8)]
    shared = 0.5 * rng.normal(size=(160, 1))
    blocks = shared + rng.normal(0, OWN, (160, 8)) + effect * (race == "a")[:, None]
    cells = blocks[images] + rng.normal(0, PICTURE, (len(images), 8))
    table = pl.DataFrame({"person": images, "race": race[images]})
    judged = _judged(table, cells, np.zeros(len(images)), tuple(Dimension(w, w, (w,)) for w in words), words)
    truths = {("a", "b"): effect, ("a", "c"): effect, ("b", "c"): 0.0}
    rows = [row for row in gap_rows(judged, _options(rng)) if row.subset == "race"]
    return [at_once(rows, [truths[str(row.group), str(row.against)] for row in rows])]


def at_once(rows: Sequence[Row], truths: Sequence[float]) -> Outcome:
    """How far the family's intervals are from missing any truth, around 0; and the smallest p."""
    known = [
        (row, truth) for row, truth in zip(rows, truths, strict=True) if row.low is not None and row.low == row.low
    ]
    low = max(float(row.low or 0.0) - truth for row, truth in known)
    high = min(float(row.high or 0.0) - truth for row, truth in known)
    return Outcome(0.0, low, high, min(float(row.p_value or 1.0) for row, _ in known))


# Curves of crossed groups


def _curves() -> Experiment:
    setting = "6 crossed groups of unequal size over four ages, 2 images a person, slopes and curvature alike"
    trial = Trial("perception.slope_departure", setting, 100, 0.0, kind=ALL_AT_ONCE, family=True)
    return Experiment("curves", (trial,), _draw_curves, 0.5)


def _draw_curves(rng: np.random.Generator) -> Sequence[Outcome]:
    people = 500
    race = rng.choice(["a", "b", "c"], people, p=[0.5, 0.3, 0.2])
    labels = {"race": race, "gender": rng.choice([MEN, WOMEN], people), "age": rng.choice(SLOPES, people)}
    images = np.repeat(np.arange(people), 2)
    words = ["w0", "w1"]
    blocks = rng.normal(0, OWN, (people, 2)) + 0.02 * labels["age"][:, None]
    cells = blocks[images] + rng.normal(0, PICTURE, (len(images), 2))
    table = pl.DataFrame({"person": images, **{name: values[images] for name, values in labels.items()}})
    judged = _judged(table, cells, np.zeros(len(images)), tuple(Dimension(w, w, (w,)) for w in words), words)
    rows = [row for row in group_curve_rows(judged, _options(rng)) if row.metric.endswith("_departure")]
    return [at_once(rows, [0.0] * len(rows))]


# The drawn design


@cache
def _design() -> pl.DataFrame:
    """The drawn design without turned heads: a third of the pictures shows as much."""
    return pl.DataFrame(design()).filter(pl.col("pose") == 0)


def _effects_at_once() -> Experiment:
    setting = "10 identities, every effect of the drawn design"
    trial = Trial("perception.causal_effect", setting, 100, 0.0, effect=0.01, kind=ALL_AT_ONCE, family=True)
    return Experiment("effects at once", (trial,), _draw_effects, 0.5)


def _draw_effects(rng: np.random.Generator) -> Sequence[Outcome]:
    images = _design()
    scores = oracle_scores(images, rng, columns=1)
    judged = _judged(images, scores, np.zeros(len(scores)), (Dimension("w", "w", ("w",)),), ["w"])
    rows = [row for row in effect_rows(judged, _options(rng)) if row.metric == "perception.causal_effect"]
    truths = [planted_effect(str(row.subset), str(row.group), str(row.against)) for row in rows]
    return [at_once(rows, truths)]


def _pairs() -> Experiment:
    setting = "10 identities that differ in noise, nothing planted: light against smiling"
    return Experiment("pairs", (Trial("perception.induced_variation_test", setting, 100, 0.5),), _draw_pairs, 0.5)


def _draw_pairs(rng: np.random.Generator) -> Sequence[Outcome]:
    images = _design()
    _, seeds = np.unique(images["seed"].to_numpy(), return_inverse=True)
    scores = rng.gamma(2.0, 0.5, seeds.max() + 1)[seeds][:, None] * rng.normal(0, 0.01, (images.height, 2))
    words = ["w0", "w1"]
    judged = _judged(images, scores, np.zeros(len(scores)), tuple(Dimension(w, w, (w,)) for w in words), words)
    rows = [row for row in induced_rows(judged, _options(rng)) if row.metric == "perception.induced_variation_test"]
    return [outcome(next(row for row in rows if {row.group, row.against} == {"lighting", "smiling"}))]
