"""Types that many rooms share, where more cannot be said of what is inside."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

Entry = dict[str, Any]  # a row of a table, or an object of JSON
Fields = Mapping[str, Any]  # the same, only read
AnyArray = npt.NDArray[Any]
