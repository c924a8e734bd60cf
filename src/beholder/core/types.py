"""Types that many rooms share, where more cannot be said of what is inside."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Entry = dict[str, Any]  # a row of a table, or an object of JSON
Fields = Mapping[str, Any]  # the same, only read
AnyArray = npt.NDArray[Any]
Array = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]  # float32 or float64
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.intp]  # a number for each image or person, such as that of its group
Ints = npt.NDArray[np.int_]
Integers = npt.NDArray[np.integer[Any]]  # of any width
