"""More causes that the study names in § 4.1: what stands beside a concept in the pictures, and how good these are.

As with sizes, a difference explains a gap only as far as the gap shrinks once it is removed: described, not tested.
"""

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import laplace

from beholder.core.errors import BadImage
from beholder.core.results import Row
from beholder.core.types import Array, Ints
from beholder.datasets.images import grey_values, open_image
from beholder.studies.disparity.gaps import Gaps, equal_areas, equal_mix, same_mix_rows
from beholder.studies.disparity.scores import ConceptScores, Sides

COMPANIONS = 3  # how many companions of a concept count: those that differ most between the groups
WIDTH = 256  # pixels of the width at which sharpness is taken, so that pictures of all sizes compare
QUALITIES = ("brightness", "sharpness")


def companion_rows(gaps: Gaps) -> Iterator[Row]:
    """Each concept's companions by group, and its gap where every group has the same mix of them."""
    data = gaps.data
    for pair in data.pairs:
        shares, chosen = together(data, pair)
        bins = np.zeros(data.present.shape, dtype=int)
        for column in np.flatnonzero(gaps.enough(pair)).tolist():
            n = int(data.showing[pair.both, column].sum())
            for place, other in enumerate(chosen[column].tolist()):
                bins[:, column] += data.present[:, other].astype(int) << place
                first, second = shares[:, column, other].tolist()
                note = f"shown beside it in {100 * first:.0f} % and {100 * second:.0f} % of the images that show it"
                row = pair.row("companion_gap", first - second, n, "share", concept=data.concepts[column])
                yield row._replace(template=data.concepts[other], note=note)
        rows = same_mix_rows(gaps, "ap_gap_same_companions", *equal_mix(data, bins, 1 << COMPANIONS))
        yield from (row for row in rows if (row.group, row.against) == (pair.group, pair.against))


def together(data: ConceptScores, pair: Sides) -> tuple[Array, Ints]:
    """Of the images of both sets that show a concept, the share that shows each other one; and the companions."""
    # `[2, n_concepts, n_concepts]`, and `[n_concepts, at most COMPANIONS]`: those whose shares differ most, widest
    # first.
    there = (data.present & ~np.isnan(data.scores)).astype(np.float64)
    counts = np.stack([there[data.sets[side]].T @ there[data.sets[side]] for side in pair.both])
    shares = counts / np.maximum(np.einsum("sii->si", counts), 1.0)[:, :, None]
    apart = np.abs(shares[0] - shares[1])
    np.fill_diagonal(apart, -1.0)
    return shares, np.argsort(-apart, axis=1, kind="stable")[:, : min(COMPANIONS, len(apart) - 1)]


def quality_rows(gaps: Gaps) -> Iterator[Row]:
    """The gap where pictures of each brightness, and of each sharpness, have the same weight in every group."""
    data = gaps.data
    known = {uri: quality(uri) for uri in data.images["uri"].unique()}
    measured = np.array([known[uri] for uri in data.images["uri"]])
    for name, values in zip(QUALITIES, measured.T, strict=True):
        table = np.where(data.present, values[:, None], np.nan)
        yield from same_mix_rows(gaps, f"ap_gap_same_{name}", *equal_areas(data, table))


def quality(uri: str) -> tuple[float, float]:
    """A picture's mean grey value, and the log of the variance of its Laplacian; NaN for one that cannot be read."""
    try:
        image = open_image(uri)
    except BadImage:
        return np.nan, np.nan
    small = image.resize((WIDTH, max(1, round(WIDTH * image.height / image.width))))
    return float(grey_values(image).mean()), float(np.log1p(laplace(grey_values(small)).var()))
