"""All draws of a bootstrap are one matrix product, many times as fast as a draw at a time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import numpy as np
from bench import Claim, compared, main, timed

from beholder.metrics.bootstrap import Resampler


def draws(options: Namespace) -> Iterator[Claim]:
    """Means of 9 columns over APA's 636 politicians."""
    rng, count = np.random.default_rng(0), 20 if options.quick else 2000
    values, people = rng.random((636, 9)), np.arange(636)

    def loop() -> None:
        for _ in range(count):
            values[rng.integers(0, 636, 636)].mean(axis=0)

    def ours() -> None:
        Resampler(people, np.random.default_rng(1), count).means(values)

    ways = [timed("ours", ours), timed("a draw at a time", loop)]
    yield compared(f"Bootstrap: {count:,} draws of 9 means over 636 people", ways)


if __name__ == "__main__":
    main(draws)
