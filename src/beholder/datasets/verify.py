"""Open every image of a data set and say which cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from beholder.core.errors import BadImage
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image


def damaged_images(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Image id → reason, for every image that cannot be read."""
    damaged = {}
    with ThreadPoolExecutor() as pool:
        for image_id, reason in zip(dataset.table["image_id"], pool.map(_reason, dataset.table["uri"]), strict=True):
            advance(1)
            if reason:
                damaged[image_id] = reason
    return damaged


def _reason(uri: str) -> str | None:
    try:
        open_image(uri)
    except BadImage as error:
        return error.reason
    return None
