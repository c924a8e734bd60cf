"""Numbers of the same people share their draws, so that each number more costs one matrix product."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import numpy as np
from bench import Claim, compared, main, timed

from beholder.metrics.intervals import Resampler


def draws(options: Namespace) -> Iterator[Claim]:
    """Means over APA's 636 politicians, computed one after another as a study does, and by loops over the draws."""
    rng, count, means = np.random.default_rng(0), 20 if options.quick else 2000, 50
    values, people = rng.random((636, means)), np.arange(636)

    def ours() -> None:
        resampler = Resampler(people, np.random.default_rng(1), count)
        for column in values.T:
            resampler.means(column)

    def loop() -> None:
        for column in values.T[:5]:
            for _ in range(count):
                column[rng.integers(0, 636, 636)].mean()

    def at_once() -> None:
        for _ in range(count):
            values[rng.integers(0, 636, 636)].mean(axis=0)

    ways = [
        timed("ours, one mean after another", ours),
        timed("a draw at a time, each mean with its own (5 of them, scaled up)", loop, share=5 / means),
        timed("a draw at a time, all means of a draw together", at_once),
    ]
    yield compared(f"Bootstrap: {count:,} draws of {means} means over 636 people", ways)


if __name__ == "__main__":
    main(draws)
