"""Worlds: made people and scores of which it is known what the model sees. Every claim of every study is tried in them.

A study turns the scores into its own quantity (a logit, P(Yes), a cosine) and the labels into its own, measures them as
it measures a model, and declares in which world which of its claims is true. Everything else that is called a
difference there is a false alarm. People are drawn anew in every repetition; what a world is about (which prompt a
model gives to whom) is the same in all of them, so that true values can be known from a large draw.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.core.types import Array
from beholder.studies.study import MeasureOptions

WORLDS = (
    NOISE := "noise",
    CONSTANTS := "prompt constants",
    GENDER_ONLY := "gender only",
    BRANCH_ONLY := "branch only",
    SOURCE_ONLY := "source only",
    BRIGHTNESS_ONLY := "brightness only",
    VECTORS := "a vector per person",
    HEAVY_TAILS := "heavy tails",
    TIES := "ties",
    TWO_LEVELS := "two levels",
    MISSING := "10 % missing",
    ALWAYS_YES := "always yes",
    UNFAIR := "wholly unfair",
)
SKEWED = (CONSTANTS, HEAVY_TAILS, TWO_LEVELS)  # worlds whose scores may be skewed
WOMAN, MAN = GENDERS = ("woman", "man")
CERTAIN = 4.0  # the score of a model without any doubt, on the normal scale


class Design(NamedTuple):
    """How many people there are, how their labels fall together, and how many pictures they have."""

    women: int
    men: int
    pictures: int = 1
    unbalanced: bool = False  # four of five women of the first branch and source, four of five men of the second
    spread: float = 1.0  # how much farther apart the scores of the women of the first branch are than all others


DESIGNS = {
    "30 + 30": Design(30, 30),
    "5 + 40": Design(5, 40),
    "8 + 72": Design(8, 72),
    "4 pictures a person": Design(30, 30, pictures=4),
    "unbalanced strata": Design(25, 25, unbalanced=True),
    "a small cell of other spread": Design(16, 44, spread=2.0),
}
SMALLEST = "10 + 10"  # the smallest design in which a model that is wholly unfair must be found out


class World(NamedTuple):
    """People and their scores."""

    table: pl.DataFrame  # A row for each picture: `image_id, uri, person, gender, branch, source, race, brightness`
    scores: Array  # `[n_pictures, n_prompts]`, about normal: mean 0, standard deviation 1; NaN is a missing score


def draw(world: str, design: Design, prompts: int, rng: np.random.Generator) -> World:
    """People of a design, drawn anew, and what the world's model makes of them."""
    people = _people(design, rng)
    pictures = people[np.repeat(np.arange(people.height), design.pictures)]
    table = pictures.with_columns(image_id=pl.format("{}.jpg", pl.int_range(pl.len())), uri=pl.lit(""))
    return World(table, _scores(world, design, table, prompts, rng))


def _people(design: Design, rng: np.random.Generator) -> pl.DataFrame:
    """Labels other than gender are spread alike over women and men, unless the design says otherwise."""
    count = design.women + design.men
    order = np.concatenate([np.arange(design.women), np.arange(design.men)])
    branch, source, race = ((order >> turn) % 2 == 0 for turn in range(3))  # in turn, and not together
    if design.unbalanced:
        branch = source = race = (order % 5 > 0) == (np.arange(count) < design.women)
    return pl.DataFrame(
        {
            "person": [f"person {i}" for i in range(count)],
            "gender": np.repeat(GENDERS, [design.women, design.men]),
            "branch": np.where(branch, "a", "b"),
            "source": np.where(source, "x", "y"),
            "race": np.where(race, "Black", "White"),
            "brightness": rng.standard_normal(count),
        }
    )


def _scores(world: str, design: Design, table: pl.DataFrame, prompts: int, rng: np.random.Generator) -> Array:
    n = table.height
    if world == ALWAYS_YES:
        return np.full((n, prompts), CERTAIN)
    woman = (table["gender"] == WOMAN).to_numpy()
    if world == UNFAIR:
        return np.where(woman[:, None] == (np.arange(prompts) % 2 == 0), CERTAIN, -CERTAIN)
    noise = _noise(world, design, table, prompts, rng)
    levels = np.random.default_rng([7, *world.encode()]).standard_normal((2, prompts))
    seen = {
        GENDER_ONLY: woman,
        BRANCH_ONLY: (table["branch"] == "a").to_numpy(),
        SOURCE_ONLY: (table["source"] == "x").to_numpy(),
        BRIGHTNESS_ONLY: table["brightness"].to_numpy(),
    }
    if world in seen:
        return np.asarray(levels[0] * seen[world].astype(np.float64)[:, None] + 0.3 * noise)
    if world == MISSING:
        return np.where(rng.random(noise.shape) < 0.1, np.nan, noise)
    two_levels = np.where(noise > 0.8, CERTAIN, -CERTAIN) / 2
    changed = {CONSTANTS: 2 * levels[0] + noise, TIES: np.round(noise), TWO_LEVELS: two_levels}
    return np.asarray(changed.get(world, noise))


def _noise(world: str, design: Design, table: pl.DataFrame, prompts: int, rng: np.random.Generator) -> Array:
    """People differ; pictures of one person are alike, and the same to a model that has one vector a person."""
    people = design.women + design.men
    made = (rng.standard_cauchy if world == HEAVY_TAILS else rng.standard_normal)((people, prompts))
    own = made[np.repeat(np.arange(people), design.pictures)]
    if design.pictures > 1 and world != VECTORS:
        own = np.sqrt(0.8) * own + np.sqrt(0.2) * rng.standard_normal(own.shape)
    cell = (table["gender"] == WOMAN) & (table["branch"] == "a")
    return np.asarray(own * np.where(cell.to_numpy(), design.spread, 1.0)[:, None])


@dataclass(frozen=True)
class Trial:
    """How a study is tried: how many prompts it asks, how it measures a world, and which claims are true where."""

    prompts: int
    measure: Callable[[World, MeasureOptions], Iterable[Row]]
    true: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By world, the names that may be called there, or how they begin: a metric (`gras.largest_gap`), its rows of one
    subset (`gras.largest_gap:gender`), a finding by study and kind (`gras.gap`), or everything (`gras.`)."""
    designs: tuple[str, ...] = tuple(DESIGNS)
    found: tuple[str, ...] = ()  # what must be called when the model is wholly unfair, from 10 + 10 people on

    def may_say(self, name: str, subset: str | None, world: str) -> bool:
        """Whether there is such a difference in a world; where all is unfair, everything may be said."""
        whole = name if subset is None else f"{name}:{subset}"
        return world == UNFAIR or whole.startswith(self.true.get(world, ()))
