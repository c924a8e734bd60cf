"""The oracle: a scorer whose answers are a stated function of the attributes, so that every true value is known.

    latent = base + effects of the attributes + person + image + prompt + template + cell noise
    P      = Φ(latent)

All noise is normal, and a normal integrates a probit in closed form, E Φ(a + s Z) = Φ(a / √(1 + s²)): the true mean
probability of any group follows from the settings alone. Nothing is drawn as a picture, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class Noise:
    """Standard deviations on the latent scale."""

    person: float = 0.0
    """All pictures of one person move together."""
    image: float = 1.0
    """All prompts about one picture move together."""
    prompt: float = 0.0
    """A prompt's own level, for all pictures."""
    template: float = 0.0
    """A wording's own level, for all pictures and prompts."""
    cell: float = 0.0
    """What is left: a picture with one prompt in one wording."""

    @property
    def of_pictures(self) -> float:
        """What a mean over pictures averages out."""
        return float(np.sqrt(self.person**2 + self.image**2 + self.cell**2))


@dataclass(frozen=True)
class Levels:
    """A world's prompts and wordings: `[n_prompts, n_templates]` on the latent scale. Drawn once, then fixed."""

    latent: Array


@dataclass(frozen=True)
class Oracle:
    """Base level, effects by attribute and value, noise."""

    base: float = 0.0
    effects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    noise: Noise = Noise()

    def levels(self, prompts: int, templates: int, rng: np.random.Generator) -> Levels:
        """Prompts and wordings of a world."""
        own = self.noise.prompt * rng.standard_normal((prompts, 1))
        return Levels(own + self.noise.template * rng.standard_normal((1, templates)))

    def shift(self, labels: Mapping[str, Labels]) -> Array:
        """What each picture's attributes add, `[n_images]`."""
        length = len(next(iter(labels.values())))
        total = np.zeros(length)
        for attribute, by_value in self.effects.items():
            total += np.array([by_value.get(value, 0.0) for value in labels[attribute].tolist()])
        return total

    def latent(
        self,
        labels: Mapping[str, Labels],
        levels: Levels,
        rng: np.random.Generator,
        *,
        touched: npt.NDArray[np.bool_] | None = None,
    ) -> Array:
        """Scores before Φ, `[n_images, n_prompts, n_templates]`; `touched` says which prompts the effects move.

        Pictures of one person share a label `person`; without it everyone has one picture.
        """
        n, noise = len(next(iter(labels.values()))), self.noise
        moves = np.ones(len(levels.latent)) if touched is None else touched.astype(np.float64)
        people = labels.get("person", np.arange(n))
        _, who = np.unique(people, return_inverse=True)
        image = noise.person * rng.standard_normal(who.max() + 1)[who] + noise.image * rng.standard_normal(n)
        scores = self.base + levels.latent[None] + image[:, None, None]
        scores = scores + (self.shift(labels)[:, None] * moves[None])[:, :, None]
        return np.asarray(scores + noise.cell * rng.standard_normal(scores.shape) if noise.cell else scores)

    def probability(self, labels: Mapping[str, Labels], levels: Levels, rng: np.random.Generator, **more: Any) -> Array:
        """P(Yes), or the share of belief on the right answer."""
        return np.asarray(ndtr(self.latent(labels, levels, rng, **more)))

    def true_mean(self, shift: float, levels: Levels | None = None) -> Array:
        """The mean probability of a group whose attributes add `shift`, of every prompt and wording.

        >>> float(Oracle(base=0.0).true_mean(0.0))
        0.5
        """
        latent = np.zeros(()) if levels is None else levels.latent
        return np.asarray(ndtr((self.base + shift + latent) / np.sqrt(1 + self.noise.of_pictures**2)))

    def shift_for(self, mean: float) -> float:
        """The effect that gives a group this mean probability where prompts add nothing."""
        return float(ndtri(mean) * np.sqrt(1 + self.noise.of_pictures**2) - self.base)


def oracle_with_mean(mean: float, noise: Noise) -> Oracle:
    """An oracle whose groups without effect have this mean probability.

    >>> round(float(oracle_with_mean(0.2, Noise(image=1.5)).true_mean(0.0)), 6)
    0.2
    """
    return Oracle(base=Oracle(noise=noise).shift_for(mean), noise=noise)


def belief_logits(shares: Array, options: int) -> Array:
    """Logits over `options` prompts whose softmax puts `shares` on the first and the rest evenly: `[n, options]`."""
    odds = np.clip(shares, 1e-12, 1 - 1e-12)
    cells = np.zeros((len(shares), options))
    cells[:, 0] = np.log(odds / (1 - odds) * (options - 1))
    return cells
