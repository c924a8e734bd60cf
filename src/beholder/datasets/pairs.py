"""PAIRS: generated pictures of 50 everyday scenes, each with a Black and a white woman and man, all else alike."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.datasets.dataset import Dataset, published

PARTS = {"occupations": 20, "status": 20, "potential_crime": 10}  # and how many scenes each has
PEOPLE = ("Black man", "Black woman", "White man", "White woman")
NAME = re.compile(r"(?P<race>black|white)_(?P<gender>man|woman)\d*", re.IGNORECASE)


def load(folder: Path) -> Dataset:
    """Every picture that is there; the notes name scenes that lack one of the four people."""
    root = folder / "data" if (folder / "data").is_dir() else folder
    rows = [row for part in PARTS if (root / part).is_dir() for row in _pictures(root / part)]
    if not rows:
        raise MissingData(f"No PAIRS pictures lie at {folder}: expected {SOURCE.layout}.")
    table = pl.DataFrame(rows).unique(["pair", "race", "gender"], keep="first", maintain_order=True)
    return Dataset("pairs", "as released", SOURCE.licence, table, tuple(_missing(table)))


def _pictures(part: Path) -> Iterator[dict[str, str]]:
    for path in sorted(part.glob("*/*.png")):
        if named := NAME.fullmatch(path.stem):
            scene, labels = path.parent.name, {"race": named["race"].capitalize(), "gender": named["gender"].lower()}
            about = {"part": part.name, "scenario": scene, "pair": f"{part.name}/{scene}"}
            yield {"image_id": f"{part.name}/{scene}/{path.name}", "uri": str(path), **about, **labels}


def _missing(table: pl.DataFrame) -> Iterator[str]:
    people = pl.concat_str("race", "gender", separator=" ").alias("people")
    for (pair,), scene in table.group_by(["pair"], maintain_order=True):
        if lacking := [name for name in PEOPLE if name not in scene.select(people).to_series()]:
            yield f"{pair}: no picture of {', '.join(lacking)}"
    scenes = dict(table.group_by("part").agg(pl.col("pair").n_unique()).rows())
    fewer = [f"{scenes.get(part, 0)} of {count} scenes of {part}" for part, count in PARTS.items()]
    if scenes != PARTS:
        yield f"there are {', '.join(fewer)}"


SOURCE = published("pairs", load)
