"""Rows that every benchmark makes: a mean with its interval and its n."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.metrics.association import half_precision_mean
from beholder.metrics.bootstrap import Resampler, mean_interval
from beholder.results import Row

PROBABILITY = "probability"


def mean_row(
    metric: str, values: npt.NDArray[np.float64], resampler: Resampler, *, half: bool = False
) -> Row:
    """A mean of probabilities; null, with the reason, when there is nothing to take it of.

    `half` takes it in float16, as APA's released scripts do.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return Row(metric, None, 0, PROBABILITY, note="no image to measure")
    value = half_precision_mean(known) if half else float(known.mean())
    low, high = mean_interval(values, resampler)
    return Row(metric, value, known.size, PROBABILITY, low=low, high=high)


def people_shown(images: pl.DataFrame) -> npt.NDArray[np.str_]:
    """Who is shown, as far as the data says: a name within a branch, else each image is someone of their own.

    Pictures of one person are resampled together.
    """
    own = pl.format("image {}", pl.int_range(pl.len()))
    name = pl.col("name").cast(pl.String) if "name" in images.columns else pl.lit(None, pl.String)
    branch = pl.col("branch") if "branch" in images.columns else pl.lit("")
    named = pl.format("{}/{}", branch, name)
    return (
        images.select(pl.when(name.str.len_chars() > 0).then(named).otherwise(own).alias("who"))["who"]
        .to_numpy()
        .astype(str)
    )


def join(notes: Sequence[str | None]) -> str | None:
    """Several notes as one; None when there is none."""
    return "; ".join(note for note in notes if note) or None
