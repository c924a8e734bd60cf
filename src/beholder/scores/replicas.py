"""Several devices: a process for each, with its own copy of the model; whichever is free takes the next few batches.

Only addresses go out and only rows come back, in order, so that the store is filled as by one device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from typing import Any

from beholder.models.load import Replica, load_model
from beholder.scores.reading import ReadOptions, WorkersOnDemand
from beholder.scores.scoring import Asked, BatchScorer, Scored
from beholder.scores.workers import Workers

BATCHES_AT_ONCE = 8
"""Batches that a device is given together: its reading ahead begins anew with each such job."""
STARTING_SECONDS = 3600.0
"""After so long without an answer a device is taken to hang; its model is loaded first."""


class Replicas(Workers):
    """One process per device."""

    does = "runs the model on a device"

    def __init__(self, replicas: list[Replica], options: ReadOptions) -> None:
        share = ReadOptions(options.workers, options.processes // len(replicas))
        waiting = get_context("spawn").Queue()
        for replica in replicas:
            waiting.put(replica)
        super().__init__(len(replicas), start=_load, arguments=(waiting, share))

    @property
    def patience(self) -> float:
        """Seconds without an answer after which a process is taken to hang."""
        return STARTING_SECONDS

    def scored(self, batches: Sequence[list[str]], asked: Asked) -> Iterator[Scored]:
        """What the model says about every batch, in order."""
        jobs = [list(batches[start : start + BATCHES_AT_ONCE]) for start in range(0, len(batches), BATCHES_AT_ONCE)]
        return self.map(_Job(asked), jobs, per_job=1)


class _Job:
    """A function that travels to a device's process with what is asked."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def __call__(self, jobs: list[list[list[str]]]) -> list[Scored]:
        assert _own is not None
        return [
            scored
            for batches in jobs
            for scored in _own.scored(batches, self._asked, lambda uri: uri, lambda key: False)
        ]


_own: BatchScorer | None = None


def _load(waiting: Any, options: ReadOptions) -> None:
    """In a device's process: load the model there."""
    global _own
    replica: Replica = waiting.get()
    _own = BatchScorer(load_model(replica.name, replica.options), options, WorkersOnDemand(options))
