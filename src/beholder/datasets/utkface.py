"""UTKFace: 23,708 aligned face crops whose names hold age, gender and race. Licence: non-commercial research only.

Source: the UTKFace page (aligned and cropped faces). Layout: `UTKFace/AGE_GENDER_RACE_TIME.jpg.chip.jpg`. The labels
are a model's estimates, then checked. Names that do not parse (8 in the public copy) are listed, never guessed.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.fairface import AGES

NAME = re.compile(r"(?P<age>\d{1,3})_(?P<gender>[01])_(?P<race>[0-4])_(?P<time>\d{17})\.jpg(?:\.chip\.jpg)?", re.ASCII)
"""Age in years, gender 0 male 1 female, race 0 to 4, and when it was collected, to the millisecond."""
GENDERS = ("Male", "Female")
RACES = ("White", "Black", "Asian", "Indian", "Others")
LICENCE = "non-commercial research only"
IMAGES = 23_708
SCHEMA = {
    "image_id": pl.String,
    "uri": pl.String,
    "age": pl.Int64,
    "age_band": pl.String,
    "gender": pl.String,
    "race": pl.String,
}


def load(folder: Path) -> Dataset:
    """Every picture whose name can be read; the others are listed in the notes."""
    home = folder / "UTKFace" if (folder / "UTKFace").is_dir() else folder
    files = sorted(path.name for path in home.iterdir() if path.suffix.lower() in {".jpg", ".jpeg", ".png"})
    if not files:
        raise MissingData(f"No UTKFace pictures lie at {home}: expected {SOURCE.layout}.")
    named = [(name, NAME.fullmatch(name)) for name in files]
    rows = [_row(home, name, match) for name, match in named if match]
    unread = [name for name, match in named if not match]
    notes = [f"{len(unread)} names do not parse and are left out: {', '.join(map(repr, unread))}"] if unread else []
    return Dataset("utkface", "aligned and cropped", LICENCE, pl.DataFrame(rows, schema=SCHEMA), tuple(notes))


def _row(home: Path, name: str, match: re.Match[str]) -> dict[str, object]:
    age = int(match["age"])
    labels = {"gender": GENDERS[int(match["gender"])], "race": RACES[int(match["race"])]}
    return {"image_id": name, "uri": str(home / name), "age": age, "age_band": age_band(age), **labels}


def age_band(age: int) -> str:
    """FairFace's band of an age in years.

    >>> age_band(2), age_band(70), age_band(34)
    ('0-2', 'more than 70', '30-39')
    """
    for band in AGES[:-1]:
        low, high = map(int, band.split("-"))
        if low <= age <= high:
            return band
    return AGES[-1]


SOURCE = DatasetSource(
    name="utkface",
    title="UTKFace: aligned faces with age, gender and race in their names",
    licence=LICENCE,
    origin="https://susanqq.github.io/UTKFace",
    layout="UTKFace/25_0_1_20170109150557335.jpg.chip.jpg …",
    images=IMAGES,
    load=load,
    labels="age, gender and race estimated by a model and checked by annotators",
    intended="estimating age and aligning faces",
)
