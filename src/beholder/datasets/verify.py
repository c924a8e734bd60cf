"""Open every image of a data set and say which cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from beholder.core.errors import BadImage, DataError
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image

NAMED = 20
"""Unreadable images that a message names."""


def damaged_images(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Image id → reason, for every image that cannot be read."""
    reasons = unreadable(dataset.table["uri"].to_list(), advance)
    named = zip(dataset.table["image_id"], dataset.table["uri"], strict=True)
    return {image_id: reasons[uri] for image_id, uri in named if uri in reasons}


def unreadable(uris: Sequence[str], advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Address → reason, for every image that cannot be read."""
    reasons = {}
    with ThreadPoolExecutor() as pool:
        for uri, reason in zip(uris, pool.map(_reason, uris), strict=True):
            advance(1)
            if reason:
                reasons[uri] = reason
    return reasons


def unreadable_error(reasons: Mapping[str, str], images: int) -> DataError:
    """What to tell of images that cannot be read: all of them in one message, and what to do."""
    listed = "\n".join(f"  {uri}: {reason}" for uri, reason in list(reasons.items())[:NAMED])
    more = f"\n  … and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return DataError(
        f"{len(reasons)} of {images:,} images cannot be read:\n{listed}{more}\n"
        "Replace them, or continue without them: --skip-bad-images."
    )


def _reason(uri: str) -> str | None:
    try:
        open_image(uri)
    except BadImage as error:
        return error.reason
    return None
