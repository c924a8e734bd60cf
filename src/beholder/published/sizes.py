"""Sizes that two papers print of their data, counted again in the data at hand: no model is asked.

Visual Genome's are not among them: which of its filters the printed numbers stand after could not be told here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from beholder.core.errors import MissingData
from beholder.datasets import DATASETS, open_dataset
from beholder.datasets.coco import SETTINGS as COCO_SETTINGS
from beholder.datasets.coco import frequent_categories, grouped
from beholder.datasets.coco_files import find, read_captions, read_instances
from beholder.datasets.group_words import GENDER_WORDS
from beholder.datasets.settings import Settings
from beholder.datasets.steps import Steps

CUT = "the protocol's rule cuts captions into words at anything that is no letter; cut at blanks only they give {}"


class Size(NamedTuple):
    """A count; why it does not compare, where only a part of the source is here; and what may explain a difference."""

    number: int
    partial: str | None = None
    hint: str | None = None


def data_sizes(data: Path) -> dict[tuple[str, str, str], Size]:
    """By benchmark, data set and what is counted; nothing of data sets that are not there."""
    found = {place: count(data) for place, count in COUNTERS.items()}
    return {place: size for place, size in found.items() if size is not None}


def _adults(name: str, source: str, split: str | None) -> Callable[[Path], Size | None]:
    """The faces that the Perception study takes; their labels tell, and the images need not be here."""

    def count(data: Path) -> Size | None:
        try:
            whole, adults = open_dataset(source, data), open_dataset(name, data)
        except MissingData:
            return None
        mine = adults.where(split=split) if split else adults
        return Size(len(mine), _part(len(whole), DATASETS[source].images))

    return count


def _captioned(data: Path) -> Size | None:
    """COCO's validation images whose captions name one gender and not people."""
    try:
        path = find(DATASETS["coco"].folder(data), "captions_val2017")
    except MissingData:
        return None
    said = read_captions(path, "letters")
    counts = [
        len(grouped(words, GENDER_WORDS, ("people",), Steps())) for words in (said, read_captions(path, "blanks"))
    ]
    return Size(counts[0], _part(len(said), DATASETS["coco"].images), CUT.format(f"{counts[1]:,}"))


def _frequent(data: Path) -> Size | None:
    """COCO's categories in at least 100 training images; None without the training annotations."""
    folder = DATASETS["coco"].folder(data)
    if not (folder / "annotations" / "instances_train2017.json").is_file():
        return None
    instances = read_instances(find(folder, "instances_val2017"))
    return Size(len(frequent_categories(instances, Settings("coco", COCO_SETTINGS, None), folder, Steps())))


def _part(here: int, whole: int) -> str | None:
    return f"{here:,} of the source's {whole:,} images are in the tables here" if here < whole else None


COUNTERS: dict[tuple[str, str, str], Callable[[Path], Size | None]] = {
    ("perception", "fairface-adults", "images"): _adults("fairface-adults", "fairface", "train"),
    ("perception", "utkface-adults", "images"): _adults("utkface-adults", "utkface", None),
    ("disparity", "coco", "images"): _captioned,
    ("disparity", "coco", "concepts"): _frequent,
}
