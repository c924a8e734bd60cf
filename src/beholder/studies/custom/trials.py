"""Trials of own prompts: how often noise is said to differ, and how often a gap's interval holds the truth.

In worlds without any effect people differ from each other, several of their images look alike, and groups are of
unequal sizes. A repetition counts as a false alarm if anything at all is shown: a gap, a slope or an intersection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr

from beholder.core.results import Row
from beholder.prompts.prompt_set import PromptSet, prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.gaps import shown
from beholder.studies.custom.study import custom_study
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

PERSON, IMAGE = 1.0, 0.5
"""Spread of people, and of a person's images, on the scale of logits."""
SAFE = "the interval holds for all prompts and groups together, more than one gap needs"


class World(NamedTuple):
    """How much is compared."""

    people: int
    images: int
    """Of each person."""
    prompts: int
    attributes: tuple[str, ...]

    @property
    def setting(self) -> str:
        """In words."""
        several = f", {self.images} images each" if self.images > 1 else ""
        return f"{self.people} people{several}, {self.prompts} prompts by {', '.join(self.attributes)}"


def custom_experiments() -> Iterator[Experiment]:
    """Noise by one attribute and by many, with one image a person and with several; then a planted gap."""
    everything = ("gender", "tone", "age")
    for world in (
        World(100, 1, 2, ("gender",)),
        World(60, 4, 10, ("gender",)),
        World(150, 1, 10, ("tone",)),
        World(150, 2, 10, everything),
        World(80, 3, 3, ("age",)),
    ):
        yield _noise(world)
    yield _gap(100, 1)
    yield _gap(100, 3)


def _noise(world: World) -> Experiment:
    trial = Trial(
        "custom.gap", f"{world.setting}, no effect", world.people // 10, 0.0, family=True, kind="anything shown"
    )
    return Experiment(f"own prompts {world.setting}", (trial,), partial(_draw_noise, world), 0.4)


def made_images(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """People with labels that mean nothing: genders 3 to 7, ten skin tones, ages from 1 to 89."""
    labels = {
        "person": [f"person {i}" for i in range(world.people)],
        "gender": rng.choice(["woman", "man"], world.people, p=[0.3, 0.7]),
        "tone": rng.integers(1, 11, world.people).astype(str),
        "age": rng.integers(1, 90, world.people),
    }
    table = pl.DataFrame(labels)[np.repeat(np.arange(world.people), world.images)]
    ids = pl.Series("image_id", [str(i) for i in range(table.height)])
    return table.with_columns(ids, uri=pl.lit(""))


def made_prompts(count: int) -> PromptSet:
    """Prompts of one level."""
    return prompt_set("made", [{"text": f"prompt {i}", "level": "all", "concept": f"prompt {i}"} for i in range(count)])


def measured(world: World, images: pl.DataFrame, logits: np.ndarray, rng: np.random.Generator) -> list[Row]:
    """The study's own rows."""
    prompts = made_prompts(world.prompts)
    matrix = ScoreMatrix("custom", images, prompts.table, ("score",), logits[:, :, None])
    (measure,) = custom_study(prompts, by=world.attributes).measures
    return list(measure({"custom": matrix}, MeasureOptions(draws=100, seed=int(rng.integers(2**31)))))


def noise(world: World, rng: np.random.Generator) -> np.ndarray:
    """Logits of each image and prompt: people differ, and their images a little."""
    people = PERSON * rng.standard_normal((world.people, world.prompts))
    each = IMAGE * rng.standard_normal((world.people * world.images, world.prompts))
    return np.repeat(people, world.images, axis=0) + each


def _draw_noise(world: World, rng: np.random.Generator) -> Sequence[Outcome]:
    rows = measured(world, made_images(world, rng), noise(world, rng), rng)
    return [Outcome(np.nan, p_value=0.0 if any(map(shown, rows)) else 1.0)]


# One gap of known size


def _gap(people: int, images: int) -> Experiment:
    """Two prompts by gender; the first one's belief among women is Φ of a shifted normal."""
    world = World(2 * people, images, 2, ("gender",))
    truth = _mean(0.6) - _mean(0.0)
    trial = Trial("custom.gap", f"{world.setting}, a gap of {100 * truth:.1f} points", people, truth, effect=truth)
    return Experiment(f"own prompts gap {images}", (trial,), partial(_draw_gap, world), 0.5)


def _mean(shift: float) -> float:
    return float(ndtr(shift / np.sqrt(1 + PERSON**2 + IMAGE**2)))


def _draw_gap(world: World, rng: np.random.Generator) -> Sequence[Outcome]:
    half = world.people // 2
    images = made_images(world, rng).with_columns(
        gender=pl.Series(np.repeat(["woman", "man"], half * world.images)).cast(pl.String)
    )
    latent = noise(world._replace(prompts=1), rng)[:, 0] + 0.6 * (images["gender"] == "woman").to_numpy()
    belief = ndtr(latent)
    rows = measured(world, images, np.stack([np.log(belief), np.log1p(-belief)], axis=1), rng)
    row = next(row for row in rows if row.metric == "custom.gap" and row.concept == "prompt 0")
    result = outcome(row)
    if row.group == "man":
        result = result._replace(value=-result.value, low=-result.high, high=-result.low)
    return [result]
