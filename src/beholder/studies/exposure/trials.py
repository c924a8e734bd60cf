"""Trials of exposure's metrics: worlds of people who are named by chance, with the true ratios in closed form.

A person is named λ times on average, log λ is normal around the level of their branch, and for women λ is `ratio` times
that. The unequal pools have many women where captions name people often: the crude ratio is then far above 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import poisson

from beholder.metrics.multiplicity import ALPHA
from beholder.studies.exposure.measures import UNADJUSTED, identity_rows
from beholder.studies.exposure.ratios import CRUDE, EVERYONE, MEAN, RATIO, TYPICAL, corrected, ratio_rows
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome
from beholder.studies.trial_summary import Summaries, Weakness

SPREAD = 1.2
"""Standard deviation of log λ between people of a branch."""
DRAWS, MANY = 999, 2000
"""Draws behind an interval; a count above which the logarithm of a Poisson number is that of its mean."""
FAMOUS = "a few famous people decide a mean"


class World(NamedTuple):
    """Women, men and the level of log λ in each branch."""

    name: str
    women: tuple[int, ...]
    men: tuple[int, ...]
    levels: tuple[float, ...]


APA = World("the five branches of APA", (40, 30, 126, 24, 33), (60, 75, 310, 76, 67), (4.0, 3.0, 1.0, 2.0, 0.0))
UNEQUAL = World(
    "five branches, more women where captions name people often",
    (100, 80, 60, 40, 20),
    (20, 40, 60, 80, 100),
    (4.0, 3.0, 2.0, 1.0, 0.0),
)


def exposure_experiments() -> Iterator[Experiment]:
    """Ratios with and without a difference, and a model that does not know whom captions name."""
    for world in (APA, UNEQUAL):
        for ratio in (1.0, 0.85, 0.6):
            yield _ratios(world, ratio, 1.0 if ratio == 1 else 0.4)
    yield _identity()


def made_people(world: World, ratio: float, rng: np.random.Generator) -> pl.DataFrame:
    """The people of a world with their captions."""
    parts = []
    for number, (women, men, level) in enumerate(zip(*world[1:], strict=True)):
        gender = np.repeat(["woman", "man"], [women, men])
        factor = np.where(gender == "woman", ratio, 1.0)
        captions = rng.poisson(factor * np.exp(level + SPREAD * rng.standard_normal(len(gender))))
        parts.append(
            pl.DataFrame({"branch": [f"branch {number}"] * len(gender), "gender": gender, "captions": captions})
        )
    table = pl.concat(parts)
    names = pl.Series("name", [f"person {i}" for i in range(table.height)])
    return table.with_columns(names, ambiguous=pl.lit(None, pl.String))


def true_ratio(world: World, ratio: float, concept: str) -> float:
    """The ratio of geometric means of 1 + captions (`TYPICAL`, or crude), or of means (`MEAN`)."""
    women, men = np.array(world.women), np.array(world.men)
    if concept == CRUDE[TYPICAL]:
        weights = women / women.sum(), men / men.sum()
    else:
        both = women * men / (women + men)
        weights = both / both.sum(), both / both.sum()
    if concept == MEAN:
        return ratio
    logs = [np.array([_mean_log(level + np.log(factor)) for level in world.levels]) for factor in (ratio, 1.0)]
    return float(np.exp(weights[0] @ logs[0] - weights[1] @ logs[1]))


def _mean_log(level: float) -> float:
    """The mean of log(1 + captions) where log λ is normal around `level`."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    means = np.exp(level + SPREAD * nodes)
    counts = np.arange(2 * MANY)
    logs = [np.log1p(mean) if mean > MANY else poisson.pmf(counts, mean) @ np.log1p(counts) for mean in means]
    return float(weights @ np.array(logs) / weights.sum())


def _ratios(world: World, ratio: float, share: float) -> Experiment:
    setting, n, none = f"{world.name}, λ × {ratio:g}", min(*world.women, *world.men), ratio == 1
    truths = [true_ratio(world, ratio, concept) for concept in (TYPICAL, CRUDE[TYPICAL], MEAN)]
    people = sum(world.women) + sum(world.men)
    trials = [
        Trial(RATIO, setting, people, truths[0], effect=1 - ratio, curve=world.name),
        Trial(RATIO, setting, people, truths[1], effect=1 - ratio, kind="crude"),
        Trial(RATIO, setting, people, truths[2], effect=1 - ratio, kind="of the means", exception=FAMOUS),
    ]
    if none:
        trials.append(Trial(RATIO, setting, n, 1.0, family=True, kind="any branch"))
    return Experiment(f"exposure {setting}", tuple(trials), partial(_draw_ratios, world, ratio), share)


def _draw_ratios(world: World, ratio: float, rng: np.random.Generator) -> Sequence[Outcome]:
    people, options = made_people(world, ratio, rng), MeasureOptions(draws=DRAWS, seed=int(rng.integers(2**31)))
    pooled = {row.concept: outcome(row) for row in ratio_rows(people, EVERYONE, options)}
    outcomes = [pooled[TYPICAL], pooled[CRUDE[TYPICAL]], pooled[MEAN]]
    if ratio == 1:
        branches = people.partition_by("branch", as_dict=True)
        rows = [row for (name,), part in branches.items() for row in ratio_rows(part, str(name), options)]
        p_values = [row.p_value for row in corrected(rows) if row.p_value is not None]
        outcomes.append(Outcome(np.nan, p_value=min(p_values, default=np.nan)))
    return outcomes


def _identity() -> Experiment:
    """A model that knows some branches better than others, and nobody for being named."""
    metrics = ("exposure.identity_correlation", "exposure.identity_gap")
    trials = tuple(Trial(metric, f"{UNEQUAL.name}, no link", 600, 0.0, null=True) for metric in metrics)
    return Experiment("exposure identity", trials, _draw_identity, 0.5)


def _draw_identity(rng: np.random.Generator) -> Sequence[Outcome]:
    people = made_people(UNEQUAL, 1.0, rng)
    levels: npt.NDArray[np.float64] = people["branch"].rank("dense").to_numpy() / 10
    people = people.with_columns(identity=pl.Series(rng.beta(4 * levels, 4 * (1 - levels))))
    options = MeasureOptions(draws=300, seed=int(rng.integers(2**31)))
    rows = [row for row in identity_rows(people, options) if row.subset == EVERYONE]
    chosen = [row for row in rows if row.concept in (None, UNADJUSTED)]
    return [outcome(row)._replace(p_value=np.nan) for row in chosen]


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """What the crude ratio says where women are named as often as men of their branch."""
    setting = f"{UNEQUAL.name}, λ × 1"
    plain, crude = summaries.one(RATIO, setting=setting), summaries.one(RATIO, kind="crude", setting=setting)
    if plain and crude:
        yield Weakness(
            RATIO,
            "The crude ratio follows branches",
            f"Where women are named as often as men of their branch, but more women are in branches that captions name "
            f"often, the crude ratio is {crude.mean:.2f} on average. The ratio within branches is {plain.mean:.2f}.",
            abs(crude.mean - 1) > ALPHA,
        )
