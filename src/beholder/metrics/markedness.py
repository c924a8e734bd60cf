"""Markedness: for how many images of a group does the plain prompt fit better than the one that names the group?

Pure functions. A group that goes without saying is unmarked: its word adds nothing (100 %); a marked group's word is
what the model sees first (0 %).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def unmarked(neutral: npt.NDArray[Any], own_word: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """1 where the neutral prompt scores above the group's own word, 0 where not, NaN where either is missing.

    >>> unmarked(np.array([0.3, 0.1, np.nan]), np.array([0.2, 0.2, 0.2]))
    array([ 1.,  0., nan])
    """
    missing = np.isnan(neutral) | np.isnan(own_word)
    return np.where(missing, np.nan, (np.asarray(neutral) > np.asarray(own_word)).astype(np.float64))
