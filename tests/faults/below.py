"""Scores on a disk that fails below Python, at one call after the other; started with `failing.c` preloaded."""

from __future__ import annotations

import ctypes
import errno
import logging
import shutil
import sys
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
from faults.toy import Pairs, Towers, lacking, scores, toy_task

from beholder.core.errors import BeholderError
from beholder.scores import fill as filling
from beholder.scores import shelf as shelves

IMAGES, BEFORE = 6, 3


def main(place: Path) -> None:
    """Every third read, write and flush, once or from then on: an error that names the file, or the right scores."""
    disk, cases = ctypes.CDLL(None), 0
    seen = ctypes.c_int.in_dll(disk, "failing_seen")
    logging.disable()
    filling.BLOCK_ROWS, shelves.FEW, shelves.INDEXED_FROM = 4, 2, 1
    root, begun = place / "store", place / "begun"
    make: Any
    where: dict[str, bytes] = dict.fromkeys("rws", b"/store/") | {"pictures": b"/images/"}
    for make, kind, once in product((Towers, Pairs), where, (0, 1)):
        if make is Pairs and not once:
            continue
        shutil.rmtree(begun, ignore_errors=True)
        scores(toy_task(place / "images", BEFORE), make(), begun)
        task = toy_task(place / "images", IMAGES)
        right = scores(task, make(), place / "right")
        for at in count(0, 3):
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(begun, root)
            disk.failing_set(where[kind], ord(kind.replace("pictures", "r")), at, once)
            cell: Any = (make.__name__, kind, at, once)
            outcome: Any
            try:
                outcome = scores(task, make(), root)
            except (OSError, BeholderError) as error:
                outcome = error
            failed = seen.value > at
            disk.failing_set(b"", 0, -1, 0)
            if isinstance(outcome, Exception):
                assert str(place) in str(outcome), (cell, outcome)
                assert getattr(outcome, "errno", errno.EIO) == errno.EIO, (cell, outcome)
            else:
                assert np.array_equal(outcome, right), cell
            still, again = lacking(task, make(), root), make()
            assert np.array_equal(scores(task, again, root), right), cell
            assert again.asked == still, cell
            cases += failed
            if not failed:
                break
    print(cases)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
