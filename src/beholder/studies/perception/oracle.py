"""The oracle: judgements of the drawn design whose causes are known, because they are planted here.

score = what was planted for each attribute + what the identity brings + how this identity differs in what an attribute
does to it + noise of the picture. An average causal effect should recover the planted value; what a mean absolute
difference shows besides is noise. In cosines: 0.01 is one point as printed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Array = npt.NDArray[np.float64]

PLANTED: dict[str, dict[str, float]] = {
    "gender": {"woman": 0.004, "man": 0.0},
    "skin_tone": {"2": 0.0, "9": -0.003},
    "age": {"25": 0.0, "45": 0.002, "65": -0.002},
    "smiling": {"0": 0.0, "2": 0.006, "4": 0.010},
    "lighting": {"-2": 0.0, "0": 0.0, "2": 0.0},
    "pose": {"-2": 0.001, "0": 0.0, "2": 0.001},
}
"""What each value of each attribute adds; lighting adds nothing."""
SMILE_BONUS = 0.003
"""What the widest smile adds for women besides: smiling does not have the same effect on everyone."""


class Noise(NamedTuple):
    """Standard deviations of what was not planted."""

    identity: float = 0.010
    reaction: float = 0.004
    """How differently identities respond to each attribute."""
    picture: float = 0.015


def planted_effect(attribute: str, first: str, second: str) -> float:
    """The average effect of changing `second` into `first`, with the bonus of half the people."""
    return _added(attribute, first) - _added(attribute, second)


def _added(attribute: str, value: str) -> float:
    """What a value adds, averaged over everyone else; half the people are women, and half of all smiles are half."""
    share = {"smiling": float(value) / 4} if attribute == "smiling" else {"gender": float(value == "woman")}
    return PLANTED[attribute][value] + SMILE_BONUS / 2 * share.get(attribute, 0.0)


def oracle_scores(images: pl.DataFrame, rng: np.random.Generator, *, columns: int, noise: Noise | None = None) -> Array:
    """Scores of every image in so many independent repetitions, `[n_images, columns]`."""
    noise = noise or Noise()
    _, seeds = np.unique(images["seed"].to_numpy(), return_inverse=True)
    people = int(seeds.max()) + 1
    scores = noise.picture * rng.normal(size=(images.height, columns))
    scores += noise.identity * rng.normal(size=(people, columns))[seeds]
    for attribute, planted in PLANTED.items():
        levels = images[attribute].cast(pl.String).str.strip_suffix(".0").to_list()
        code_of = {level: code for code, level in enumerate(planted)}
        codes = np.array([code_of[level] for level in levels])
        scores += np.array(list(planted.values()))[codes][:, None]
        scores += noise.reaction * rng.normal(size=(people, len(planted), columns))[seeds, codes]
    women = (images["gender"] == "woman").to_numpy()
    scores += (SMILE_BONUS * women * images["smiling"].to_numpy() / 4)[:, None]
    return np.asarray(scores)
