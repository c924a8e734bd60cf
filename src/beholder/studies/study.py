"""Benchmark: a question about how a model sees people, declared as a value.

It says which images meet which prompts (`tasks`) and what is read off the scores (`measures`). A measure is a pure
function of the filled matrices; whatever it needs besides is in `MeasureOptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.models.spec import ModelSpec
from beholder.prompts.instruction import Instruction
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.task import Task


@dataclass(frozen=True)
class MeasureOptions:
    """What a measure may be told."""

    compat: bool = False
    """Compute as the authors' released scripts do, faults included."""
    draws: int = 2000
    permutations: int = 100
    """Shuffles behind an expectation under no effect."""
    seed: int = 20260801
    delta: float | None = None
    """The largest bias that counts as none: in probability for a gap, for a ratio a factor of 1 + δ."""

    def rng(self) -> np.random.Generator:
        """A fresh generator: equal options give equal intervals."""
        return np.random.default_rng(self.seed)


Matrices = Mapping[str, ScoreMatrix]
"""Filled matrices by task name."""
Measure = Callable[[Matrices, MeasureOptions], Iterable[Row]]


@dataclass(frozen=True)
class MetricInfo:
    """What a number means: its unit, and what its landmarks stand for."""

    unit: str
    meaning: str


TRUE_OR_FALSE = Instruction(
    "Indicate if the following statement is true or false, and please only output 'true' or 'false': {}",
    yes="true",
    no="false",
)
"""APA's wording; what a prompt that is a statement needs."""


@dataclass(frozen=True)
class Benchmark:
    """A question, what to score, what to measure, and what was published."""

    name: str
    title: str
    question: str
    study: str
    datasets: tuple[str, ...]
    """Data sets it can be asked on; the first is the study's own."""
    tasks: Callable[[Dataset], Sequence[Task]]
    measures: tuple[Measure, ...]
    metrics: Mapping[str, MetricInfo]
    statements: Callable[[Dataset], Sequence[Task]] | None = None
    """What is scored instead where a model matches pictures with texts and cannot be asked a question."""
    looked_for: Callable[[Dataset], Sequence[Task]] | None = None
    """What is scored instead where a model looks for things in pictures: a detector or a segmenter."""
    instruction: Instruction = TRUE_OR_FALSE
    """How a model that answers in words is asked."""
    compat_instruction: Callable[[ModelSpec], Instruction] | None = None
    """How the authors' released scripts ask, where that differs."""
    compat_tasks: Callable[[Dataset], Sequence[Task]] | None = None
    """What the authors' released scripts score, where that differs."""
    everywhere: bool = False
    """Asked on every one of its data sets that is at hand, rather than on the first."""
    across: Callable[[pl.DataFrame, pl.DataFrame, bool], pl.DataFrame] | None = None
    """What is read off the results of all models and data sets together, beside those of other runs; as published?"""
    limitations: tuple[str, ...] = ()
    of_photographs: tuple[str, ...] = ()
    """Limitations that hold for photographs of people, and not for drawings."""
    subset_attribute: str | None = None
    """The attribute that `--limit` takes its share of."""
    published: tuple[str, ...] = field(default_factory=tuple)
    """Names of the published tables to stand beside the results."""

    def declaration(self) -> dict[str, Any]:
        """What it says of itself, as JSON: a run keeps it of a user's own benchmark, and the page reads it there."""
        return {
            "title": self.title,
            "question": self.question,
            "study": self.study,
            "limitations": list(self.limitations),
            "of_photographs": list(self.of_photographs),
            "metrics": {name: asdict(info) for name, info in self.metrics.items()},
        }

    def tasks_for(
        self, dataset: Dataset, *, answers: bool, looks: bool = False, compat: bool = False
    ) -> Sequence[Task]:
        """The tasks for a model that answers in words, for one that looks for things, or for one that does neither."""
        if compat and self.compat_tasks is not None:
            return self.compat_tasks(dataset)
        if looks and self.looked_for is not None:
            return self.looked_for(dataset)
        return self.tasks(dataset) if answers or self.statements is None else self.statements(dataset)
