"""Experiment: a world of the oracle, measured again and again by a benchmark's own code.

An experiment draws one world and gives back one outcome for each of its trials: a trial is a metric with a true value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beholder.core.results import Row


class Outcome(NamedTuple):
    """What one repetition gave: a value, its interval, a p-value; NaN for what there is not."""

    value: float
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan


@dataclass(frozen=True)
class Trial:
    """A metric in a world where its true value is known."""

    metric: str
    setting: str
    """The world in words: `24 women, 76 men`."""
    n: int
    """Images in the smallest group."""
    truth: float
    effect: float = 0.0
    """Size of what was planted, in the metric's own unit; 0 is no effect."""
    kind: str = ""
    """Which interval, where several are compared; empty for the one the benchmark gives."""
    truth_error: float = 0.0
    """Standard error of a true value that comes from a large draw; 0 in closed form."""
    family: bool = False
    """Whether p is that of a whole corrected family: "any of them"."""
    null: bool | None = None
    """Whether calling it (p ≤ 0.05) would be wrong; without saying so, where the effect is 0."""
    curve: str = ""
    """The line of the power curve that it is a point of: the world without what was planted."""
    key: str = ""
    """What the study's own code finds the trial by; `setting` is for people."""
    exception: str = ""
    """Why the interval cannot cover as it says, where that is known and said to users."""

    @property
    def nothing_there(self) -> bool:
        """Whether a call is a false alarm."""
        return self.effect == 0 if self.null is None else self.null

    @property
    def name(self) -> str:
        """Metric, kind and setting in a line."""
        return " · ".join(part for part in (self.metric, self.kind, self.setting) if part)


Simulate = Callable[[np.random.Generator], Sequence[Outcome]]


@dataclass(frozen=True)
class Experiment:
    """A world, its trials, and how often it is drawn by default."""

    name: str
    trials: tuple[Trial, ...]
    simulate: Simulate
    share: float = 1.0
    """Part of the asked-for repetitions that it takes: power needs fewer than coverage."""


def outcome(row: Row) -> Outcome:
    """A row of results as an outcome."""
    return Outcome(*(np.nan if part is None else part for part in (row.value, row.low, row.high, row.p_value)))
