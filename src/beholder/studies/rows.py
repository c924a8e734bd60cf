"""Rows that every benchmark makes: a mean with its interval and its n."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.metrics.association import half_precision_mean
from beholder.metrics.bootstrap import FEWEST, Resampler, exact_proportion_interval
from beholder.metrics.intervals import mean_interval
from beholder.metrics.refusals import refusal_difference
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.study import Metric

PROBABILITY = "probability"
NO_SPREAD = "all scores are alike: no interval"


def mean_row(metric: str, values: npt.NDArray[np.float64], resampler: Resampler, *, half: bool = False) -> Row:
    """A mean of probabilities; null, with the reason, when there is nothing to take it of.

    `half` takes it in float16, as APA's released scripts do.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return Row(metric, None, 0, PROBABILITY, note="no image to measure")
    value = half_precision_mean(known) if half else float(known.mean())
    low, high = mean_interval(values, resampler)
    few = min(known.size, resampler.n_clusters) < FEWEST
    why = f"fewer than {FEWEST} people: no interval" if few else NO_SPREAD if np.isnan(low) else None
    return Row(metric, value, known.size, PROBABILITY, low=low, high=high, note=why)


def people_shown(images: pl.DataFrame) -> npt.NDArray[np.str_]:
    """Who is shown, as far as the data says: a name within a branch, else each image is someone of their own.

    Pictures of one person are resampled together.
    """
    # Not by polars: `int_range` over a filtered table that lies in pieces panics (2.1).
    names, branches = (
        images[column].cast(pl.String).to_list() if column in images.columns else [""] * images.height
        for column in ("name", "branch")
    )
    people = enumerate(zip(names, branches, strict=True))
    return np.array([f"{branch}/{name}" if name else f"image {row}" for row, (name, branch) in people], dtype=np.str_)


def refusal_metric(prefix: str) -> Metric:
    """What `refusal_rows` gives."""
    meaning = "share of images with a prompt the model refused to answer; p: do groups differ"
    return Metric(f"{prefix}.refusal_share", "gender score judgements", PROBABILITY, meaning)


def refusal_rows(prefix: str, matrix: ScoreMatrix, attribute: str) -> Iterator[Row]:
    """Whom the model refuses to answer about: the share of images with a refusal, by group, and whether it differs.

    Nothing where the model cannot refuse (it has no channel `refused`) or the attribute is unknown.
    """
    refused = matrix.refused()
    if refused is None or attribute not in matrix.images.columns:
        return
    known = matrix.images[attribute].is_not_null().to_numpy()
    ever = refused[known].any(axis=1).astype(np.float64)
    if not ever.size:
        return
    groups = matrix.images[attribute].cast(pl.String).filter(known).to_numpy()
    refusals = refusal_difference(ever, groups)
    note = join((f"images with a refused prompt; p: {refusals.test}", refusals.note))
    for group, share in refusals.shares.items():
        low, high = exact_proportion_interval(refusals.refused[group], refusals.n[group])
        row = Row(f"{prefix}.refusal_share", share, refusals.n[group], PROBABILITY, low=low, high=high, note=note)
        yield row._replace(subset=attribute, group=group, p_value=refusals.p_value)


def join(notes: Sequence[str | None]) -> str | None:
    """Several notes as one; None when there is none."""
    return "; ".join(note for note in notes if note) or None
