"""Shuffled groups: what a number would be if groups did not matter, where a person may have several images.

Images of one person are not independent, so people change groups and not images. A person of one group gets the group
of another such person, with all their images. A person who is shown in several groups (a face drawn as a man and as a
woman) has these groups exchanged among their own images. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer[Any]]
CELLS = 1 << 22
"""Codes held at once: shuffles come in parts, so memory does not grow with images × shuffles."""
FEW_STRATA = 20


class PersonShuffles:
    """Shuffles of `codes[n_images]` over `people[n_images]`; −1 (no group) stays where it is.

    With `strata`, a number for each image such as a gender, people of one group change places only with people of the
    same stratum: what the strata explain stays in every shuffle.
    """

    def __init__(self, codes: Codes, people: npt.NDArray[Any], strata: Codes | None = None) -> None:
        self.codes = np.asarray(codes)
        self.inside = np.flatnonzero(self.codes >= 0)
        _, person = np.unique(np.asarray(people)[self.inside], return_inverse=True)
        # One block for every person and group that occurs together: its images have one group in every shuffle.
        blocks, block_of = np.unique(np.stack([person, self.codes[self.inside]]), axis=1, return_inverse=True)
        self.block_of, self.groups = block_of.ravel(), blocks[1]
        self.n_blocks = len(self.groups)
        several = np.bincount(blocks[0])[blocks[0]] > 1
        stratum = np.zeros(blocks.shape[1], dtype=int)
        if strata is not None:
            stratum[self.block_of] = np.unique(np.asarray(strata)[self.inside], return_inverse=True)[1]
        self._stratum = np.where(several, stratum.max(initial=0) + 1 + blocks[0], stratum)

    def parts(self, count: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int_]]:
        """`count` shuffles, `[part of the shuffles, n_images]`, part after part."""
        size = max(1, CELLS // max(1, len(self.codes)))
        for start in range(0, count, size):
            many = min(size, count - start)
            shuffled = np.tile(self.codes.astype(int), (many, 1))
            shuffled[:, self.inside] = self.blocks(many, rng)[:, self.block_of]
            yield shuffled

    def blocks(self, many: int, rng: np.random.Generator) -> npt.NDArray[np.int_]:
        """Shuffled groups of the blocks (`block_of` the images `inside`), exchanged within every stratum."""
        strata = np.unique(self._stratum)
        groups = np.tile(self.groups, (many, 1))
        if len(strata) <= FEW_STRATA:
            for stratum in strata:
                places = np.flatnonzero(self._stratum == stratum)
                groups[:, places] = rng.permuted(groups[:, places], axis=1)
            return groups
        places = np.argsort(self._stratum, kind="stable")
        order = np.argsort(self._stratum[places] + rng.random((many, len(places))), axis=1)
        groups[:, places] = self.groups[places][order]
        return groups


def has_repeats(people: npt.NDArray[Any]) -> bool:
    """Whether anybody has more than one image."""
    return len(np.unique(people)) < len(people)
