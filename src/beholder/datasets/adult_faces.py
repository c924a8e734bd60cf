"""FairFace and UTKFace as the Perception study takes them: White, Black and Asian, 20 years and older.

FairFace's East and Southeast Asian are joined as Asian (`source_race` keeps the source's word), its age bands stand at
their midpoints ("more than 70" at 70). The study has 38,744 images of FairFace's training part and 14,630 of UTKFace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from beholder.datasets import fairface, utkface
from beholder.datasets.dataset import Dataset, DatasetSource

JOINED = {"White": "White", "Black": "Black", "East Asian": "Asian", "Southeast Asian": "Asian", "Asian": "Asian"}
MIDPOINTS = {"20-29": 25.0, "30-39": 35.0, "40-49": 45.0, "50-59": 55.0, "60-69": 65.0, "more than 70": 70.0}
YOUNGEST = 20
FAIRFACE_NAME, UTKFACE_NAME = "fairface-adults", "utkface-adults"
IN_THE_STUDY = {FAIRFACE_NAME: 38_744, UTKFACE_NAME: 14_630}
RELEASED_SEED = 42
PROTOTYPES = 6
"""Races times genders, which the released script counts on."""


def load_fairface(folder: Path) -> Dataset:
    """FairFace's adults of the three groups, of both parts; `split` tells the study's part from the other."""
    return adults(fairface.load(folder))


def load_utkface(folder: Path) -> Dataset:
    """UTKFace's adults of the three groups."""
    return adults(utkface.load(folder))


def adults(whole: Dataset) -> Dataset:
    """The study's part of FairFace or of UTKFace; any other data set as it is."""
    if whole.name == "fairface":
        midpoint = pl.col("age_band").replace_strict(MIDPOINTS, default=None, return_dtype=pl.Float64)
        table = whole.table.rename({"age": "age_band"}).with_columns(midpoint.alias("age"))
        return _adults(whole, table, FAIRFACE_NAME, in_study=pl.col("split") == "train")
    if whole.name == "utkface":
        return _adults(whole, whole.table.cast({"age": pl.Float64}), UTKFACE_NAME, in_study=pl.lit(True))
    return whole


def studied(dataset: Dataset) -> Dataset:
    """The study's own images: of FairFace its training part, where any of it is here; of the others all."""
    if "split" not in dataset.attributes or "train" not in dataset.attribute("split"):
        return dataset
    return dataset.where(split="train")


def _adults(whole: Dataset, table: pl.DataFrame, name: str, *, in_study: pl.Expr) -> Dataset:
    joined = pl.col("race").replace_strict(JOINED, default=None, return_dtype=pl.String)
    table = table.with_columns(pl.col("race").alias("source_race"), joined.alias("race")).filter(
        pl.col("race").is_not_null()
    )
    table = table.with_columns(pl.Series("released_balance", balanced(table, table.select(of=in_study)["of"])))
    adults = table.filter((pl.col("age") >= YOUNGEST).fill_null(False))
    listed, taken = adults.filter(in_study).height, IN_THE_STUDY[name]
    notes = [f"of the {taken} images that the study takes, the tables here list {listed}"]
    return replace(whole, name=name, table=adults, notes=(*whole.notes, *(notes if listed != taken else [])))


def balanced(table: pl.DataFrame, in_study: pl.Series | None = None, seed: int = RELEASED_SEED) -> list[bool]:
    """Which rows the released script's draw takes: `--compat` ranks those of them that are at hand.

    The script takes a sixth of all rows from each race and gender, or the whole group where that is smaller, with the
    same seed for each group. Ages under 20 are dropped afterwards. So what is left is not balanced.
    """
    studied = np.ones(table.height, bool) if in_study is None else in_study.to_numpy()
    rows = table.with_row_index().filter(pl.Series(studied))
    taken, quota = np.zeros(table.height, dtype=bool), rows.height // PROTOTYPES
    for group in rows.group_by("race", "gender").agg(pl.col("index"))["index"]:
        draw = np.random.RandomState(seed)  # the generator of the released script's library
        taken[group.to_numpy()[draw.choice(len(group), size=min(quota, len(group)), replace=False)]] = True
    return [bool(row) for row in taken]


def _source(whole: DatasetSource, name: str, title: str, load: Callable[..., Dataset]) -> DatasetSource:
    title = f"{title} adults: White, Black and Asian, 20 and older, as the Perception study takes them"
    return replace(whole, name=name, title=title, images=IN_THE_STUDY[name], load=load, directory=whole.name)


SOURCES: tuple[DatasetSource, ...] = (
    _source(fairface.SOURCE, FAIRFACE_NAME, "FairFace", load_fairface),
    _source(utkface.SOURCE, UTKFACE_NAME, "UTKFace", load_utkface),
)
