"""`import beholder` takes less than half a second: no torch, no charts."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

from bench import Claim, compared, main, timed


def startup(options: Namespace) -> Iterator[Claim]:
    """A new interpreter with and without the import."""
    ways = [
        timed(
            code, partial(subprocess.run, [sys.executable, "-c", code], check=True), repeats=1 if options.quick else 5
        )
        for code in ("import beholder", "pass")
    ]
    yield compared("Starting Python and importing Beholder, and starting it alone", ways)


if __name__ == "__main__":
    main(startup)
