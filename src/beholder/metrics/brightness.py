"""Brightness maps: where in the picture one group is drawn or photographed brighter than another.

Pure functions. The mean sign of the grey-value difference over matched pairs: 1 where the first is always brighter, −1
where the second is, 0 where it is even. It says what a model could pick up that has nothing to do with faces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def sign_map(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Array:
    """Mean sign of `first − second` over pairs, `[n_pairs, height, width]` each.

    >>> sign_map(np.array([[[2.0, 1.0]], [[3.0, 1.0]]]), np.array([[[1.0, 1.0]], [[1.0, 4.0]]]))
    array([[ 1. , -0.5]])
    """
    return np.asarray(np.sign(np.asarray(first, dtype=np.float64) - second).mean(axis=0))


def coarse(grey: npt.NDArray[Any], side: int) -> Array:
    """A square grey picture as `side` × `side` means of its blocks; what does not divide is cut off at the edge."""
    block = min(grey.shape) // side
    cut = np.asarray(grey, dtype=np.float64)[: block * side, : block * side]
    return np.asarray(cut.reshape(side, block, side, block).mean(axis=(1, 3)))
